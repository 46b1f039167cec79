package io.etcfs.core.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Arena;
import io.etcfs.core.record.proto.Departed;
import io.etcfs.core.record.proto.FenceDone;
import io.etcfs.core.record.proto.FenceIntent;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Membership;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.store.MemoryStore;
import io.etcfs.testkit.store.MonotonicClock;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The steps of a fence one by one: each can be the last that a controller does, be done without an answer, or find that the node is back. */
@Timeout(30)
class FenceStepsTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int ARENAS = 3;

    private final Keys keys = new Keys("test");
    private final MonotonicClock clock = new MonotonicClock();
    private MetadataStore store;

    /** The end of a controller. */
    private static final class Crash extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private enum Fate { BEFORE, AFTER, NO_ANSWER }

    @BeforeEach
    void aNodeThatVanished() throws Exception {
        store = new MemoryStore(clock, (name, body) -> Thread.ofVirtual().name(name).start(body));
        put(keys.generation("n2"), Generation.newBuilder().setGeneration(4).build().toByteArray());
        for (int i = 0; i < ARENAS; i++) {
            put(keys.arena("n2", i), Arena.newBuilder().setFreeBlocks(i).build().toByteArray());
        }
    }

    private void put(Key key, byte[] value) throws StoreRejectedException {
        store.commit(new Txn(List.of(), List.of(Op.put(key, value)), List.of()), SECOND);
    }

    private KeyValue get(Key key) throws Exception {
        return store.range(key, null, 0, false, 0, SECOND).only();
    }

    private long count(Key prefix) throws Exception {
        return store.range(prefix, prefix.prefixEnd(), 0, true, 0, SECOND).count();
    }

    private NodeRecords read() throws Exception {
        return NodeRecords.read(store, keys, "n2", SECOND);
    }

    private Fence fence(MetadataStore way) {
        return new Fence(way, clock, keys, "n1");
    }

    private NodeRecords pending() throws Exception {
        assertTrue(fence(store).record(read(), Membership.newBuilder().setHost("h2").setInstanceId("i-2").setBootId("b").build(), 77));
        return read();
    }

    /** The step that a count of requests that change something comes to is the last, as this fate has it. */
    private MetadataStore failing(int step, Fate fate) {
        int[] changes = {0};
        return (MetadataStore) Proxy.newProxyInstance(MetadataStore.class.getClassLoader(), new Class<?>[] {MetadataStore.class}, (proxy, method, arguments) -> {
            boolean counts = method.getName().equals("grantLease") || arguments != null && arguments[0] instanceof Txn;
            boolean last = counts && ++changes[0] == step;
            if (changes[0] > step || last && fate == Fate.BEFORE) {
                throw new Crash();
            }
            try {
                Object answer = method.invoke(store, arguments);
                if (last && fate == Fate.AFTER) {
                    throw new Crash();
                }
                if (last && answer instanceof Outcome) {
                    // It goes on, not knowing: so that what it does then counts, too.
                    changes[0] = Integer.MIN_VALUE;
                    return new Outcome.Unknown("no answer");
                }
                return answer;
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    /** Another controller, or the same again, once the claim's lease has run out. Says how often it had the node severed. */
    private int carriedOutInTheEnd(int severedBefore) throws Exception {
        int[] severed = {severedBefore};
        for (int tries = 0; read().verdict() != NodeRecords.Verdict.FENCED; tries++) {
            assertTrue(tries < 10, "it does not end");
            NodeRecords found = read();
            if (found.claim() != null) {
                store.revokeLease(found.claim().leaseId(), SECOND);
            }
            if (found.verdict() == NodeRecords.Verdict.GONE) {
                fence(store).record(found, Membership.getDefaultInstance(), 0);
            } else {
                fence(store).carryOut(found, (intent, claim) -> {
                    severed[0]++;
                    assertEquals(ARENAS, count(), "an arena was given away before the node was severed");
                    return new Severing(true, "seen");
                });
            }
        }
        return severed[0];
    }

    private long count() {
        try {
            return count(keys.arenasOf("n2"));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void assertFencedOnce() throws Exception {
        assertEquals(5, Generation.parseFrom(get(keys.generation("n2")).value()).getGeneration(), "the generation is raised once");
        assertEquals(0, count(keys.arenasOf("n2")));
        assertEquals(ARENAS, count(keys.freeArenas()));
        assertNull(get(keys.fencePending("n2")));
        assertNull(get(keys.fenceClaim("n2")));
        FenceDone done = FenceDone.parseFrom(get(keys.fenceDone("n2")).value());
        assertEquals(5, done.getGeneration());
        assertEquals("seen", done.getSaw());
    }

    @Test
    void anIntentSaysWhoVanished() throws Exception {
        FenceIntent intent = FenceIntent.parseFrom(pending().pending().value());
        assertEquals(List.of("h2", "i-2", "b", "n1"), List.of(intent.getHost(), intent.getInstanceId(), intent.getBootId(), intent.getController()));
        assertEquals(77, intent.getSession());
        assertEquals(4, intent.getGeneration());
    }

    @Test
    void aControllerEndsAtAnyStep() throws Exception {
        int steps = 0;
        for (Fate fate : Fate.values()) {
            for (int step = 1; ; step++) {
                aNodeThatVanished();
                int[] severed = {0};
                boolean ended = false;
                try {
                    MetadataStore way = failing(step, fate);
                    fence(way).record(NodeRecords.read(way, keys, "n2", SECOND), Membership.getDefaultInstance(), 0);
                    NodeRecords found = NodeRecords.read(way, keys, "n2", SECOND);
                    fence(way).carryOut(found, (intent, claim) -> {
                        severed[0]++;
                        assertEquals(ARENAS, count(), "an arena was given away before the node was severed");
                        return new Severing(true, "seen");
                    });
                    ended = fate != Fate.NO_ANSWER || read().verdict() == NodeRecords.Verdict.FENCED;
                } catch (Crash | StoreUnavailableException e) {
                    steps++;
                }
                assertTrue(carriedOutInTheEnd(severed[0]) >= 1);
                assertFencedOnce();
                if (ended || step > 40) {
                    assertTrue(step < 40, "it goes on for ever");
                    break;
                }
            }
        }
        assertTrue(steps > 20, () -> "few steps were tried");
    }

    @Test
    void aFenceThatIsNotConfirmedRaisesNothing() throws Exception {
        NodeRecords found = pending();
        assertEquals(Fence.Result.NOT_CONFIRMED, fence(store).carryOut(found, (intent, claim) -> new Severing(false, "it still answers")));
        assertEquals(4, Generation.parseFrom(get(keys.generation("n2")).value()).getGeneration());
        assertEquals(ARENAS, count(keys.arenasOf("n2")));
        assertNull(get(keys.fenceClaim("n2")), "the next try needs no wait");
        assertEquals("it still answers", FenceIntent.parseFrom(get(keys.fencePending("n2")).value()).getSaw());
        assertEquals(found.pending().createRevision(), get(keys.fencePending("n2")).createRevision());
        assertEquals(1, carriedOutInTheEnd(0));
        assertFencedOnce();
    }

    /** As a registration does: whatever comes after it leaves the node alone. */
    private void comesBack() throws StoreRejectedException {
        store.commit(new Txn(List.of(), List.of(Op.put(keys.membership("n2"), new byte[0]), Op.delete(keys.fencePending("n2")), Op.delete(keys.fenceDone("n2")), Op.delete(keys.departed("n2"))),
                List.of()), SECOND);
    }

    @Test
    void theNodeComesBackBeforeAnyStep() throws Exception {
        for (int before = 1; before <= 6 + ARENAS; before++) {
            aNodeThatVanished();
            NodeRecords found = pending();
            int[] commits = {0};
            int back = before;
            boolean[] severedAfter = {false};
            MetadataStore way = (MetadataStore) Proxy.newProxyInstance(MetadataStore.class.getClassLoader(), new Class<?>[] {MetadataStore.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("commit") && ++commits[0] == back) {
                    comesBack();
                }
                try {
                    return method.invoke(store, arguments);
                } catch (InvocationTargetException e) {
                    throw e.getCause();
                }
            });
            fence(way).carryOut(found, (intent, claim) -> {
                severedAfter[0] = commits[0] >= back;
                return new Severing(true, "seen");
            });
            assertFalse(severedAfter[0], "severed after it had come back, before step " + before);
            // What it had when it came back is what it has now: 1 claim, 2 look, 3 raise, 4.. an arena each, the mark.
            long raised = Generation.parseFrom(get(keys.generation("n2")).value()).getGeneration();
            if (commits[0] >= back) {
                assertEquals(back <= 3 ? 4 : 5, raised, "before step " + before);
                assertEquals(Math.clamp(ARENAS - (back - 4L), 0, ARENAS), count(keys.arenasOf("n2")), "before step " + before);
                assertNull(get(keys.fenceDone("n2")));
                assertNotNull(get(keys.membership("n2")));
            } else {
                assertFencedOnce();
            }
        }
    }

    @Test
    void withoutTheCompareOfTheIntentThatIsSeen() {
        Fault.plant(Set.of(Fault.FENCED_THOUGH_BACK));
        try {
            assertThrows(AssertionError.class, this::theNodeComesBackBeforeAnyStep);
        } finally {
            Fault.plant(Set.of());
        }
    }

    @Test
    void aSessionIsReasonEnoughToStop() throws Exception {
        NodeRecords found = pending();
        put(keys.session("n2"), new byte[0]);
        assertEquals(Fence.Result.CHANGED, fence(store).carryOut(found, (intent, claim) -> new Severing(true, "seen")));
        assertEquals(4, Generation.parseFrom(get(keys.generation("n2")).value()).getGeneration());
    }

    @Test
    void oneControllerAtATime() throws Exception {
        NodeRecords found = pending();
        Fence.Claim first = fence(store).claim("n2", found.pending());
        assertNotNull(first);
        assertNull(fence(store).claim("n2", found.pending()));
        assertEquals(Fence.Result.TAKEN, fence(store).carryOut(found, (intent, claim) -> new Severing(true, "seen")));
        // It lost the claim while it was severing: what it does then counts no more.
        store.revokeLease(first.lease(), SECOND);
        assertNotNull(fence(store).claim("n2", found.pending()));
        assertNull(fence(store).raise("n2", found.pending(), first, "seen"));
        assertFalse(fence(store).releaseArenas("n2", found.pending(), first));
        assertEquals(ARENAS, count(keys.arenasOf("n2")));
    }

    @Test
    void aDepartureThatOwnsNothingIsHonouredAndNoOther() throws Exception {
        put(keys.departed("n2"), Departed.newBuilder().setAtNs(1).build().toByteArray());
        assertEquals(NodeRecords.Verdict.GONE, read().verdict(), "it owns arenas");
        assertEquals(1, carriedOutInTheEnd(0));
        assertFencedOnce();
        assertNull(get(keys.departed("n2")));

        aNodeThatVanished();
        put(keys.departed("n2"), new byte[0]);
        for (int i = 0; i < ARENAS; i++) {
            store.commit(new Txn(List.of(), List.of(Op.delete(keys.arena("n2", i))), List.of()), SECOND);
        }
        assertEquals(NodeRecords.Verdict.LEFT, read().verdict());
    }

    /** Between making its generation and registering: not to be taken for one that vanished. */
    @Test
    void aNodeThatJoinsForTheFirstTimeIsNew() throws Exception {
        put(keys.generation("n3"), new byte[0]);
        assertEquals(NodeRecords.Verdict.NEW, NodeRecords.read(store, keys, "n3", SECOND).verdict());
        put(keys.batch("n3"), new byte[0]);
        assertEquals(NodeRecords.Verdict.GONE, NodeRecords.read(store, keys, "n3", SECOND).verdict());
    }

    /** The reading is from before the departure, the intent after it. */
    @Test
    void anIntentThatComesAfterADepartureIsNotRecorded() throws Exception {
        NodeRecords before = read();
        put(keys.departed("n2"), new byte[0]);
        assertFalse(fence(store).record(before, Membership.getDefaultInstance(), 0));
        comesBack();
        assertFalse(fence(store).record(read(), Membership.getDefaultInstance(), 0));
    }

    @Test
    void anOperatorsWord() throws Exception {
        DeclareDead operator = new DeclareDead(store, clock, keys);
        assertEquals(DeclareDead.Result.UNKNOWN, operator.run("n9", "me", SECOND));
        put(keys.session("n2"), new byte[0]);
        assertEquals(DeclareDead.Result.ALIVE, operator.run("n2", "me", SECOND));
        store.commit(new Txn(List.of(), List.of(Op.delete(keys.session("n2"))), List.of()), SECOND);
        assertEquals(DeclareDead.Result.DONE, operator.look("n2"));
        // Somebody's fencer hangs.
        Fence.Claim hanging = fence(store).claim("n2", pending().pending());
        assertEquals(DeclareDead.Result.BUSY, operator.run("n2", "me", SECOND / 2));
        store.revokeLease(hanging.lease(), SECOND);
        assertEquals(DeclareDead.Result.DONE, operator.run("n2", "me", SECOND));
        assertEquals("declared dead by me", FenceDone.parseFrom(get(keys.fenceDone("n2")).value()).getSaw());
        assertEquals(ARENAS, count(keys.freeArenas()));
        assertEquals(DeclareDead.Result.DEAD_BEFORE, operator.run("n2", "me", SECOND));
    }
}
