package io.etcfs.etcd;

import static io.etcfs.etcd.TestStores.SECOND_NS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.testkit.store.EtcdServers;
import io.etcfs.testkit.store.MemoryStore;
import io.etcfs.testkit.store.MonotonicClock;
import io.etcfs.testkit.store.RecordingListener;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The in-memory store and a real etcd are given the same random transactions and must answer alike, also when they are asked about the past and by watches.
 * Both begin at revision 1 and see nothing else, so that revisions must be equal; lease ids are not and are counted instead.
 */
class MemoryStoreAgreesTest {
    private static final int STEPS = 500;
    private static final List<String> KEYS = List.of("a", "a/1", "a/2", "b", "b/1", "c");
    private static final List<String> VALUES = List.of("", "m", "n");

    private static EtcdServers servers;
    private static EtcdStore etcd;
    private static MemoryStore memory;
    private static long newest = 1;
    private static long compacted;

    /** Live leases at even places, revoked ones at odd ones; the same place is the same lease in both. */
    private final List<Long> etcdLeases = new ArrayList<>();
    private final List<Long> memoryLeases = new ArrayList<>();

    @BeforeAll
    static void start() throws Exception {
        servers = EtcdServers.start(1);
        etcd = TestStores.open(servers);
        memory = new MemoryStore(new MonotonicClock(), (name, body) -> Thread.ofVirtual().name(name).start(body));
    }

    @AfterAll
    static void stop() {
        memory.close();
        etcd.close();
        servers.close();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void anyTransactionsAreAnsweredAlike(long seed) throws Exception {
        Random random = new Random(seed);
        for (int i = 0; i < 4; i++) {
            etcdLeases.add(etcd.grantLease(600, 5 * SECOND_NS).leaseId());
            memoryLeases.add(memory.grantLease(600, 0).leaseId());
        }
        for (int i = 1; i < 4; i += 2) {
            etcd.revokeLease(etcdLeases.get(i), 5 * SECOND_NS);
            memory.revokeLease(memoryLeases.get(i), 0);
        }
        long firstRevision = newest + 1;
        RecordingListener etcdHeard = new RecordingListener();
        RecordingListener memoryHeard = new RecordingListener();
        Key from = Key.of("a");
        Key end = Key.of("b/");
        try (Watch one = etcd.watch(from, end, firstRevision, etcdHeard); Watch other = memory.watch(from, end, firstRevision, memoryHeard)) {
            // A watch that etcd makes only after a compaction has missed something, rightly.
            assertEquals(firstRevision - 1, etcdHeard.next(5_000).revision());
            assertEquals(firstRevision - 1, memoryHeard.next(5_000).revision());
            for (int step = 0; step < STEPS; step++) {
                String label = "seed " + seed + " step " + step;
                Shape shape = shape(random, 0);
                assertEquals(answer(memory, shape.txn(memoryLeases), memoryLeases), answer(etcd, shape.txn(etcdLeases), etcdLeases), () -> label + " " + shape);
                newest = memory.revision();
                if (random.nextInt(20) == 0) {
                    long revision = compacted + random.nextLong(newest - compacted + 2);
                    long limit = random.nextInt(4);
                    assertEquals(read(memory, limit, revision, memoryLeases), read(etcd, limit, revision, etcdLeases), label);
                }
                if (random.nextInt(100) == 0 && newest > compacted + 1) {
                    compacted += 1 + random.nextLong(newest - compacted - 1);
                    memory.compact(compacted);
                    etcd.compact(compacted, 5 * SECOND_NS);
                }
                if (random.nextInt(150) == 0) {
                    int live = 2 * random.nextInt(2);
                    etcd.revokeLease(etcdLeases.get(live), 5 * SECOND_NS);
                    memory.revokeLease(memoryLeases.get(live), 0);
                    newest = memory.revision();
                }
            }
            assertEquals(read(memory, 0, 0, memoryLeases), read(etcd, 0, 0, etcdLeases));
            while (true) {
                RecordingListener.Heard expected = memoryHeard.next(200);
                if (expected == null) {
                    break;
                }
                RecordingListener.Heard actual = etcdHeard.next(5_000);
                assertNotNull(actual, () -> "missing " + expected.summary());
                assertEquals(expected.revision() + ": " + expected.summary(), actual.revision() + ": " + actual.summary());
            }
            assertEquals(0, etcdHeard.waiting());
        }
    }

    // Transactions, the same for both but for the ids of leases

    private record Shape(List<Compare> compares, List<ShapeOp> success, List<ShapeOp> failure) {
        Txn txn(List<Long> leases) {
            List<Compare> mapped = new ArrayList<>();
            for (Compare c : compares) {
                long number = c.target() == Compare.Target.LEASE && c.number() >= 0 ? leases.get((int) c.number()) : Math.max(0, c.number());
                mapped.add(new Compare(c.key(), c.rangeEnd(), c.target(), c.relation(), number, c.value()));
            }
            return new Txn(mapped, success.stream().map(op -> op.op(leases)).toList(), failure.stream().map(op -> op.op(leases)).toList());
        }
    }

    /** An operation; a put's lease is a place in the list of leases, -1 for none. */
    private record ShapeOp(Op op, int lease, Shape nested) {
        Op op(List<Long> leases) {
            if (nested != null) {
                return new Op.Nested(nested.txn(leases));
            }
            return op instanceof Op.Put put && lease >= 0 ? new Op.Put(put.key(), put.value(), leases.get(lease)) : op;
        }
    }

    private Shape shape(Random random, int depth) {
        List<Compare> compares = new ArrayList<>();
        for (int i = random.nextInt(3); i > 0; i--) {
            compares.add(compare(random));
        }
        return new Shape(compares, branch(random, depth), branch(random, depth));
    }

    private List<ShapeOp> branch(Random random, int depth) {
        List<ShapeOp> ops = new ArrayList<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            ops.add(switch (random.nextInt(depth < 2 ? 6 : 5)) {
                case 0, 1 -> {
                    // Rarely a dead lease: such a transaction does nothing.
                    int lease = random.nextInt(3) > 0 ? -1 : random.nextInt(8) == 0 ? 1 : 2 * random.nextInt(2);
                    yield new ShapeOp(Op.put(key(random), bytes(value(random))), lease, null);
                }
                case 2 -> new ShapeOp(new Op.Delete(key(random), random.nextBoolean() ? null : key(random)), -1, null);
                case 3, 4 -> new ShapeOp(new Op.Range(key(random), end(random), random.nextInt(3), random.nextBoolean()), -1, null);
                default -> new ShapeOp(null, -1, shape(random, depth + 1));
            });
        }
        return ops;
    }

    private Compare compare(Random random) {
        Compare.Target target = Compare.Target.values()[random.nextInt(5)];
        Compare.Relation relation = Compare.Relation.values()[random.nextInt(4)];
        long number = switch (target) {
            case CREATE_REVISION, MOD_REVISION -> random.nextInt(4) == 0 ? 0 : newest - random.nextInt(8);
            case VERSION -> random.nextInt(4);
            case LEASE -> random.nextInt(5) - 1;
            case VALUE -> 0;
        };
        // The order of lease ids is not the same in both.
        if (target == Compare.Target.LEASE && number >= 0) {
            relation = random.nextBoolean() ? Compare.Relation.EQUAL : Compare.Relation.NOT_EQUAL;
        }
        return new Compare(key(random), end(random), target, relation, number, target == Compare.Target.VALUE ? bytes(value(random)) : null);
    }

    private static Key key(Random random) {
        return Key.of(KEYS.get(random.nextInt(KEYS.size())));
    }

    private static Key end(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> key(random);
            case 1 -> key(random).prefixEnd();
            default -> null;
        };
    }

    private static String value(Random random) {
        return VALUES.get(random.nextInt(VALUES.size()));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    // Answers as text

    private static String answer(MetadataStore store, Txn txn, List<Long> leases) {
        try {
            return switch (store.commit(txn, 5 * SECOND_NS)) {
                case Outcome.Committed committed -> text(committed.result(), leases);
                case Outcome.Conflict conflict -> text(conflict.result(), leases);
                case Outcome.Unknown unknown -> "unknown " + unknown.cause();
            };
        } catch (StoreRejectedException e) {
            return "rejected " + e.reason();
        }
    }

    private static String text(TxnResult result, List<Long> leases) {
        List<String> results = new ArrayList<>();
        for (OpResult r : result.results()) {
            results.add(switch (r) {
                case OpResult.Put ignored -> "put";
                case OpResult.Deleted deleted -> "deleted " + deleted.count();
                case OpResult.Ranged ranged -> text(ranged.keyValues(), leases) + ranged.more() + ranged.count();
                case OpResult.Nested nested -> "(" + text(nested.result(), leases) + ")";
            });
        }
        return result.revision() + " " + result.succeeded() + " " + results;
    }

    private static String read(MetadataStore store, long limit, long revision, List<Long> leases) throws Exception {
        try {
            RangeResult result = store.range(Key.of("a"), Key.of("z"), limit, false, revision, 5 * SECOND_NS);
            return result.revision() + " " + text(result.keyValues(), leases) + result.more() + result.count();
        } catch (StoreRejectedException e) {
            return "rejected " + e.reason();
        }
    }

    /** Leases of earlier seeds are not among these: they are counted as they appear. */
    private static String text(List<KeyValue> keyValues, List<Long> leases) {
        Map<Long, String> others = new HashMap<>();
        List<String> out = new ArrayList<>();
        for (KeyValue kv : keyValues) {
            String lease = kv.leaseId() == 0 ? "none"
                : leases.contains(kv.leaseId()) ? "L" + leases.indexOf(kv.leaseId())
                : others.computeIfAbsent(kv.leaseId(), id -> "other" + others.size());
            out.add(kv.key() + "=" + Arrays.toString(kv.value()) + " c" + kv.createRevision() + " m" + kv.modRevision() + " v" + kv.version() + " " + lease);
        }
        return out.toString();
    }
}
