package io.etcfs.it.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.linux.iscsi.IscsiDevice;
import io.etcfs.linux.scsi.ReservationFencer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two initiators at a target of tgt, without nodes: who may write when. Sessions are numbers here; etcd's word is a switch. */
@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReservationsTest {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final long BYTES = 64L << 20;
    private static final int EIO = 5;

    private final AtomicBoolean gone = new AtomicBoolean();
    private final List<AutoCloseable> open = new ArrayList<>();
    private TgtTarget target;
    private Relay relay;
    private IscsiDevice one;
    private IscsiDevice two;
    private ReservationFencer fencerOfOne;
    private ReservationFencer fencerOfTwo;
    private final AtomicBoolean twoStands = new AtomicBoolean(true);

    private Path directory;

    @BeforeEach
    void start(@TempDir Path directory) throws Exception {
        this.directory = directory;
        target = new TgtTarget(directory, TgtTarget.image(directory, BYTES));
        relay = new Relay(target.port());
        one = device(target.port(), "fs/n1");
        two = device(relay.port(), "fs/n2");
        fencerOfOne = new ReservationFencer(one);
        fencerOfTwo = new ReservationFencer(two);
        fencerOfOne.admit(0x11, List.of(), true, () -> true);
        fencerOfTwo.admit(0x22, List.of(), true, twoStands::get);
    }

    @AfterEach
    void stop() throws Exception {
        for (AutoCloseable c : open) {
            c.close();
        }
        if (relay != null) {
            relay.close();
        }
        if (target != null) {
            target.close();
        }
        assertFalse(gone.get());
    }

    private IscsiDevice device(int port, String name) throws DeviceException {
        IscsiDevice device = IscsiDevice.open(TgtTarget.address(port), name, () -> gone.set(true));
        open.add(device);
        return device;
    }

    private static void write(BlockDevice device, long block, int value) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BLOCK, BLOCK);
            bytes.fill((byte) value);
            device.write(block * BLOCK, bytes);
        }
    }

    private static int read(BlockDevice device, long block) throws DeviceException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BLOCK, BLOCK);
            device.read(block * BLOCK, bytes);
            int first = bytes.get(ValueLayout.JAVA_BYTE, 0);
            assertEquals(first, bytes.get(ValueLayout.JAVA_BYTE, BLOCK - 1));
            return first;
        }
    }

    private static CompletableFuture<Void> writing(BlockDevice device, long block, int value) {
        return writing(device, block, value, () -> true);
    }

    private static CompletableFuture<Void> writing(BlockDevice device, long block, int value, BooleanSupplier may) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread.ofVirtual().start(() -> {
            try (Arena arena = Arena.ofConfined()) {
                device.write(block * BLOCK, arena.allocate(BLOCK, BLOCK).fill((byte) value), may);
                done.complete(null);
            } catch (DeviceException | RuntimeException e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    private static int errno(CompletableFuture<Void> done) throws Exception {
        ExecutionException e = assertThrows(ExecutionException.class, () -> done.get(60, TimeUnit.SECONDS));
        return ((DeviceException) e.getCause()).errno();
    }

    private Severing severTwo() {
        return fencerOfOne.sever(new Fencer.Vanished("n2", 0x30, List.of(0x22L), List.of()));
    }

    @Test
    void whoIsSeveredIsRefused() throws Exception {
        write(two, 1, 'b');
        Severing severing = severTwo();
        assertTrue(severing.confirmed(), severing.saw());
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 1, 'x')).errno());
        assertEquals('b', read(one, 1));
        write(one, 1, 'c');
        assertEquals('c', read(two, 1), "it may read");
        assertTrue(severTwo().confirmed(), "once more does no harm");
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 1, 'x')).errno());
    }

    @Test
    void itComesBackUnderItsNextSession() throws Exception {
        assertTrue(severTwo().confirmed());
        fencerOfTwo.admit(0x33, List.of(0x22L), true, () -> true);
        write(two, 2, 'd');
        assertTrue(severTwo().confirmed(), "a severing of the older session leaves the newer alone");
        write(two, 2, 'e');
        assertEquals('e', read(one, 2));
    }

    /** The next process of a node, while a connection of the last one is still there. */
    @Test
    void anOlderSessionOfItsOwnIsRefused() throws Exception {
        write(two, 3, 'a');
        IscsiDevice next = device(target.port(), "fs/n2 on another host");
        new ReservationFencer(next).admit(0x33, List.of(0x22L), false, () -> true);
        write(next, 3, 'b');
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 3, 'x')).errno());
        assertEquals('b', read(one, 3));
    }

    @Test
    void nobodyWritesUnregistered() throws Exception {
        IscsiDevice stranger = device(target.port(), "fs/stranger");
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(stranger, 4, 'x')).errno());
        assertFalse(new ReservationFencer(stranger).sever(new Fencer.Vanished("n2", 0x30, List.of(0x22L), List.of())).confirmed());
        write(two, 4, 'b');
    }

    @Test
    void aUnitThatIsMadeNewIsNobodys() throws Exception {
        IscsiDevice maker = device(target.port(), "mkfs");
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(maker, 4, 'x')).errno());
        ReservationFencer.clear(maker);
        write(maker, 4, 'm');
        ReservationFencer.clear(maker);
        write(maker, 4, 'n');
        assertEquals('n', read(one, 4));
    }

    /** It has logged in from another host, and the last one only stood still. */
    @Test
    void whoLoggedInBeforeUnderTheSameNameIsRefused() throws Exception {
        IscsiDevice first = device(target.port(), "fs/n3");
        AtomicBoolean stands = new AtomicBoolean(true);
        new ReservationFencer(first).admit(0x23, List.of(), true, stands::get);
        write(first, 3, 'a');
        stands.set(false);
        IscsiDevice next = device(target.port(), "fs/n3");
        new ReservationFencer(next).admit(0x33, List.of(0x23L), false, () -> true);
        write(next, 3, 'b');
        assertThrows(DeviceException.class, () -> write(first, 3, 'x'));
        assertEquals('b', read(one, 3));
        write(next, 3, 'c');
        assertEquals('c', read(one, 3));
    }

    /** Without a fencer: the last process was killed with writes in its host's sockets, which go on sending. The next login of the same name ends the connection, and the reset what the target has of it. */
    @Test
    void whatAnEarlierLoginHasInTheNetworkDoesNotLandAfterTheNext() throws Exception {
        ReservationFencer.clear(device(target.port(), "mkfs"));
        IscsiDevice first = device(relay.port(), "fs/n3");
        write(first, 3, 'a');
        relay.silence();
        AtomicBoolean lives = new AtomicBoolean(true);
        for (int k = 0; k < 4; k++) {
            writing(first, 3 + k, 'x', lives::get);
        }
        Thread.sleep(500);
        // A killed process sends nothing again.
        lives.set(false);
        IscsiDevice next = device(target.port(), "fs/n3");
        assertEquals(1, target.sessions("fs-n3"));
        assertTrue(next.reset());
        for (int k = 0; k < 4; k++) {
            write(next, 3 + k, 'b');
        }
        relay.open();
        Thread.sleep(1_500);
        for (int k = 0; k < 4; k++) {
            assertEquals('b', read(next, 3 + k));
        }
    }

    /** The holder of the reservation is gone; who was severed must not get in by that. */
    @Test
    void theReservationOutlivesItsHolder() throws Exception {
        assertTrue(severTwo().confirmed());
        one.close();
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 5, 'x')).errno());
        IscsiDevice three = device(target.port(), "fs/n3");
        new ReservationFencer(three).admit(0x44, List.of(), true, () -> true);
        write(three, 5, 'c');
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 5, 'x')).errno());
    }

    @Test
    void aLostConnectionIsMadeAgainAndWritesGoOn() throws Exception {
        write(two, 6, 'a');
        relay.cut();
        CompletableFuture<Void> waits = writing(two, 6, 'b');
        Thread.sleep(1_500);
        assertFalse(waits.isDone(), "it waits for the target");
        relay.open();
        waits.get(60, TimeUnit.SECONDS);
        assertEquals('b', read(one, 6));
        assertTrue(severTwo().confirmed(), "it is registered with its new connection, too, and can be severed");
        assertEquals(DeviceException.REFUSED, assertThrows(DeviceException.class, () -> write(two, 6, 'x')).errno());
    }

    /** tgt asks for the size of a unit when it is made. */
    @Test
    void aUnitThatHasGrownIsUsedToItsNewEnd() throws Exception {
        assertEquals(BYTES, one.sizeBytes());
        TgtTarget.image(directory, 2 * BYTES);
        target.restart();
        // Both are connected again, and admitted.
        write(one, 4, 'a');
        write(two, 5, 'b');
        assertEquals(2 * BYTES, one.sizeBytes());
        assertEquals(2 * BYTES, two.sizeBytes());
        long last = 2 * BYTES / BLOCK - 1;
        write(two, last, 'c');
        assertEquals('c', read(one, last));
    }

    /** Node one has seen that the unit has grown and stores there; two is told of it by etcd and reads what is there before it has asked for the size. */
    @Test
    void whatIsBehindTheEndThatWasKnownIsThereOnceTheUnitHasGrown() throws Exception {
        TgtTarget.image(directory, 2 * BYTES);
        target.restart();
        write(one, 4, 'a');
        write(two, 5, 'b');
        assertEquals(2 * BYTES, one.sizeBytes());
        long last = 2 * BYTES / BLOCK - 1;
        write(one, last, 'c');
        assertEquals('c', read(two, last));
        assertEquals(EIO, assertThrows(DeviceException.class, () -> read(two, last + 1)).errno());
        assertEquals(EIO, assertThrows(DeviceException.class, () -> write(two, last + 1, 'x')).errno());
    }

    @Test
    void whatIsBehindTheEndOfAUnitThatHasShrunkIsAnErrorOfTheDevice() throws Exception {
        long last = BYTES / BLOCK - 1;
        write(two, last, 'a');
        TgtTarget.image(directory, BYTES / 2);
        target.restart();
        assertEquals(EIO, assertThrows(DeviceException.class, () -> read(two, last)).errno(), "it has not asked yet");
        assertEquals(BYTES / 2, two.sizeBytes());
        assertEquals(EIO, assertThrows(DeviceException.class, () -> read(two, last)).errno());
        assertEquals(EIO, assertThrows(DeviceException.class, () -> write(two, last, 'x')).errno());
        write(two, 5, 'b');
        assertEquals('b', read(one, 5));
    }

    @Test
    void nothingMoreIsSentOnceItMayNot() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment twoCommands = arena.allocate(1 << 20, BLOCK).fill((byte) 'b');
            assertEquals(DeviceException.LATE, assertThrows(DeviceException.class, () -> two.write(0, twoCommands, () -> asked.incrementAndGet() < 2)).errno());
        }
        assertEquals('b', read(one, 127));
        assertEquals(0, read(one, 128));
    }

    /** What it waited for is over when it is connected again: the target has ended all that came on the last connection. */
    @Test
    void nothingIsSentAgainOnceItMayNot() throws Exception {
        write(two, 6, 'a');
        relay.cut();
        AtomicBoolean may = new AtomicBoolean(true);
        CompletableFuture<Void> waits = writing(two, 6, 'b', may::get);
        Thread.sleep(1_500);
        assertFalse(waits.isDone(), "it waits for the target");
        may.set(false);
        relay.open();
        assertEquals(DeviceException.LATE, errno(waits));
        assertEquals('a', read(one, 6));
    }

    /** It was severed while it was cut off: its session is gone, so that it must not register again on its new connection. */
    @Test
    void whoWasSeveredMeanwhileDoesNotWriteOnItsNextConnection() throws Exception {
        relay.cut();
        CompletableFuture<Void> waits = writing(two, 7, 'x');
        twoStands.set(false);
        assertTrue(severTwo().confirmed());
        write(one, 7, 'c');
        relay.open();
        errno(waits);
        assertThrows(DeviceException.class, () -> write(two, 7, 'x'));
        assertEquals('c', read(one, 7));
    }

    /** What it had sent and the target has not got yet lands nowhere, however long after. */
    @Test
    void aWriteOnItsWayIsRefusedWhenItArrives() throws Exception {
        write(two, 8, 'a');
        relay.silence();
        CompletableFuture<Void> late = writing(two, 8, 'x');
        Thread.sleep(300);
        assertTrue(severTwo().confirmed());
        write(one, 8, 'c');
        relay.open();
        assertEquals(DeviceException.REFUSED, errno(late));
        assertEquals('c', read(one, 8));
    }

    /** Others' commands go on while a node is severed: the reset of the unit tells each of them once, and nobody's caller hears of it. */
    @Test
    void othersHearNothingOfIt() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        List<CompletableFuture<Integer>> others = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            int block = 100 + i;
            CompletableFuture<Integer> count = new CompletableFuture<>();
            Thread.ofVirtual().start(() -> {
                try {
                    int n = 0;
                    for (; !over.get(); n++) {
                        write(one, block, n & 0x7f);
                        assertEquals(n & 0x7f, read(one, block));
                    }
                    count.complete(n);
                } catch (DeviceException | RuntimeException | AssertionError e) {
                    count.completeExceptionally(e);
                }
            });
            others.add(count);
        }
        for (int i = 0; i < 10; i++) {
            Thread.sleep(50);
            assertTrue(severTwo().confirmed());
            long session = 0x23 + i;
            fencerOfTwo.admit(session, List.of(session - 1), false, () -> true);
        }
        over.set(true);
        for (CompletableFuture<Integer> count : others) {
            assertTrue(count.get(60, TimeUnit.SECONDS) > 0);
        }
    }

}
