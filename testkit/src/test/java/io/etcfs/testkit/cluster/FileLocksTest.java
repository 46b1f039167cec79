package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fs.Call;
import io.etcfs.core.fs.ClusterNode;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.NodeLocks;
import io.etcfs.core.store.Outcome;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class FileLocksTest {
    private static final long END = Long.MAX_VALUE;

    private TestCluster cluster;
    private HookedStore wayOfA;
    private ClusterNode n1;
    private ClusterNode n2;
    private File a;
    private File b;

    /** A file that a process has open. */
    private static final class File {
        final ClusterNode node;
        final long ino;
        final long handle;

        File(ClusterNode node, String name) throws FsException {
            this.node = node;
            ino = node.lookup(call(), 1, name.getBytes()).ino();
            handle = node.open(call(), ino, 2, false).handle();
        }

        static Call call() {
            return new Call(1, 0, 0, 1, true, Call.Interruption.NEVER);
        }

        static HeldLock range(long owner, long start, long end, boolean exclusive) {
            return new HeldLock(new LockOwner(false, owner), start, end, exclusive, (int) (100 + owner));
        }

        void write(long owner, long start, long end) throws FsException {
            node.lock(call(), ino, handle, range(owner, start, end, true), false);
        }

        void read(long owner, long start, long end) throws FsException {
            node.lock(call(), ino, handle, range(owner, start, end, false), false);
        }

        void flock(long owner, boolean exclusive) throws FsException {
            node.lock(call(), ino, handle, new HeldLock(new LockOwner(true, owner), 0, END, exclusive, 1), false);
        }

        CompletableFuture<Void> later(long owner, long start, long end) {
            return later(range(owner, start, end, true), Call.Interruption.NEVER);
        }

        CompletableFuture<Void> later(HeldLock wanted, Call.Interruption interruption) {
            CompletableFuture<Void> done = new CompletableFuture<>();
            Thread.ofVirtual().start(() -> {
                try {
                    node.lock(new Call(1, 0, 0, 1, true, interruption), ino, handle, wanted, true);
                    done.complete(null);
                } catch (FsException e) {
                    done.completeExceptionally(e);
                }
            });
            return done;
        }

        void unlock(long owner, long start, long end) throws FsException {
            node.unlock(call(), ino, handle, new LockOwner(false, owner), start, end);
        }

        LockRequest.Conflict test(long owner, long start, long end, boolean exclusive) throws FsException {
            return node.getlk(call(), ino, handle, range(owner, start, end, exclusive));
        }

        void release() {
            node.release(call(), ino, handle);
        }
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void fails(Errno errno, Body body) {
        assertEquals(errno, assertThrows(FsException.class, body::run).errno());
    }

    private static void fails(Errno errno, CompletableFuture<Void> call) throws Exception {
        ExecutionException e = assertThrows(ExecutionException.class, () -> call.get(10, TimeUnit.SECONDS));
        assertEquals(errno, ((FsException) e.getCause()).errno());
    }

    private static void waits(CompletableFuture<Void> call) {
        assertThrows(TimeoutException.class, () -> call.get(100, TimeUnit.MILLISECONDS));
    }

    private static void done(CompletableFuture<Void> call) throws Exception {
        call.get(10, TimeUnit.SECONDS);
    }

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(64L << 20);
        wayOfA = new HookedStore(cluster.store);
        n1 = cluster.start("n1", wayOfA);
        n2 = cluster.start("n2");
        new TestClient(n1).write("/f", 0, new byte[1], 0);
        new TestClient(n1).write("/g", 0, new byte[1], 0);
        a = new File(n1, "f");
        b = new File(n2, "f");
    }

    @AfterEach
    void stop() {
        cluster.close();
        assertEquals(List.of(), cluster.stopped);
    }

    @Test
    void aLockOfOneNodeKeepsTheOtherAway() throws Exception {
        a.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> b.write(1, 9, 20));
        fails(Errno.EAGAIN, () -> b.read(1, 0, 0));
        b.write(1, 10, 20);
        fails(Errno.EAGAIN, () -> a.write(1, 0, END));
        assertEquals(new LockRequest.Conflict(10, 20, true, 0, false), a.test(1, 0, END, false));
        assertEquals(new LockRequest.Conflict(0, 9, true, 0, false), b.test(1, 0, END, false));
        assertEquals(new LockRequest.Conflict(0, 9, true, 101, true), a.test(2, 0, END, false), "of a process of this node");
        a.unlock(1, 0, 9);
        b.write(1, 0, END);
        b.unlock(1, 5, 5);
        a.write(1, 5, 5);
        assertEquals(new LockRequest.Conflict(6, END, true, 0, false), a.test(1, 6, 7, true));
        b.unlock(1, 6, END);
        assertNull(a.test(1, 6, 7, true));
    }

    @Test
    void readersOfBothNodesShareAndAWriterWaitsForAll() throws Exception {
        a.read(1, 0, END);
        b.read(1, 0, END);
        CompletableFuture<Void> writer = a.later(2, 5, 5);
        waits(writer);
        a.unlock(1, 0, END);
        waits(writer);
        b.unlock(1, 0, END);
        done(writer);
        fails(Errno.EAGAIN, () -> b.read(1, 0, 9));
    }

    @Test
    void anUpgradeIsRefusedAndKeepsWhatThereWas() throws Exception {
        a.read(1, 0, 9);
        b.read(1, 0, 9);
        fails(Errno.EAGAIN, () -> a.write(1, 0, 9));
        fails(Errno.EAGAIN, () -> b.write(1, 0, 9));
        b.unlock(1, 0, 9);
        a.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> b.read(1, 0, 9));
        a.read(1, 0, 9);
        b.read(1, 0, 9);
    }

    @Test
    void flockAndFcntlDoNotSeeEachOther() throws Exception {
        a.flock(1, true);
        b.write(1, 0, END);
        fails(Errno.EAGAIN, () -> b.flock(1, false));
        fails(Errno.EAGAIN, () -> a.write(1, 0, 0));
    }

    /** The last close, also of a process that was killed: the kernel tells only of the handle. */
    @Test
    void closingFreesWhatWasTakenThroughTheHandle() throws Exception {
        a.flock(1, true);
        CompletableFuture<Void> waiter = b.later(new HeldLock(new LockOwner(true, 1), 0, END, true, 1), Call.Interruption.NEVER);
        waits(waiter);
        a.release();
        done(waiter);
    }

    /** The kernel frees what a process had a moment after it has ended. */
    @Test
    void aLockOfAProcessThatHasEndedIsNotReportedAsHeld() throws Exception {
        n1.processes(pid -> pid == 101);
        a.write(1, 0, 9);
        CompletableFuture.runAsync(() -> {
            try {
                n1.flush(File.call(), a.ino, a.handle, 1);
            } catch (FsException e) {
                throw new IllegalStateException(e);
            }
        }, CompletableFuture.delayedExecutor(50, TimeUnit.MILLISECONDS));
        new File(n1, "f").write(2, 0, 9);
        long begun = System.nanoTime();
        fails(Errno.EAGAIN, () -> new File(n1, "f").write(3, 0, 9));
        assertTrue(System.nanoTime() - begun < 400_000_000L, "the process of this one is alive");
    }

    /** flush names the owner: another process's locks through the same handle stay. */
    @Test
    void aCloseFreesTheLocksOfTheProcessThatCloses() throws Exception {
        a.write(1, 0, 9);
        a.write(2, 10, 19);
        n1.flush(File.call(), a.ino, a.handle, 1);
        b.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> b.write(1, 10, 19));
        n1.flush(File.call(), a.ino, a.handle, 2);
        b.write(1, 10, 19);
    }

    @Test
    void aSignalEndsAWaitAndLeavesNothing() throws Exception {
        for (File holder : List.of(a, b)) {
            holder.write(1, 0, 9);
            boolean[] signalled = new boolean[1];
            Runnable[] wake = new Runnable[1];
            CompletableFuture<Void> waiter = a.later(File.range(2, 0, 9, true), new Call.Interruption() {
                @Override
                public boolean callerIsDying() {
                    return false;
                }

                @Override
                public boolean signalled() {
                    return signalled[0];
                }

                @Override
                public void onSignal(Runnable w) {
                    wake[0] = w;
                }
            });
            waits(waiter);
            signalled[0] = true;
            wake[0].run();
            fails(Errno.EINTR, waiter);
            holder.unlock(1, 0, 9);
            b.write(3, 0, 9);
            b.unlock(3, 0, 9);
        }
    }

    /** The signal comes as the lock gets free: the wait ends with the lock, or with EINTR and without it. */
    @Test
    void aWaitThatIsInterruptedDoesNotGetTheLockAllTheSame() throws Exception {
        int interrupted = 0;
        for (int i = 0; i < 2_000; i++) {
            a.write(1, 0, 9);
            AtomicBoolean signalled = new AtomicBoolean();
            AtomicReference<Runnable> wake = new AtomicReference<>();
            CompletableFuture<Void> waiter = a.later(File.range(2, 0, 9, true), new Call.Interruption() {
                @Override
                public boolean callerIsDying() {
                    return false;
                }

                @Override
                public boolean signalled() {
                    return signalled.get();
                }

                @Override
                public void onSignal(Runnable w) {
                    wake.set(w);
                }
            });
            while (wake.get() == null) {
                Thread.onSpinWait();
            }
            Thread signal = Thread.ofPlatform().start(() -> {
                signalled.set(true);
                wake.get().run();
            });
            a.unlock(1, 0, 9);
            signal.join();
            try {
                waiter.get(10, TimeUnit.SECONDS);
                a.unlock(2, 0, 9);
            } catch (ExecutionException e) {
                interrupted++;
            }
            assertNull(a.test(3, 0, 9, true), "after " + i + " rounds, " + interrupted + " interrupted");
        }
    }

    @Test
    void twoProcessesOfOneNodeThatWaitForEachOther() throws Exception {
        File g = new File(n1, "g");
        a.write(1, 0, 0);
        g.write(2, 0, 0);
        CompletableFuture<Void> first = a.later(2, 0, 0);
        waits(first);
        fails(Errno.EDEADLK, g.later(1, 0, 0));
        waits(first);
        a.unlock(1, 0, 0);
        done(first);
    }

    @Test
    void twoProcessesOfTwoNodesThatWaitForEachOther() throws Exception {
        File g = new File(n2, "g");
        a.write(1, 0, 0);
        g.write(2, 0, 0);
        CompletableFuture<Void> first = b.later(2, 0, 0);
        waits(first);
        CompletableFuture<Void> second = new File(n1, "g").later(1, 0, 0);
        fails(Errno.EDEADLK, second);
        waits(first);
        a.unlock(1, 0, 0);
        done(first);
    }

    /** Threads of one process that lock through descriptions of their own: one of them can always let go. */
    @Test
    void openFileDescriptionsOfOneProcessAreNoDeadlock() throws Exception {
        HeldLock first = new HeldLock(new LockOwner(false, 11), 0, 0, true, 77);
        HeldLock second = new HeldLock(new LockOwner(false, 12), 1, 1, true, 77);
        n1.lock(File.call(), a.ino, a.handle, first, false);
        n1.lock(File.call(), a.ino, a.handle, second, false);
        CompletableFuture<Void> one = a.later(new HeldLock(first.owner(), 1, 1, true, 77), Call.Interruption.NEVER);
        waits(one);
        CompletableFuture<Void> two = a.later(new HeldLock(second.owner(), 0, 0, true, 77), Call.Interruption.NEVER);
        waits(two);
        n1.unlock(File.call(), a.ino, a.handle, second.owner(), 1, 1);
        done(one);
        n1.unlock(File.call(), a.ino, a.handle, first.owner(), 0, 1);
        done(two);
    }

    /** While nobody else is interested a node asks etcd once for an inode, not for each lock. */
    @Test
    void aloneANodeDecidesByItself() throws Exception {
        a.write(1, 0, 0);
        a.unlock(1, 0, 0);
        long[] commits = new long[1];
        long begun = System.nanoTime();
        String prefix = new Keys(TestCluster.NAME).fileLocks().toString();
        wayOfA.hook = txn -> {
            if (txn.success().stream().anyMatch(op -> op.toString().contains(prefix))) {
                commits[0]++;
            }
            return null;
        };
        for (int i = 0; i < 1_000; i++) {
            a.write(1, i, i + 5);
            a.read(2, i + 6, i + 9);
            a.unlock(1, 0, END);
            a.unlock(2, 0, END);
        }
        // One a second tells people.
        assertTrue(commits[0] <= 1 + (System.nanoTime() - begun) / 1_000_000_000L, commits[0] + " transactions");
        a.write(1, 3, 3);
        fails(Errno.EAGAIN, () -> b.write(1, 3, 3));
    }

    @Test
    void anUnlockWithAnUnknownOutcomeIsRepeated() throws Exception {
        b.read(1, 50, 50);
        a.write(1, 0, 9);
        String record = new Keys(TestCluster.NAME).fileLocks(a.ino, "n1").toString();
        for (boolean carriedOut : new boolean[] {false, true}) {
            a.write(1, 0, 9);
            int[] lost = {3};
            wayOfA.hook = txn -> {
                if (txn.success().stream().noneMatch(op -> op.toString().contains(record)) || lost[0] == 0) {
                    return null;
                }
                lost[0]--;
                if (carriedOut) {
                    cluster.store.commit(txn, 1_000_000_000L);
                }
                return new Outcome.Unknown("lost");
            };
            a.unlock(1, 0, 9);
            assertEquals(0, lost[0]);
            b.write(1, 0, 9);
            b.unlock(1, 0, 9);
        }
    }

    @Test
    void aLockWithAnUnknownOutcomeIsHeldOrNot() throws Exception {
        b.read(1, 50, 50);
        a.read(2, 60, 60);
        String record = new Keys(TestCluster.NAME).fileLocks(a.ino, "n1").toString();
        int[] lost = {2};
        wayOfA.hook = txn -> {
            if (txn.success().stream().noneMatch(op -> op.toString().contains(record)) || lost[0] == 0) {
                return null;
            }
            if (lost[0]-- == 2) {
                cluster.store.commit(txn, 1_000_000_000L);
            }
            return new Outcome.Unknown("lost");
        };
        a.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> b.write(1, 0, 9));
        a.unlock(1, 0, 9);
        b.write(1, 0, 9);
    }

    /** The lease takes the locks along, and the process that had them learns of it by every call. */
    @Test
    void locksOfANodeThatIsCutOffAreLost() throws Exception {
        File other = new File(n1, "f");
        a.write(1, 0, 9);
        CompletableFuture<Void> waiter = b.later(1, 0, 9);
        waits(waiter);
        wayOfA.cut = true;
        done(waiter);
        wayOfA.cut = false;
        fails(Errno.EIO, () -> a.write(1, 100, 109));
        fails(Errno.EIO, () -> n1.fsync(File.call(), a.ino, a.handle, false));
        fails(Errno.EIO, () -> a.test(1, 100, 109, true));
        fails(Errno.EIO, () -> n1.getattr(File.call(), a.ino, a.handle));
        fails(Errno.EIO, () -> n1.flush(File.call(), a.ino, a.handle, 1));
        n1.fsync(File.call(), other.ino, other.handle, false);
        fails(Errno.EAGAIN, () -> other.write(1, 0, 9));
        a.release();
        b.unlock(1, 0, 9);
        other.write(1, 0, 9);
    }

    /** A node that is cut off for less than its session lives keeps its locks. */
    @Test
    void locksSurviveAMomentWithoutEtcd() throws Exception {
        a.write(1, 0, 9);
        wayOfA.cut = true;
        Thread.sleep(1_000);
        wayOfA.cut = false;
        n1.fsync(File.call(), a.ino, a.handle, false);
        fails(Errno.EAGAIN, () -> b.write(1, 0, 9));
        a.unlock(1, 0, 9);
        b.write(1, 0, 9);
    }

    /** For people: also what one node decides alone. */
    @Test
    void locksAreToldASecondLater() throws Exception {
        a.write(1, 0, 9);
        CompletableFuture<Void> waiter = a.later(2, 5, 5);
        Keys keys = new Keys(TestCluster.NAME);
        long until = System.nanoTime() + 5_000_000_000L;
        NodeLocks record;
        do {
            assertTrue(System.nanoTime() < until);
            Thread.sleep(50);
            record = NodeLocks.parseFrom(cluster.store.range(keys.fileLocks(a.ino, "n1"), null, 0, false, 0, 1_000_000_000L).only().value());
        } while (record.getHeldCount() == 0);
        assertTrue(record.getAlone());
        assertEquals(101, record.getHeld(0).getPid());
        assertEquals(102, record.getWaiting(0).getPid());
        assertNull(a.test(1, 0, 9, true));
        a.unlock(1, 0, 9);
        done(waiter);
        b.write(1, 0, 3);
        fails(Errno.EAGAIN, () -> b.write(1, 0, 5));
    }

    @Test
    void recordsThatNobodyUsesGo() throws Exception {
        a.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> b.write(1, 0, 9));
        a.unlock(1, 0, 9);
        Keys keys = new Keys(TestCluster.NAME);
        long until = System.nanoTime() + 20_000_000_000L;
        while (!cluster.store.range(keys.fileLocks(), keys.fileLocks().prefixEnd(), 0, false, 0, 1_000_000_000L).keyValues().isEmpty()) {
            assertTrue(System.nanoTime() < until);
            Thread.sleep(100);
        }
        b.write(1, 0, 9);
        fails(Errno.EAGAIN, () -> a.write(1, 0, 9));
        assertFalse(n2.fileLocks().isEmpty());
    }
}
