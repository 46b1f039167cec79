package io.etcfs.linux.device;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.device.DeviceException;
import io.etcfs.linux.call.Descriptors;
import io.etcfs.linux.call.ErrorNumbers;
import io.etcfs.linux.call.LinuxException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;

/**
 * A block device, or a regular file in place of one, with O_DIRECT and synchronous calls.
 *
 * <p>A platform thread makes its own system calls. A virtual thread has them made by one of {@code threads} platform threads and parks;
 * an interrupt does not end that wait, since the access would still be under way. Buffers are native memory. A violation of the alignment or
 * a range outside of the device is an {@link IllegalArgumentException}.
 */
public final class DirectDevice implements BlockDevice {
    public static final int DEFAULT_THREADS = 16;

    private static final long CLAIM_RETRY_MS = 500;
    private static final long BLKGETSIZE64 = 0x8008_1272L;
    private static final long BLKSSZGET = 0x1268L;

    private static final System.Logger LOG = System.getLogger(DirectDevice.class.getName());
    private final String path;
    private final int fd;
    private final boolean blockDevice;
    /** As it was last asked for. */
    private volatile long sizeBytes;
    private final boolean volatileCache;
    private final ExecutorService threads;
    /** Holds the claim on the block device; negative: another process of this host has it, or there is nothing to claim. */
    private int claim = -1;
    /** Read lock: an access. Write lock: closing, so that no access meets a descriptor number that is another file's by then. */
    private final ReentrantReadWriteLock open = new ReentrantReadWriteLock();
    private boolean closed;

    private DirectDevice(String path, int fd, boolean blockDevice, boolean volatileCache, int threads) throws LinuxException {
        this.path = path;
        this.fd = fd;
        this.blockDevice = blockDevice;
        this.sizeBytes = askSize();
        this.volatileCache = volatileCache;
        this.threads = Executors.newFixedThreadPool(threads, Thread.ofPlatform().daemon().name("device-", 0).factory());
    }

    public static DirectDevice open(Path path) throws LinuxException {
        return open(path, DEFAULT_THREADS);
    }

    /** Refuses a device whose logical blocks are larger than {@link BlockDevice#BLOCK_BYTES}. */
    public static DirectDevice open(Path path, int threads) throws LinuxException {
        int fd = LinuxException.check(Descriptors.open(path.toString(), Descriptors.O_RDWR | Descriptors.O_DIRECT | Descriptors.O_CLOEXEC, 0),
                "open " + path + " for direct access");
        try {
            Descriptors.Status status = Descriptors.status(fd);
            boolean volatileCache = true;
            if (status.isBlockDevice()) {
                // An int, in the lower half on a little-endian machine.
                int sector = (int) askLong(fd, BLKSSZGET, "BLKSSZGET " + path);
                if (sector <= 0 || BLOCK_BYTES % sector != 0) {
                    throw new LinuxException(ErrorNumbers.EINVAL, path + " has blocks of " + sector + " bytes, which do not fit into " + BLOCK_BYTES);
                }
                volatileCache = hasVolatileCache(Path.of("/sys/dev/block", status.deviceMajor() + ":" + status.deviceMinor()));
            } else if (!status.isRegularFile()) {
                throw new LinuxException(ErrorNumbers.EINVAL, path + " is neither a block device nor a regular file");
            }
            DirectDevice device = new DirectDevice(path.toString(), fd, status.isBlockDevice(), volatileCache, threads);
            if (status.isBlockDevice() && !device.claim()) {
                Thread.ofVirtual().name("device-claim").start(device::claimLater);
            }
            return device;
        } catch (LinuxException e) {
            Descriptors.close(fd);
            throw e;
        }
    }

    /** Whether no other process of this host had claimed the block device when that was tried last; a file is nobody's. */
    public boolean isClaimed() {
        open.readLock().lock();
        try {
            return claim >= 0 || !blockDevice;
        } finally {
            open.readLock().unlock();
        }
    }

    /** So that mkfs, mount and volume managers of this host refuse the device; false if another process has claimed it, as another node on this host does. */
    private boolean claim() {
        open.writeLock().lock();
        try {
            if (!closed) {
                claim = Descriptors.open(path, Descriptors.O_RDONLY | Descriptors.O_EXCL | Descriptors.O_CLOEXEC, 0);
            }
            return closed || claim != -ErrorNumbers.EBUSY;
        } finally {
            open.writeLock().unlock();
        }
    }

    /** Once the other process has let go. */
    private void claimLater() {
        try {
            do {
                Thread.sleep(CLAIM_RETRY_MS);
            } while (!claim());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static long askLong(int fd, long request, String what) throws LinuxException {
        long[] answer = new long[1];
        LinuxException.check(Descriptors.ioctl(fd, request, answer), what);
        return answer[0];
    }

    /** Unless the kernel says "write through" (a partition's queue is its disk's), there is one. */
    static boolean hasVolatileCache(Path sysfs) {
        for (String queue : new String[] {"queue/write_cache", "../queue/write_cache"}) {
            try {
                return !Files.readString(sysfs.toRealPath().resolve(queue)).strip().equals("write through");
            } catch (IOException e) {
                continue;
            }
        }
        return true;
    }

    private long askSize() throws LinuxException {
        long size = blockDevice ? askLong(fd, BLKGETSIZE64, "BLKGETSIZE64 " + path) : Descriptors.status(fd).sizeBytes();
        return size - size % BLOCK_BYTES;
    }

    @Override
    public long sizeBytes() {
        whileOpen(() -> {
            try {
                sizeBytes = askSize();
            } catch (LinuxException e) {
                LOG.log(System.Logger.Level.WARNING, "its size can't be asked for: {0}", e.getMessage());
            }
            return 0;
        });
        return sizeBytes;
    }

    @Override
    public boolean hasVolatileCache() {
        return volatileCache;
    }

    @Override
    public void read(long offsetBytes, MemorySegment target) throws DeviceException {
        check(offsetBytes, target);
        long address = target.address();
        long length = target.byteSize();
        call(() -> transfer(false, offsetBytes, address, length, () -> true));
    }

    @Override
    public void write(long offsetBytes, MemorySegment source) throws DeviceException {
        write(offsetBytes, source, () -> true);
    }

    @Override
    public void write(long offsetBytes, MemorySegment source, BooleanSupplier may) throws DeviceException {
        check(offsetBytes, source);
        long address = source.address();
        long length = source.byteSize();
        call(() -> transfer(true, offsetBytes, address, length, may));
    }

    @Override
    public void flush() throws DeviceException {
        call(() -> {
            int result;
            do {
                result = Descriptors.fdatasync(fd);
            } while (result == -ErrorNumbers.EINTR);
            return result;
        });
    }

    private void check(long offset, MemorySegment buffer) throws DeviceException {
        long length = buffer.byteSize();
        if (!buffer.isNative() || ((offset | length | buffer.address()) & (BLOCK_BYTES - 1)) != 0) {
            throw new IllegalArgumentException("not aligned: " + length + " bytes at " + offset + ", buffer " + buffer);
        }
        if (offset < 0) {
            throw new IllegalArgumentException(length + " bytes at " + offset);
        }
        // Others may use what it has grown by; where this machine does not know that it has grown they can't be read.
        if (offset > sizeBytes - length && offset > sizeBytes() - length) {
            throw new DeviceException(ErrorNumbers.EIO, path + " has " + sizeBytes + " bytes, " + length + " are wanted at " + offset);
        }
    }

    /** Returns 0 or minus an errno. */
    private interface Access {
        long run();
    }

    private void call(Access access) throws DeviceException {
        long result;
        if (Thread.currentThread().isVirtual()) {
            try {
                result = CompletableFuture.supplyAsync(() -> whileOpen(access), threads).join();
            } catch (RejectedExecutionException e) {
                result = -ErrorNumbers.ENODEV;
            }
        } else {
            result = whileOpen(access);
        }
        if (result < 0) {
            throw new DeviceException((int) -result, path + ": " + (result == -DeviceException.LATE ? "not sent, as the time for it was over" : ErrorNumbers.describe((int) -result)));
        }
    }

    private long whileOpen(Access access) {
        open.readLock().lock();
        try {
            return closed ? -ErrorNumbers.ENODEV : access.run();
        } finally {
            open.readLock().unlock();
        }
    }

    private long transfer(boolean write, long offset, long address, long length, BooleanSupplier may) {
        long done = 0;
        while (done < length) {
            // Here, as a thread for it may not have been free for a while.
            if (!may.getAsBoolean()) {
                return -DeviceException.LATE;
            }
            long n = write ? Descriptors.pwrite(fd, address + done, length - done, offset + done) : Descriptors.pread(fd, address + done, length - done, offset + done);
            if (n == -ErrorNumbers.EINTR) {
                continue;
            }
            if (n < 0) {
                return n;
            }
            // A transfer cut inside of a block goes on from the block's start: the rest alone would not be aligned.
            long whole = n - n % BLOCK_BYTES;
            if (whole == 0 && done + n < length) {
                return -ErrorNumbers.EIO;
            }
            done += done + n == length ? n : whole;
        }
        return 0;
    }

    /** Waits for accesses that are under way. */
    @Override
    public void close() {
        threads.shutdown();
        open.writeLock().lock();
        try {
            if (!closed) {
                closed = true;
                Descriptors.close(fd);
                if (claim >= 0) {
                    Descriptors.close(claim);
                }
            }
        } finally {
            open.writeLock().unlock();
        }
    }
}
