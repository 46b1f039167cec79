package io.etcfs.core.fs;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.store.Defragmentation;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRoom;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.HashMap;
import java.util.Map;

/**
 * What etcd needs so that it does not fill up with what nobody needs: its history is compacted and its members are defragmented, by one node of the cluster, and each node notices a database
 * that fills up before it refuses everything (an etcd in NOSPACE alarm can't be left by deleting).
 */
final class StoreUpkeep {
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long STATUS_NS = 5 * SECOND_NS;
    private static final long COMPACT_NS = 30 * SECOND_NS;
    /** Where etcd has little room: what can go of its history goes soon. */
    private static final long COMPACT_SOON_NS = SECOND_NS;
    /** Such a one can be filled between two looks. */
    private static final long SMALL_BYTES = 1L << 30;
    /** How often it is said again that etcd has no room. */
    private static final long SAY_AGAIN_NS = 60 * SECOND_NS;
    private static final long REQUEST_NS = 3 * SECOND_NS;
    /** A member that takes longer goes on, but is not waited for. */
    private static final long DEFRAGMENT_NS = 60 * SECOND_NS;
    /** Between two times at one member: it stands still meanwhile. */
    private static final long DEFRAGMENT_AGAIN_NS = 3 * SECOND_NS;
    private static final System.Logger LOG = System.getLogger(StoreUpkeep.class.getName());

    private final Node node;
    private long nextStatusNs;
    private long nextCompactionNs;
    private long compactTo;
    private StoreRoom room = StoreRoom.ENOUGH;
    private boolean halfFull;
    private long saidNs = Long.MIN_VALUE / 2;
    private final Map<String, Long> notBeforeNs = new HashMap<>();

    StoreUpkeep(Node node) {
        this.node = node;
        nextCompactionNs = node.monitor().nowNs() + COMPACT_NS;
    }

    /** Called every second or so. */
    void run() throws StoreUnavailableException, StoreRejectedException {
        long now = node.monitor().nowNs();
        boolean refused = node.monitor().with(node.pipeline()::takeRefusedForSpace);
        if (now >= nextStatusNs || refused || halfFull) {
            nextStatusNs = now + STATUS_NS;
            StoreRoom before = room;
            StoreStatus status = node.store().status(REQUEST_NS);
            watchSize(status);
            nextCompactionNs = before == StoreRoom.ENOUGH && room != before ? now : nextCompactionNs;
            defragment(status);
        }
        if (now >= nextCompactionNs) {
            nextCompactionNs = now + (room == StoreRoom.ENOUGH ? COMPACT_NS : COMPACT_SOON_NS);
            compact();
        }
    }

    private void watchSize(StoreStatus status) {
        halfFull = status.dbSizeBytes() >= StoreRoom.quota(status) / 2 || StoreRoom.quota(status) <= SMALL_BYTES;
        StoreRoom now = StoreRoom.of(status);
        if (now != room || now != StoreRoom.ENOUGH && node.monitor().nowNs() >= saidNs + SAY_AGAIN_NS) {
            saidNs = node.monitor().nowNs();
            say(now, status);
        }
        room = now;
        node.monitor().lock();
        try {
            node.space().storeRoom(now);
            node.monitor().changed();
        } finally {
            node.monitor().unlock();
        }
    }

    private static void say(StoreRoom room, StoreStatus status) {
        String sizes = status.dbSizeBytes() + " of " + StoreRoom.quota(status) + " bytes, " + status.dbInUseBytes() + " of them in use";
        String remedy = Defragmentation.remedy(status);
        switch (room) {
            case ENOUGH -> LOG.log(System.Logger.Level.INFO, "etcd has room again: {0}", sizes);
            case LITTLE -> LOG.log(System.Logger.Level.WARNING, "etcd is nearly full ({0}): new files, blocks and attributes are refused with ENOSPC, all else goes on. What helps: {1}", sizes, remedy);
            case NONE -> LOG.log(System.Logger.Level.ERROR, "etcd is full ({0}) and refuses every change, also those that remove something (alarm NOSPACE): nothing is published any more, "
                    + "and what changes something fails with ENOSPC. To be done: {1}, then etcdctl alarm disarm", sizes, remedy);
        }
    }

    /** One node does what is done once. For a moment two can take themselves for it, which does no harm: two members then stand still at once. */
    private boolean isFirst() throws StoreUnavailableException, StoreRejectedException {
        KeyValue first = node.store().range(node.keys().memberships(), node.keys().memberships().prefixEnd(), 1, true, 0, REQUEST_NS).only();
        return first != null && node.keys().parseNode(first.key()).node().equals(node.name());
    }

    private void defragment(StoreStatus status) throws StoreUnavailableException, StoreRejectedException {
        if (Fault.ETCD_NOT_DEFRAGMENTED.on()) {
            return;
        }
        switch (Defragmentation.next(status)) {
            case Defragmentation.Nothing() -> { }
            // The log and etcfsctl status say it where something is refused for it.
            case Defragmentation.LeftToOperator(StoreStatus.Member member) -> LOG.log(System.Logger.Level.DEBUG, "etcd member {0} is not defragmented unasked", member.endpoint());
            case Defragmentation.Defragment(StoreStatus.Member member) -> {
                if (mayAsk(member)) {
                    long startNs = node.monitor().nowNs();
                    attempt(member, "defragment", () -> node.store().defragment(member.endpoint(), DEFRAGMENT_NS));
                    LOG.log(System.Logger.Level.INFO, "etcd member {0} had {1} bytes, {2} of them in use; defragmenting it took {3} ms", member.endpoint(), Long.toString(member.dbSizeBytes()),
                            Long.toString(member.dbInUseBytes()), (node.monitor().nowNs() - startNs) / 1_000_000);
                }
            }
            case Defragmentation.MoveLeader(StoreStatus.Member from, StoreStatus.Member to) -> {
                if (mayAsk(from)) {
                    attempt(from, "hand over the lead of", () -> node.store().moveLeader(from.endpoint(), to.memberId(), REQUEST_NS));
                    notBeforeNs.remove(from.endpoint());
                    LOG.log(System.Logger.Level.INFO, "etcd member {0} leads in the place of {1}, which is to be defragmented", to.endpoint(), from.endpoint());
                }
            }
        }
    }

    private boolean mayAsk(StoreStatus.Member member) throws StoreUnavailableException, StoreRejectedException {
        return node.monitor().nowNs() >= notBeforeNs.getOrDefault(member.endpoint(), Long.MIN_VALUE) && isFirst();
    }

    private interface Request {
        void send() throws StoreUnavailableException, StoreRejectedException;
    }

    private void attempt(StoreStatus.Member member, String what, Request request) throws StoreUnavailableException, StoreRejectedException {
        try {
            request.send();
            notBeforeNs.put(member.endpoint(), node.monitor().nowNs() + DEFRAGMENT_AGAIN_NS);
        } catch (StoreUnavailableException | StoreRejectedException e) {
            notBeforeNs.put(member.endpoint(), node.monitor().nowNs() + SAY_AGAIN_NS);
            LOG.log(System.Logger.Level.WARNING, "can''t {0} etcd member {1}, whose file has grown to {2} bytes, {3} of them in use: {4}", what, member.endpoint(),
                    Long.toString(member.dbSizeBytes()), Long.toString(member.dbInUseBytes()), e.getMessage());
            throw e;
        }
    }

    /** To what was the newest revision half a minute ago. */
    private void compact() throws StoreUnavailableException, StoreRejectedException {
        boolean first = isFirst();
        long newest = node.store().range(node.keys().superblock(), null, 0, true, 0, REQUEST_NS).revision();
        if (first && room != StoreRoom.ENOUGH) {
            // Pages that the last compaction freed count as free from etcd's next write on, and nobody may be writing.
            node.store().revokeLease(node.store().grantLease(1, REQUEST_NS).leaseId(), REQUEST_NS);
        }
        if (first && compactTo > 0) {
            try {
                node.store().compact(compactTo, REQUEST_NS);
            } catch (StoreRejectedException e) {
                // Somebody else compacted further.
                if (e.reason() != StoreRejectedException.Reason.COMPACTED) {
                    throw e;
                }
            }
        }
        compactTo = newest;
    }
}
