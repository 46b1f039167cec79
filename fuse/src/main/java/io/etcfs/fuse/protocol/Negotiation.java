package io.etcfs.fuse.protocol;

import java.lang.foreign.MemorySegment;

/**
 * What both sides agreed on in INIT (struct fuse_init_out). Sizes in bytes.
 *
 * @param minor        of protocol 7, the lower of both sides'
 * @param flags        {@link InitFlags}
 * @param newerMajor   the kernel speaks a later major version: it is answered with ours, and sends another INIT
 */
public record Negotiation(int minor, long flags, int maxReadahead, int maxWrite, int maxPages, int maxBackground, int congestionThreshold,
        int timeGranularityNs, boolean newerMajor) {
    public static final int MAJOR = 7;
    /** Linux 5.14. */
    public static final int OLDEST_MINOR = 34;
    /** Linux 6.18. */
    public static final int NEWEST_MINOR = 45;
    public static final int MAX_WRITE_BYTES = 1 << 20;
    public static final int MAX_PAGES = 256;
    /** Requests that count as background (read-ahead, direct I/O) in the kernel at once: with a low bound, domains wait for each other. */
    public static final int MAX_BACKGROUND = 65535;
    public static final int CONGESTION_THRESHOLD = 49150;
    static final int REPLY_BYTES = 64;

    /**
     * The answer to an INIT. A function of its arguments.
     *
     * @param wanted flags to take if offered
     * @throws UnsupportedKernelException the kernel's protocol is older than 7.34
     */
    public static Negotiation negotiate(InitRequest request, long wanted) throws UnsupportedKernelException {
        boolean newerMajor = request.major() > MAJOR;
        if (request.major() < MAJOR || (!newerMajor && request.minor() < OLDEST_MINOR)) {
            throw new UnsupportedKernelException(request.major(), request.minor());
        }
        int minor = newerMajor ? NEWEST_MINOR : Math.min(request.minor(), NEWEST_MINOR);
        long flags = newerMajor ? 0 : request.flags() & wanted;
        if ((flags & InitFlags.INIT_EXT) == 0) {
            flags &= 0xffff_ffffL;
        }
        return new Negotiation(minor, flags, request.maxReadahead(), MAX_WRITE_BYTES, MAX_PAGES, MAX_BACKGROUND, CONGESTION_THRESHOLD, 1, newerMajor);
    }

    public boolean has(long flag) {
        return (flags & flag) != 0;
    }

    /** FUSE_EXPIRE_ONLY may be set in a notification (7.38, Linux 6.2). */
    public boolean canExpireEntries() {
        return minor >= 38;
    }

    /** FUSE_NOTIFY_PRUNE is known (7.45, Linux 6.18). */
    public boolean canPrune() {
        return minor >= 45;
    }

    /**
     * Writes the reply, header included.
     *
     * @param reply where the fuse_out_header goes
     * @return its length in bytes
     */
    public int encode(MemorySegment memory, long reply, long unique) {
        int length = Exchange.OUT_HEADER_BYTES + REPLY_BYTES;
        memory.asSlice(reply, length).fill((byte) 0);
        Wire.u32(memory, reply, length);
        Wire.u64(memory, reply + 8, unique);
        long body = reply + Exchange.OUT_HEADER_BYTES;
        Wire.u32(memory, body, MAJOR);
        Wire.u32(memory, body + 4, minor);
        Wire.u32(memory, body + 8, maxReadahead);
        Wire.u32(memory, body + 12, (int) flags);
        Wire.u16(memory, body + 16, maxBackground);
        Wire.u16(memory, body + 18, congestionThreshold);
        Wire.u32(memory, body + 20, maxWrite);
        Wire.u32(memory, body + 24, timeGranularityNs);
        Wire.u16(memory, body + 28, maxPages);
        Wire.u32(memory, body + 32, (int) (flags >>> 32));
        return length;
    }
}
