package io.etcfs.core.fs;

import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import io.etcfs.core.lock.Locks;
import java.util.function.IntPredicate;

/** How calls about file locks wait. */
final class Locking {
    /** The kernel frees what a process had that was killed or has ended some time after others can see that it is gone. */
    private static final long EXIT_LAG_NS = 500_000_000L;
    private static final long LOOK_NS = 2_000_000L;
    /** What another node's processes have given up by ending or closing may take so long to be seen here. */
    private static final long ELSEWHERE_LAG_NS = 5_000_000L;

    private final Node node;
    private final Locks locks;
    private volatile IntPredicate ended = pid -> false;

    Locking(Node node, Locks locks) {
        this.node = node;
        this.locks = locks;
    }

    /** @param ended whether the process of that number is gone or about to be. Asked without the monitor */
    void processes(IntPredicate ended) {
        this.ended = ended;
    }

    LockRequest.Conflict test(Call call, long ino, long handle, HeldLock wanted) throws FsException {
        return decideAtOnce(call, ino, handle, wanted, LockRequest.Kind.TEST).conflict();
    }

    void lock(Call call, long ino, long handle, HeldLock wanted, boolean wait) throws FsException {
        LockRequest r = wait ? decide(call, ino, handle, wanted, LockRequest.Kind.WAIT) : decideAtOnce(call, ino, handle, wanted, LockRequest.Kind.TRY);
        if (r.refusal() != null) {
            throw new FsException(r.refusal());
        }
    }

    /** Not at once if what is in the way is as good as gone. */
    private LockRequest decideAtOnce(Call call, long ino, long handle, HeldLock wanted, LockRequest.Kind kind) throws FsException {
        long begun = node.monitor().nowNs();
        boolean again = true;
        while (true) {
            LockRequest r = decide(call, ino, handle, wanted, kind);
            LockRequest.Conflict c = r.conflict();
            boolean gone = c != null && c.here() && c.pid() != 0 && ended.test(c.pid()) && node.monitor().nowNs() - begun < EXIT_LAG_NS;
            if (c == null || !gone && (c.here() || !again)) {
                return r;
            }
            if (!call.mayWait()) {
                throw MustWait.INSTANCE;
            }
            again = gone && again;
            node.monitor().pause(gone ? LOOK_NS : ELSEWHERE_LAG_NS);
        }
    }

    private LockRequest decide(Call call, long ino, long handle, HeldLock wanted, LockRequest.Kind kind) throws FsException {
        LockRequest[] asked = new LockRequest[1];
        boolean waits = kind == LockRequest.Kind.WAIT;
        Waiting.Held request = new Waiting.Held() {
            @Override
            public void begin() {
                if (waits) {
                    call.interruption().onSignal(locks::wake);
                }
            }

            /** Before anybody else has the monitor: what is not granted when the call fails must not be granted after that. */
            @Override
            public void end() {
                locks.withdraw(asked[0]);
            }

            @Override
            public boolean hopeless() {
                return waits && call.interruption().signalled() && !asked[0].answered();
            }

            @Override
            public boolean unlimited() {
                return waits;
            }
        };
        return node.waiting().run(call, request, a -> {
            node.vnodes().require(ino);
            if (asked[0] == null) {
                asked[0] = locks.ask(ino, handle, wanted, kind);
            }
            if (asked[0].answered()) {
                return asked[0];
            }
            if (!call.mayWait()) {
                // It is asked again where it may wait.
                locks.withdraw(asked[0]);
            }
            throw locks.undecided();
        });
    }

    void unlock(Call call, long ino, LockOwner owner, long start, long end) throws FsException {
        long[] version = {-1};
        node.waiting().run(call, a -> {
            if (version[0] < 0) {
                version[0] = locks.unlock(ino, owner, start, end);
            }
            if (!locks.gone(ino, version[0])) {
                throw locks.undecided();
            }
            return null;
        });
    }

    /** Somebody closes the file. True: the owner has locks on it. */
    boolean flushed(long ino, long handle, LockOwner owner) {
        return node.monitor().with(() -> {
            locks.flushed(ino, handle);
            return locks.has(ino, owner);
        });
    }
}
