package io.etcfs.cli.ctl;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Parser;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads parts of a filesystem's records as of one revision: that of the first read. Ranges are read in pieces, so that none outgrows a
 * message.
 */
final class Snapshot {
    private static final int CHUNK = 2_000;

    private final MetadataStore store;
    private final Keys keys;
    private final long timeoutNs;
    private long revision;

    Snapshot(MetadataStore store, String filesystem, long timeoutNs) {
        this.store = store;
        this.keys = new Keys(filesystem);
        this.timeoutNs = timeoutNs;
    }

    Keys keys() {
        return keys;
    }

    /** 0 before the first read. */
    long revision() {
        return revision;
    }

    /** Null if there is no such filesystem. */
    Super superblock() throws StoreUnavailableException, StoreRejectedException {
        KeyValue found = get(keys.superblock());
        return found == null ? null : parse(Super.parser(), found);
    }

    KeyValue get(Key key) throws StoreUnavailableException, StoreRejectedException {
        return noted(store.range(key, null, 0, false, revision, timeoutNs)).only();
    }

    List<KeyValue> below(Key prefix) throws StoreUnavailableException, StoreRejectedException {
        List<KeyValue> all = new ArrayList<>();
        Key from = prefix;
        while (true) {
            RangeResult chunk = noted(store.range(from, prefix.prefixEnd(), CHUNK, false, revision, timeoutNs));
            all.addAll(chunk.keyValues());
            if (!chunk.more()) {
                return all;
            }
            from = chunk.keyValues().getLast().key().next();
        }
    }

    private RangeResult noted(RangeResult result) {
        if (revision == 0) {
            revision = result.revision();
        }
        return result;
    }

    /** A record of this program's format. One that can't be read is a fault of the data, and named. */
    static <T> T parse(Parser<T> parser, KeyValue keyValue) {
        try {
            return parser.parseFrom(keyValue.value());
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException("the record at " + keyValue.key() + " can't be read: " + e.getMessage());
        }
    }
}
