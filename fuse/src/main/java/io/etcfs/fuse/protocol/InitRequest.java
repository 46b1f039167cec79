package io.etcfs.fuse.protocol;

import java.lang.foreign.MemorySegment;

/**
 * struct fuse_init_in. {@code flags} has {@code flags2} in its upper half if the kernel sends one (INIT_EXT, 7.36); older kernels send 16 bytes.
 *
 * @param maxReadahead bytes
 */
public record InitRequest(int major, int minor, int maxReadahead, long flags) {
    /** Of the request whose fuse_in_header is at {@code request}. */
    public static InitRequest decode(MemorySegment memory, long request) {
        long end = request + Wire.u32(memory, request);
        long body = request + Exchange.IN_HEADER_BYTES;
        int major = Wire.u32(memory, body);
        int minor = Wire.u32(memory, body + 4);
        int maxReadahead = body + 12 <= end ? Wire.u32(memory, body + 8) : 0;
        long flags = body + 16 <= end ? Wire.u32(memory, body + 12) & 0xffff_ffffL : 0;
        if ((flags & InitFlags.INIT_EXT) != 0 && body + 20 <= end) {
            flags |= (long) Wire.u32(memory, body + 16) << 32;
        }
        return new InitRequest(major, minor, maxReadahead, flags);
    }
}
