package io.etcfs.testkit.cluster;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** Hears on a node's way to the store what it wants of others. */
final class Wants implements HookedStore.Hook {
    record Wanted(long resource, boolean exclusive) {}

    private final Keys keys;
    /** In the order of sending; renewed ones again. */
    final List<Wanted> all = new CopyOnWriteArrayList<>();
    final AtomicInteger transactions = new AtomicInteger();
    /** How long each transaction takes on its way, ms. */
    volatile long slowMs;

    Wants(Keys keys) {
        this.keys = keys;
    }

    Set<Long> resources() {
        return all.stream().map(Wanted::resource).collect(Collectors.toSet());
    }

    @Override
    public Outcome commit(Txn txn) {
        transactions.incrementAndGet();
        for (Op.Put p : puts(txn)) {
            if (p.key().startsWith(keys.wants())) {
                try {
                    all.add(new Wanted(keys.parseWant(p.key()).res(), Want.parseFrom(p.value()).getKind() == Want.Kind.EXCLUSIVE));
                } catch (InvalidProtocolBufferException e) {
                    throw new AssertionError(e);
                }
            }
        }
        if (slowMs > 0) {
            try {
                Thread.sleep(slowMs);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        return null;
    }

    /** Those of all branches. */
    static List<Op.Put> puts(Txn txn) {
        List<Op.Put> puts = new ArrayList<>();
        for (List<Op> branch : List.of(txn.success(), txn.failure())) {
            for (Op op : branch) {
                if (op instanceof Op.Put p) {
                    puts.add(p);
                } else if (op instanceof Op.Nested n) {
                    puts.addAll(puts(n.txn()));
                }
            }
        }
        return puts;
    }
}
