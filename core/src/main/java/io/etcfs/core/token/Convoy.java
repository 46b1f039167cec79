package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Requests about tokens of different resources, sent together: what comes while {@link #ON_THEIR_WAY} are on their way goes in the next one, each as a transaction of its
 * own inside of it. Who is alone waits for nobody, but lets those go on board who started together with him.
 *
 * <p>The keys that they write are those of one resource each, and of each resource there is one request at a time, so it makes no difference that the comparisons of all see the
 * state before the first. What becomes of one becomes of all: it may come late or never. Where etcd refuses them as a whole, each is sent by itself.
 */
final class Convoy {
    static final int ON_THEIR_WAY = 2;
    /** Each can read a page of names and one of inodes: while one group is decoded the next is read, and nobody waits for all of them. */
    static final int MOST_READS = 8;
    /** What they cost is the transaction. */
    static final int MOST_WRITES = 24;

    private final Monitor monitor;
    private final MetadataStore store;
    private final int most;
    private final Monitor.Waiters waiters;
    private final ArrayDeque<Request> queue = new ArrayDeque<>();
    private int onTheirWay;
    /** Somebody is about to leave, and lets others come. */
    private boolean boarding;

    /** To be made before any of the monitor's waits. */
    Convoy(Monitor monitor, MetadataStore store, int most) {
        this.most = most;
        this.monitor = monitor;
        this.store = store;
        this.waiters = monitor.new Waiters();
    }

    /** Answered with the monitor held. */
    private static final class Request {
        final Txn txn;
        Answer answer;

        Request(Txn txn) {
            this.txn = txn;
        }
    }

    /** One of both is null. */
    private record Answer(Outcome outcome, StoreRejectedException refused) {
        Outcome get() throws StoreRejectedException {
            if (refused != null) {
                throw refused;
            }
            return outcome;
        }
    }

    /** As {@link MetadataStore#commit}, but that it may have to wait for others' requests first. Without the monitor. */
    Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        Request mine = new Request(txn);
        List<Request> together = new ArrayList<>(List.of(mine));
        monitor.lock();
        try {
            queue.add(mine);
            if (onTheirWay < ON_THEIR_WAY && !boarding) {
                boarding = true;
                monitor.unlock();
                Thread.yield();
                monitor.lock();
                boarding = false;
            }
            while (mine.answer == null && (boarding || onTheirWay == ON_THEIR_WAY || !queue.contains(mine))) {
                waiters.awaitQuietly(monitor.nowNs() + 1_000_000_000L);
            }
            if (mine.answer != null) {
                return mine.answer.get();
            }
            queue.remove(mine);
            while (!queue.isEmpty() && together.size() < most) {
                together.add(queue.poll());
            }
            onTheirWay++;
            if (!queue.isEmpty()) {
                waiters.wake();
            }
        } finally {
            queue.remove(mine);
            monitor.unlock();
        }
        List<Answer> answers = List.of();
        try {
            answers = send(together, timeoutNs);
        } finally {
            monitor.lock();
            try {
                for (int i = 0; i < together.size(); i++) {
                    together.get(i).answer = i < answers.size() ? answers.get(i) : new Answer(new Outcome.Unknown("the node is stopping"), null);
                }
                onTheirWay--;
                waiters.wake();
            } finally {
                monitor.unlock();
            }
        }
        return mine.answer.get();
    }

    private List<Answer> send(List<Request> together, long timeoutNs) {
        List<Answer> answers = new ArrayList<>();
        if (together.size() > 1) {
            try {
                Outcome all = store.commit(new Txn(List.of(), together.stream().<Op>map(r -> new Op.Nested(r.txn)).toList(), List.of()), timeoutNs);
                for (int i = 0; i < together.size(); i++) {
                    answers.add(new Answer(all instanceof Outcome.Committed(TxnResult r) ? outcome(r.nested(i)) : all, null));
                }
                return answers;
            } catch (StoreRejectedException e) {
                // It had no effect: whose fault it was shows when each is sent by itself.
            }
        }
        for (Request r : together) {
            try {
                answers.add(new Answer(store.commit(r.txn, timeoutNs), null));
            } catch (StoreRejectedException e) {
                answers.add(new Answer(null, e));
            }
        }
        return answers;
    }

    private static Outcome outcome(TxnResult r) {
        return r.succeeded() ? new Outcome.Committed(r) : new Outcome.Conflict(r);
    }
}
