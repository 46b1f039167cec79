package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Mode;
import io.etcfs.core.domain.Vnode;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.token.Blocked;

/**
 * EXCLUSIVE of a file's domain, kept over the steps of one change of its bytes: the token is not given on between them, so that no other node changes the file
 * in the middle. On this node the kernel sees to that, which holds the inode. Ends with the session: then the change is made again from its beginning.
 */
final class KeptToken implements AutoCloseable {
    /** Who makes a change that takes longer lets others in between: they wait no longer than this for one file. */
    private static final long MOST_NS = 1_000_000_000L;

    /** It went before the last step. */
    static final class Lost extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private static final Lost INSTANCE = new Lost();

        private Lost() {
            super(null, null, false, false);
        }
    }

    private final Node node;
    private final Call call;
    private final Vnode vnode;
    private Domain domain;
    private long sessionRevision;
    private long sinceNs;

    private KeptToken(Node node, Call call, Vnode vnode) {
        this.node = node;
        this.call = call;
        this.vnode = vnode;
    }

    /** @param held what the request may hold in the kernel while it waits for the token */
    static KeptToken take(Node node, Call call, Waiting.Held held, Vnode vnode) throws FsException {
        KeptToken kept = new KeptToken(node, call, vnode);
        kept.pin(held);
        return kept;
    }

    private void pin(Waiting.Held held) throws FsException {
        node.waiting().run(call, held, a -> {
            Domain d = node.tokens().requireForData(vnode.home, Mode.EXCLUSIVE);
            if (d.namesClosed || d.recalling && node.monitor().nowNs() >= d.heldSinceNs + d.holdNs) {
                // It goes in a moment. Were it kept by one change after the other, others would never get it.
                throw Blocked.INSTANCE;
            }
            if (!Fault.STEPS_WITHOUT_TOKEN.on()) {
                d.pins++;
            }
            domain = d;
            sessionRevision = node.session().revision();
            sinceNs = node.monitor().nowNs();
            return null;
        });
    }

    /**
     * The epoch to pass when the change is made again, after {@code triedInEpoch}; 0: it is the first try.
     *
     * @throws FsException EIO: others have had the token since the last try, may have been shown a part of the change, and have written over it
     */
    long againIn(long triedInEpoch) throws FsException {
        long epoch = node.monitor().with(() -> domain.epoch);
        if (triedInEpoch != 0 && epoch != triedInEpoch && !Fault.MADE_AGAIN_AFTER_OTHERS.on()) {
            throw new FsException(Errno.EIO);
        }
        return epoch;
    }

    /** Whether it was kept all the time so far. */
    boolean unbroken() {
        return node.monitor().with(() -> Fault.STEPS_WITHOUT_TOKEN.on() || domain.held == Mode.EXCLUSIVE && node.session().live() && node.session().revision() == sessionRevision);
    }

    /**
     * To begin a step, under the monitor: under another token it would go on with a change the first part of which others have been shown, and may have written over.
     *
     * @throws Lost make the change again from its beginning
     */
    void require() {
        if (!unbroken()) {
            throw Lost.INSTANCE;
        }
    }

    /** Between two steps of a change that may be long. */
    void letOthersIn() throws FsException {
        if (node.monitor().nowNs() - sinceNs > MOST_NS && unbroken()) {
            close();
            pin(Waiting.NOTHING);
        }
    }

    @Override
    public void close() {
        node.monitor().lock();
        try {
            if (domain != null) {
                if (!Fault.STEPS_WITHOUT_TOKEN.on()) {
                    domain.pins--;
                }
                domain = null;
                node.monitor().changed();
            }
        } finally {
            node.monitor().unlock();
        }
    }
}
