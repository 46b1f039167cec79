package io.etcfs.core.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.Defragmentation.Defragment;
import io.etcfs.core.store.Defragmentation.LeftToOperator;
import io.etcfs.core.store.Defragmentation.MoveLeader;
import io.etcfs.core.store.Defragmentation.Nothing;
import java.util.List;
import org.junit.jupiter.api.Test;

class DefragmentationTest {
    private static final long MIB = 1L << 20;

    private static StoreStatus.Member member(String endpoint, boolean leader, long sizeMib, long inUseMib) {
        return new StoreStatus.Member(endpoint, "3.6.16", endpoint.hashCode(), leader, sizeMib * MIB, inUseMib * MIB, null);
    }

    private static Defragmentation.Step next(long quotaMib, boolean alarm, StoreStatus.Member... members) {
        return Defragmentation.next(new StoreStatus(1, 1, 0, 0, quotaMib * MIB, alarm, List.of(members)));
    }

    @Test
    void onlyAFileThatHasGrownAndWouldBecomeMuchSmaller() {
        assertEquals(new Nothing(), next(64, false, member("a", true, 54, 1)));
        assertInstanceOf(Defragment.class, next(64, false, member("a", true, 55, 1)));
        assertInstanceOf(Defragment.class, next(128, false, member("a", false, 116, 84), member("b", true, 10, 10)));
        assertEquals(new Nothing(), next(128, false, member("a", false, 116, 85), member("b", true, 10, 10)));
    }

    @Test
    void oneAfterTheOtherAndTheLeaderLast() {
        StoreStatus.Member leader = member("a", true, 60, 10);
        StoreStatus.Member follower = member("b", false, 60, 10);
        assertEquals(new Defragment(follower), next(64, false, leader, follower, member("c", false, 60, 10)));
        assertEquals(new Defragment(leader), next(64, false, leader, member("b", false, 10, 10), member("c", false, 10, 10)));
    }

    /** What would hold up the leader for long is done once another one leads; what would hold up anybody for too long is not. */
    @Test
    void whatTakesLongIsDoneByFollowersOnly() {
        StoreStatus.Member leader = member("a", true, 2000, 500);
        StoreStatus.Member done = member("b", false, 500, 500);
        assertEquals(new MoveLeader(leader, done), next(2048, false, leader, done));
        assertEquals(new Defragment(member("a", false, 2000, 500)), next(2048, false, member("a", false, 2000, 500), member("b", true, 500, 500)));
        assertEquals(new LeftToOperator(leader), next(2048, false, leader));
        assertInstanceOf(LeftToOperator.class, next(8192, false, member("a", false, 8000, 1025), member("b", true, 2000, 1025)));
        assertInstanceOf(LeftToOperator.class, next(8192, false, member("a", true, 8000, 1025), done));
    }

    @Test
    void whoLooksAfterItIsToldWhatHelps() {
        assertTrue(remedy(64, false, member("a", true, 60, 55)).contains("--quota-backend-bytes"));
        assertTrue(remedy(64, false, member("a", true, 60, 10)).startsWith("a node defragments"));
        assertTrue(remedy(64, false, member("a", true, 54, 10)).startsWith("a node defragments"));
        assertTrue(remedy(64, true, member("a", true, 54, 10)).contains("etcdctl defrag"));
        assertTrue(remedy(64, true, member("a", true, 64, 10)).contains("etcdctl defrag"));
        assertTrue(remedy(2048, false, member("a", true, 2040, 100)).startsWith("defragment its members"));
    }

    private static String remedy(long quotaMib, boolean alarm, StoreStatus.Member member) {
        return Defragmentation.remedy(new StoreStatus(1, 1, member.dbSizeBytes(), member.dbInUseBytes(), quotaMib * MIB, alarm, List.of(member)));
    }

    /** Nor is one taken away from a cluster that lacks one already, or from one that somebody has to disarm anyway. */
    @Test
    void notWhileAMemberIsAwayOrTheAlarmIsRaised() {
        StoreStatus.Member grown = member("a", true, 60, 10);
        assertInstanceOf(LeftToOperator.class, next(64, false, grown, StoreStatus.Member.silent("b", "no answer in time")));
        assertInstanceOf(LeftToOperator.class, next(64, false, member("a", false, 60, 10), member("b", false, 10, 10)));
        assertInstanceOf(LeftToOperator.class, next(64, true, grown));
    }
}
