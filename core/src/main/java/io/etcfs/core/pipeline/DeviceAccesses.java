package io.etcfs.core.pipeline;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.session.NodeStoppedError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.List;

/** This node's accesses to the device: which are under way, for the end of a session, and whether what was written is durable. */
final class DeviceAccesses {
    private static final int TRIES = 5;
    private static final int STAGED_BLOCKS = 256;
    private static final System.Logger LOG = System.getLogger(Pipeline.class.getName());

    private final Monitor monitor;
    private final BlockDevice device;
    /** Blocks of one access, one after the other. */
    private MemorySegment staging;
    private int underWay;
    /** Counts writes that returned; {@code flushed} of them are durable. */
    private long writes;
    private long flushed;

    DeviceAccesses(Monitor monitor, BlockDevice device) {
        this.monitor = monitor;
        this.device = device;
    }

    /** Monitor held. */
    void begin() {
        underWay++;
    }

    /** Monitor held. */
    void end() {
        underWay--;
        if (underWay == 0) {
            monitor.changed();
        }
    }

    /** False: there is an access under way at that time. */
    boolean awaitQuiet(long untilNs) {
        monitor.lock();
        try {
            while (underWay > 0) {
                if (monitor.nowNs() >= untilNs) {
                    return false;
                }
                monitor.awaitQuietly(Math.min(untilNs, monitor.nowNs() + 1_000_000_000L));
            }
            return true;
        } finally {
            monitor.unlock();
        }
    }

    /** A write returned. Monitor held. */
    void written() {
        writes++;
    }

    /** Monitor held. */
    long writes() {
        return writes;
    }

    /** Makes the first {@code wanted} of the writes durable, or all that returned. Without the monitor. */
    void flush(long wanted) throws DeviceException {
        long upTo;
        monitor.lock();
        try {
            if (flushed >= Math.min(wanted, writes)) {
                return;
            }
            upTo = writes;
        } finally {
            monitor.unlock();
        }
        flushCache();
        monitor.lock();
        try {
            flushed = Math.max(flushed, upTo);
        } finally {
            monitor.unlock();
        }
    }

    /** Makes every write that returned durable, other nodes' included: this one's writes do not say whether there is anything to do. Without the monitor. */
    void flushCache() throws DeviceException {
        if (device.hasVolatileCache()) {
            device.flush();
        }
    }

    /**
     * Writes blocks in device order, adjacent ones as one access. Sorts the list. Without the monitor, by one thread at a time. False: the node may not access the device
     * any more; some of them may be written.
     */
    boolean write(List<DirtyBlocks.Block> blocks) {
        blocks.sort(Comparator.comparingLong(b -> b.deviceBlock));
        for (int i = 0; i < blocks.size(); ) {
            long first = blocks.get(i).deviceBlock;
            int run = 1;
            while (i + run < blocks.size() && run < STAGED_BLOCKS && blocks.get(i + run).deviceBlock == first + run) {
                run++;
            }
            MemorySegment bytes = run == 1 ? blocks.get(i).bytes : staged(blocks.subList(i, i + run));
            if (!retry("write of " + run + " blocks at block " + first, () -> device.write(first * BlockDevice.BLOCK_BYTES, bytes))) {
                return false;
            }
            i += run;
        }
        if (!blocks.isEmpty()) {
            monitor.lock();
            try {
                written();
            } finally {
                monitor.unlock();
            }
        }
        return true;
    }

    private MemorySegment staged(List<DirtyBlocks.Block> run) {
        if (staging == null) {
            staging = Arena.ofAuto().allocate(STAGED_BLOCKS * (long) BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES);
        }
        for (int k = 0; k < run.size(); k++) {
            MemorySegment.copy(run.get(k).bytes, 0, staging, (long) k * BlockDevice.BLOCK_BYTES, BlockDevice.BLOCK_BYTES);
        }
        return staging.asSlice(0, (long) run.size() * BlockDevice.BLOCK_BYTES);
    }

    void flushRetrying() {
        retry("flush", () -> flush(Long.MAX_VALUE));
    }

    private interface Work {
        void run() throws DeviceException;
    }

    /** A device that refuses acknowledged bytes breaks the promise to publish a prefix: after some tries the node stops. False: it may not access the device any more. */
    private boolean retry(String what, Work work) {
        for (int attempt = 1; ; attempt++) {
            try {
                work.run();
                return true;
            } catch (DeviceException e) {
                if (e.isLate()) {
                    return false;
                }
                LOG.log(System.Logger.Level.ERROR, "device {0} failed: {1}", what, e.getMessage());
                if (attempt == TRIES) {
                    throw new NodeStoppedError("the device refuses writes: " + e.getMessage());
                }
                monitor.pause(attempt * 100_000_000L);
            }
        }
    }
}
