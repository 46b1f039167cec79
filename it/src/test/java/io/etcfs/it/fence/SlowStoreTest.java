package io.etcfs.it.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.fence.Severing;
import io.etcfs.linux.iscsi.IscsiDevice;
import io.etcfs.linux.scsi.ReservationFencer;
import io.etcfs.node.daemon.FencerChoice;
import io.etcfs.node.daemon.SharedDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the target has accepted from a node, and its backing store is slow to write, when the node is severed. PREEMPT does not wait for that. */
@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SlowStoreTest {
    private static final int BLOCK = BlockDevice.BLOCK_BYTES;
    private static final int SLOW_S = 3;

    private Path image;
    private Process store;
    private TgtTarget target;

    @BeforeEach
    void start(@TempDir Path directory) throws Exception {
        for (String program : List.of("nbdkit", "nbdfuse")) {
            assumeTrue(new ProcessBuilder("sh", "-c", "command -v " + program).redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor() == 0, program + " is not installed");
        }
        image = Files.createFile(directory.resolve("slow.img"));
        store = new ProcessBuilder("nbdfuse", image.toString(), "--command", "nbdkit", "-s", "--filter=delay", "memory", "64M", "wdelay=" + SLOW_S).redirectErrorStream(true)
                .redirectOutput(directory.resolve("nbd.log").toFile()).start();
        for (int i = 0; Files.size(image) == 0; i++) {
            assertTrue(i < 100 && store.isAlive(), "the slow file does not appear");
            Thread.sleep(100);
        }
        target = new TgtTarget(directory, image);
    }

    @AfterEach
    void stop() throws Exception {
        if (target != null) {
            target.close();
        }
        if (store != null) {
            new ProcessBuilder("umount", "-l", image.toString()).start().waitFor();
            store.destroy();
            store.waitFor(10, TimeUnit.SECONDS);
        }
    }

    private static MemorySegment block(Arena arena, int value) {
        return arena.allocate(BLOCK, BLOCK).fill((byte) value);
    }

    /** A process is killed while the target writes; the next one of that node opens the device without a fencer. */
    @Test
    void whoComesBackWaitsForWritesThatWereAccepted() throws Exception {
        String address = TgtTarget.address(target.port()).toString();
        try (Arena arena = Arena.ofShared();
                IscsiDevice killed = IscsiDevice.open(TgtTarget.address(target.port()), "fs/n2", () -> { })) {
            MemorySegment late = block(arena, 'x');
            AtomicBoolean lives = new AtomicBoolean(true);
            Thread.ofVirtual().start(() -> {
                try {
                    killed.write(0, late, lives::get);
                } catch (DeviceException e) {
                    // The next login ends this one.
                }
            });
            Thread.sleep(500);
            // A killed process sends nothing again.
            lives.set(false);
            long begin = System.nanoTime();
            try (BlockDevice next = SharedDevice.open(address, "fs/n2", FencerChoice.NONE, () -> { }, 32).device()) {
                long tookMs = (System.nanoTime() - begin) / 1_000_000;
                assertTrue(tookMs > 1_500, "open after " + tookMs + " ms, while the write was on its way");
                next.write(0, block(arena, 'c'));
                Thread.sleep(SLOW_S * 1_000L + 1_000);
                MemorySegment read = arena.allocate(BLOCK, BLOCK);
                next.read(0, read);
                assertEquals('c', read.get(ValueLayout.JAVA_BYTE, 0));
            }
        }
    }

    @Test
    void whoSeversWaitsForWritesThatWereAccepted() throws Exception {
        try (Arena arena = Arena.ofShared();
                IscsiDevice one = IscsiDevice.open(TgtTarget.address(target.port()), "fs/n1", () -> { });
                IscsiDevice two = IscsiDevice.open(TgtTarget.address(target.port()), "fs/n2", () -> { })) {
            ReservationFencer fencer = new ReservationFencer(one);
            fencer.admit(0x11, List.of(), true, () -> true);
            new ReservationFencer(two).admit(0x22, List.of(), true, () -> true);
            MemorySegment late = block(arena, 'x');
            CompletableFuture<Void> accepted = new CompletableFuture<>();
            Thread.ofVirtual().start(() -> {
                try {
                    two.write(0, late);
                    accepted.complete(null);
                } catch (DeviceException e) {
                    accepted.completeExceptionally(e);
                }
            });
            Thread.sleep(500);
            long begin = System.nanoTime();
            Severing severing = fencer.sever(new Fencer.Vanished("n2", 0x30, List.of(0x22L), List.of()));
            long tookMs = (System.nanoTime() - begin) / 1_000_000;
            assertTrue(severing.confirmed(), severing.saw());
            assertTrue(tookMs > 1_500, "confirmed after " + tookMs + " ms, while the write was on its way");
            one.write(0, block(arena, 'c'));
            Thread.sleep(SLOW_S * 1_000L + 1_000);
            MemorySegment read = arena.allocate(BLOCK, BLOCK);
            one.read(0, read);
            assertEquals('c', read.get(ValueLayout.JAVA_BYTE, 0));
            accepted.get(10, TimeUnit.SECONDS);
        }
    }
}
