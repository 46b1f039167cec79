package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.fs.Operations;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Set-user-id and set-group-id go with a change by somebody else: of a file that the group may not execute the latter stays, whoever changes it. */
@Timeout(60)
class SetIdBitsTest {
    private static final int O_RDWR = 2;
    private static final int O_TRUNC = 01000;

    private TestCluster cluster;
    private ClusterNode node;
    private int files;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        node = cluster.start("n1");
    }

    @AfterEach
    void stop() {
        Fault.plant(Set.of());
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    private static Call call() {
        return new Call(1, 1000, 1000, 1, true, Call.Interruption.NEVER);
    }

    private interface Change {
        void make(long ino, long handle) throws FsException;
    }

    /** The permission bits that are left of {@code mode}. */
    private int after(int mode, Change change) throws FsException {
        Operations.Created f = node.create(call(), 1, ("f" + ++files).getBytes(StandardCharsets.UTF_8), 0644, 0, O_RDWR);
        long ino = f.entry().ino();
        long handle = f.opened().handle();
        try {
            node.setattr(call(), ino, new Operations.Change(mode, null, null, null, null, null, null, handle, false));
            change.make(ino, handle);
            return node.getattr(call(), ino, handle).attributes().mode() & 07777;
        } finally {
            node.release(call(), ino, handle);
            node.forget(ino, 1);
        }
    }

    private void write(long ino, long handle) throws FsException {
        try (Arena arena = Arena.ofShared()) {
            node.write(call(), ino, handle, 0, arena.allocate(4096, 4096), O_RDWR, false, true);
        }
    }

    private void truncate(long ino, long handle) throws FsException {
        node.setattr(call(), ino, new Operations.Change(null, null, null, 0L, null, null, null, handle, true));
    }

    private void openTruncated(long ino, long handle) throws FsException {
        node.release(call(), ino, node.open(call(), ino, O_RDWR | O_TRUNC, true).handle());
    }

    private void chown(long ino, long handle) throws FsException {
        node.setattr(call(), ino, new Operations.Change(null, 1001, null, null, null, null, null, handle, false));
    }

    @Test
    void whatGoesAndWhatStays() throws Exception {
        for (Change change : List.<Change>of(this::write, this::truncate, this::openTruncated, this::chown)) {
            assertEquals(0755, after(06755, change));
            assertEquals(02644, after(06644, change));
            assertEquals(02745, after(02745, change));
            assertEquals(0614, after(02614, change));
        }
    }

    @Test
    void ifItAlwaysGoesThatIsSeen() throws Exception {
        Fault.plant(Set.of(Fault.SET_GROUP_ID_ALWAYS_GOES));
        assertEquals(0644, after(02644, this::write));
    }
}
