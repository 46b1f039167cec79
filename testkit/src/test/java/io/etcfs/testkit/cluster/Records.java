package io.etcfs.testkit.cluster;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import io.etcfs.core.check.Checker;
import io.etcfs.core.check.Finding;
import io.etcfs.core.check.Report;
import io.etcfs.core.record.Keys;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Predicate;

/** A filesystem's records at one revision, to be changed as no node would. */
final class Records {
    final Keys keys;
    final long revision;
    private final NavigableMap<Key, KeyValue> records;

    Records(Keys keys, long revision, List<KeyValue> records) {
        this.keys = keys;
        this.revision = revision;
        this.records = new TreeMap<>();
        records.forEach(kv -> this.records.put(kv.key(), kv));
    }

    Records copy() {
        return new Records(keys, revision, List.copyOf(records.values()));
    }

    List<Finding> check() {
        return report().findings();
    }

    Report report() {
        return Checker.report(keys, records.values(), revision);
    }

    KeyValue get(Key key) {
        if (!records.containsKey(key)) {
            throw new AssertionError("no record " + key);
        }
        return records.get(key);
    }

    /** The first key below a prefix that will do. */
    KeyValue first(Key prefix, Predicate<KeyValue> wanted) {
        return records.tailMap(prefix).values().stream().takeWhile(kv -> kv.key().startsWith(prefix)).filter(wanted).findFirst().orElseThrow(() -> new AssertionError("nothing fits below " + prefix));
    }

    /** Keeps the lease and create revision of a record that is there. */
    void put(Key key, byte[] value) {
        KeyValue old = records.get(key);
        put(key, value, old == null ? 0 : old.leaseId());
    }

    void put(Key key, byte[] value, long lease) {
        KeyValue old = records.get(key);
        records.put(key, new KeyValue(key, value, old == null ? revision : old.createRevision(), revision, 1, lease));
    }

    void put(Key key, Message.Builder value) {
        put(key, value.build().toByteArray());
    }

    void delete(Key key) {
        get(key);
        records.remove(key);
    }

    void deleteIf(Predicate<KeyValue> doomed) {
        records.values().removeIf(doomed);
    }

    <B extends Message.Builder> void change(Key key, B builder, Consumer<B> change) throws InvalidProtocolBufferException {
        builder.mergeFrom(get(key).value());
        change.accept(builder);
        put(key, builder);
    }
}
