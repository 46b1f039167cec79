package io.etcfs.core.fs;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.label.HistoryMarks;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.session.StartException;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import java.util.List;

/**
 * What the device remembers of etcd's history, for those who mount later: a node that starts compares, and says how far it has come itself when it serves, each half minute and when it
 * leaves. Compared are etcd's revision, and for each node of which there is a mark the revision of its {@code batch:}, which never goes back either, and stays behind where
 * a restore has raised etcd's own.
 */
final class KnownHistory {
    private static final long EVERY_NS = 30_000_000_000L;
    private static final long REQUEST_NS = 3_000_000_000L;
    private static final long AGAIN_NS = 200_000_000L;
    /** How long etcd is waited for before the start. */
    private static final long START_NS = 10_000_000_000L;
    private static final System.Logger LOG = System.getLogger(KnownHistory.class.getName());

    private final Monitor monitor;
    private final MetadataStore store;
    private final BlockDevice device;
    private final Super superblock;
    private final Keys keys;
    private final String node;
    private final HistoryMarks marks;
    private long nextNs = Long.MIN_VALUE;

    /** @param device as it is before there is a session; {@code fenced} as the node may write it */
    KnownHistory(Monitor monitor, MetadataStore store, BlockDevice device, BlockDevice fenced, Super superblock, Keys keys, String node) {
        this.monitor = monitor;
        this.store = store;
        this.device = device;
        this.superblock = superblock;
        this.keys = keys;
        this.node = node;
        this.marks = new HistoryMarks(fenced, superblock, node);
    }

    /** Marks first, etcd then: others go on meanwhile, and etcd has by then whatever was marked. */
    void check() throws StartException {
        try {
            List<HistoryMarks.Mark> known = HistoryMarks.read(device, superblock);
            if (known.isEmpty() || Fault.MARKS_IGNORED.on()) {
                return;
            }
            TxnResult found = markers(known);
            for (int i = 0; i < known.size(); i++) {
                HistoryMarks.Mark mark = known.get(i);
                KeyValue marker = found.ranged(i).only();
                if (found.revision() < mark.revision()) {
                    throw refused("it is at revision " + found.revision() + ", and was at " + mark.revision() + " when node '" + mark.node() + "' last said so on the device");
                }
                if (marker == null || marker.modRevision() < mark.markerRevision()) {
                    throw refused("the last batch of node '" + mark.node() + "' in it is of revision " + (marker == null ? "none" : marker.modRevision()) + ", and on the device one of revision "
                            + mark.markerRevision() + " is known");
                }
            }
        } catch (DeviceException e) {
            throw new StartException("cannot read how far etcd's history had come from the device: " + e.getMessage());
        } catch (StoreRejectedException e) {
            throw new StartException("etcd refused a read (" + e.reason() + "): " + e.getMessage());
        }
    }

    private TxnResult markers(List<HistoryMarks.Mark> known) throws StartException, StoreRejectedException {
        Txn looks = new Txn(List.of(), known.stream().map(mark -> Op.get(keys.batch(mark.node()))).toList(), List.of());
        long until = monitor.nowNs() + START_NS;
        while (true) {
            switch (store.commit(looks, REQUEST_NS)) {
                case Outcome.Committed(TxnResult found) -> {
                    return found;
                }
                case Outcome.Conflict(TxnResult nothing) -> throw new IllegalStateException("a conflict without compares");
                case Outcome.Unknown unknown when monitor.nowNs() >= until -> throw new StartException("etcd does not answer: " + unknown.cause());
                case Outcome.Unknown unknown -> monitor.pause(AGAIN_NS);
            }
        }
    }

    private static StartException refused(String found) {
        return new StartException("etcd's history went back: " + found + ". An older snapshot of etcd was restored, or it has lost data, and the device was written since: files would have other files' bytes. "
                + "Restore a newer snapshot of etcd, or the copy of the device that was made with this one");
    }

    /** Called now and then by one task: writes a mark if it is time. */
    void keep(long nowNs) throws StoreUnavailableException, StoreRejectedException, DeviceException {
        if (nowNs >= nextNs) {
            nextNs = nowNs + EVERY_NS;
            write();
        }
    }

    /** Without it the device knows of less; it is no reason to fail. */
    void tryWrite() {
        try {
            write();
        } catch (StoreUnavailableException | StoreRejectedException | DeviceException e) {
            LOG.log(System.Logger.Level.WARNING, "the device is not told how far etcd''s history has come: {0}", e.getMessage());
        }
    }

    private void write() throws StoreUnavailableException, StoreRejectedException, DeviceException {
        var read = store.range(keys.batch(node), null, 0, true, 0, REQUEST_NS);
        KeyValue marker = read.only();
        if (marker != null) {
            marks.write(read.storeRevision(), marker.modRevision());
        }
    }
}
