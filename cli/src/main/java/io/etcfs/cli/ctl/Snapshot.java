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
import java.util.function.Consumer;

/**
 * Reads parts of a filesystem's records as of one revision: that of the first read. Ranges are read in pieces, so that none outgrows a
 * message.
 */
final class Snapshot {
    private static final int CHUNK = 2_000;
    private static final int FIRST_LIMIT = 500;
    private static final int MAX_LIMIT = 10_000;
    private static final long PIECE_BYTES = 2 << 20;

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

    /** Passes all keys of a prefix on in order, however many and large. Pieces are as large as the last one's keys suggest. */
    void each(Key prefix, Consumer<KeyValue> consumer) throws StoreUnavailableException, StoreRejectedException {
        Key from = prefix;
        int limit = FIRST_LIMIT;
        while (true) {
            RangeResult piece;
            try {
                piece = noted(store.range(from, prefix.prefixEnd(), limit, false, revision, timeoutNs));
            } catch (StoreRejectedException e) {
                if (e.reason() != StoreRejectedException.Reason.TOO_LARGE || limit == 1) {
                    throw e;
                }
                limit = Math.max(1, limit / 16);
                continue;
            }
            long bytes = 0;
            for (KeyValue kv : piece.keyValues()) {
                consumer.accept(kv);
                bytes += kv.key().length() + kv.value().length;
            }
            if (!piece.more()) {
                return;
            }
            from = piece.keyValues().getLast().key().next();
            limit = Math.clamp(PIECE_BYTES / Math.max(1, bytes / piece.keyValues().size()), 1, Math.min(MAX_LIMIT, 4 * limit));
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
