package io.etcfs.linux.mount;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** On a device that nothing is mounted with: the kernel refuses all notifications. */
class FuseNotifierTest {
    private final AtomicBoolean closed = new AtomicBoolean();
    private final List<Throwable> errors = new ArrayList<>();
    private FuseConnection connection;

    @BeforeEach
    void open() throws Exception {
        assumeTrue(Files.isWritable(Path.of("/dev/fuse")));
        connection = FuseConnection.open(() -> closed.set(true));
    }

    private FuseNotifier notifier(boolean canExpire) {
        return new FuseNotifier(connection, canExpire, true, () -> { }, (thread, thrown) -> errors.add(thrown));
    }

    @Test
    void aKernelThatCannotExpireIsSentNothing() {
        Thread[] ranOn = new Thread[1];
        FuseNotifier notifier = notifier(false);
        notifier.invalidateEntry(1, new byte[] {'f'}, true, () -> ranOn[0] = Thread.currentThread());
        assertEquals(Thread.currentThread(), ranOn[0]);
        assertEquals(0, notifier.threads());
        connection.release();
    }

    @Test
    void eachIsDoneOnceWhateverBecomesOfIt() throws Exception {
        FuseNotifier notifier = notifier(true);
        CountDownLatch done = new CountDownLatch(2_001);
        for (int i = 0; i < 1_000; i++) {
            notifier.invalidateEntry(1, new byte[] {'f'}, false, done::countDown);
            notifier.invalidatePages(i + 2, 0, 0, () -> {
                done.countDown();
                if (done.getCount() % 500 == 0) {
                    throw new IllegalStateException("meant to happen");
                }
            });
            if (i == 500) {
                assertFalse(closed.get());
                connection.release();
            }
        }
        assertFalse(done.await(100, TimeUnit.MILLISECONDS));
        assertEquals(1, done.getCount());
        assertTrue(closed.get());
        assertTrue(notifier.threads() <= FuseNotifier.MAX_THREADS);
        notifier.invalidateAttributes(2, done::countDown);
        assertTrue(done.await(5, TimeUnit.SECONDS));
        assertEquals(List.of(), errors);
    }
}
