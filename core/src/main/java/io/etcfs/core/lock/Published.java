package io.etcfs.core.lock;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.proto.NodeLocks;
import java.util.ArrayList;
import java.util.List;

/**
 * What a node's {@code flock:} record says of an inode.
 *
 * @param alone the node decides by itself about every lock of the inode: nobody else may take one. What it has is told now and then, for people
 */
public record Published(boolean alone, List<HeldLock> held, List<Waiting> waiting) {
    static final Published NOTHING = new Published(false, List.of(), List.of());
    static final Published ALONE = new Published(true, List.of(), List.of());

    /**
     * A process that waits.
     *
     * @param since  a revision not after its wait began
     * @param number orders the waits of one node
     */
    public record Waiting(HeldLock lock, long since, long number) {}

    HeldLock conflict(HeldLock wanted) {
        HeldLock first = null;
        for (HeldLock h : held) {
            // Owners of different nodes are different, whatever their numbers.
            if ((h.exclusive() || wanted.exclusive()) && h.owner().flock() == wanted.owner().flock() && h.overlaps(wanted.start(), wanted.end())
                    && (first == null || h.start() < first.start())) {
                first = h;
            }
        }
        return first;
    }

    byte[] encode(long session) {
        NodeLocks.Builder record = NodeLocks.newBuilder().setSession(session).setAlone(alone);
        held.forEach(h -> record.addHeld(range(h)));
        waiting.forEach(w -> record.addWaiting(range(w.lock).setSince(w.since).setNumber(w.number)));
        return record.build().toByteArray();
    }

    private static NodeLocks.Range.Builder range(HeldLock l) {
        return NodeLocks.Range.newBuilder().setOwner(l.owner().id()).setFlock(l.owner().flock()).setStart(l.start()).setEnd(l.end()).setExclusive(l.exclusive()).setPid(l.pid());
    }

    public static Published decode(byte[] value) throws InvalidProtocolBufferException {
        NodeLocks record = NodeLocks.parseFrom(value);
        List<HeldLock> held = new ArrayList<>();
        record.getHeldList().forEach(r -> held.add(lock(r)));
        List<Waiting> waiting = new ArrayList<>();
        record.getWaitingList().forEach(r -> waiting.add(new Waiting(lock(r), r.getSince(), r.getNumber())));
        return new Published(record.getAlone(), List.copyOf(held), List.copyOf(waiting));
    }

    private static HeldLock lock(NodeLocks.Range r) {
        return new HeldLock(new LockOwner(r.getFlock(), r.getOwner()), r.getStart(), r.getEnd(), r.getExclusive(), r.getPid());
    }
}
