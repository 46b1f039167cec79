package io.etcfs.core.store;

import java.util.Comparator;
import java.util.List;

/**
 * Which member of etcd is to give back its free pages next. Its database's file only ever grows otherwise, and is what the quota counts: where records of many sizes come and go, it
 * reaches that with little in it, and no removal would make room again. One member at a time, the leader last, and none while another one does not answer.
 */
public final class Defragmentation {
    /** For as long as it takes (10 to 20 ms a MiB on a busy machine, 100 on one that is overloaded) the leader carries nothing out and answers no keep-alive: that must be short against the time that a session lives. */
    static final long LEADER_MAX_BYTES = 32L << 20;
    /** Who talks to a follower waits for it or goes elsewhere: within the time that a request has. */
    static final long FOLLOWER_MAX_BYTES = 1L << 30;

    private static final String BY_HAND = "defragment its members one after the other (etcdctl defrag)";

    private Defragmentation() {}

    /** What to do next. */
    public sealed interface Step {}

    /** All have room. */
    public record Nothing() implements Step {}

    public record Defragment(StoreStatus.Member member) implements Step {}

    /** It is a follower's turn to lead, so that the leader can be seen to as well. */
    public record MoveLeader(StoreStatus.Member from, StoreStatus.Member to) implements Step {}

    /** It would take too long to do it unasked, or a member does not answer. */
    public record LeftToOperator(StoreStatus.Member member) implements Step {}

    public static Step next(StoreStatus status) {
        long quota = StoreRoom.quota(status);
        List<StoreStatus.Member> answered = status.members().stream().filter(m -> m.error() == null).toList();
        List<StoreStatus.Member> grown = answered.stream().filter(m -> grown(m, quota)).sorted(Comparator.comparing(StoreStatus.Member::leader)).toList();
        if (grown.isEmpty()) {
            return new Nothing();
        }
        StoreStatus.Member first = grown.getFirst();
        boolean lacksOne = answered.size() < status.members().size() || answered.stream().noneMatch(StoreStatus.Member::leader);
        if (lacksOne || status.noSpaceAlarm()) {
            return new LeftToOperator(first);
        }
        if (first.dbInUseBytes() <= (first.leader() ? LEADER_MAX_BYTES : FOLLOWER_MAX_BYTES)) {
            return new Defragment(first);
        }
        if (!first.leader() || first.dbInUseBytes() > FOLLOWER_MAX_BYTES) {
            return new LeftToOperator(first);
        }
        return answered.stream().filter(m -> !m.leader()).findFirst().<Step>map(to -> new MoveLeader(first, to)).orElse(new LeftToOperator(first));
    }

    /** What makes room in an etcd that has little, for whoever looks after it. */
    public static String remedy(StoreStatus status) {
        if (!StoreRoom.worthDefragmenting(status) && next(status) instanceof Nothing) {
            return "remove files, or raise its --quota-backend-bytes";
        }
        return switch (next(status)) {
            case LeftToOperator left -> BY_HAND;
            case Nothing nothing when status.noSpaceAlarm() -> BY_HAND;
            case Nothing nothing -> "a node defragments its members once they have 85 % of it";
            case Defragment due -> "a node defragments its members (if it does not: etcdctl defrag)";
            case MoveLeader due -> "a node defragments its members (if it does not: etcdctl defrag)";
        };
    }

    /** Before anything is refused for its size, and only where it gains a quarter of the quota. */
    private static boolean grown(StoreStatus.Member member, long quota) {
        return member.dbSizeBytes() >= quota / 20 * 17 && member.dbSizeBytes() - member.dbInUseBytes() >= quota / 4;
    }
}
