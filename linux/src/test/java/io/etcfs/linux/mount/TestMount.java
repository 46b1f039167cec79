package io.etcfs.linux.mount;

import io.etcfs.linux.call.MountCalls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.UnaryOperator;

/**
 * A {@link MemoryFilesystem} at a new directory, for one test. It is aborted and taken away when the test is over, when it takes longer than 20 s (the test
 * then fails, its calls getting errors), and when the virtual machine ends.
 */
final class TestMount implements AutoCloseable {
    private static final long LONGEST_MS = 20_000;

    final MemoryFilesystem filesystem = new MemoryFilesystem();
    final BlockingQueue<Throwable> errors = new LinkedBlockingQueue<>();
    final FuseSession session;
    final Path root;
    private final Thread hook = new Thread(this::force);
    private final Thread watchdog;

    /** @param transport DEV or URING */
    TestMount(Transport transport, UnaryOperator<MountOptions> change) throws Exception {
        root = Files.createTempDirectory("etcfs-mount").toRealPath();
        MountOptions options = change.apply(MountOptions.of("test source", root).withTransport(transport));
        Callable<FuseSession> mount = () -> FuseMount.mount(options, cache -> filesystem, (thread, thrown) -> errors.add(thrown));
        session = transport == Transport.URING ? UringSwitch.on(mount) : mount.call();
        Runtime.getRuntime().addShutdownHook(hook);
        watchdog = Thread.ofVirtual().start(() -> {
            try {
                Thread.sleep(LONGEST_MS);
                force();
            } catch (InterruptedException e) {
                return;
            }
        });
        session.start();
    }

    private void force() {
        session.abort();
        MountCalls.umount(root.toString(), MountCalls.MNT_DETACH | MountCalls.UMOUNT_NOFOLLOW);
    }

    Path path(String name) {
        return root.resolve(name);
    }

    @Override
    public void close() throws IOException {
        filesystem.before = (operation, call, ino, data) -> { };
        try {
            session.close();
        } finally {
            force();
            watchdog.interrupt();
            Runtime.getRuntime().removeShutdownHook(hook);
            Files.delete(root);
        }
    }
}
