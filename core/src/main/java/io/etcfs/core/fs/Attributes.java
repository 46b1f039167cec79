package io.etcfs.core.fs;

/**
 * What stat(2) shows. Times in ns since the epoch; {@code mode} is st_mode; {@code blocks} in units of 512 bytes; {@code rdev} in the kernel's
 * 32-bit encoding.
 */
public record Attributes(long ino, int mode, int uid, int gid, int nlink, long size, long blocks, long atimeNs, long mtimeNs, long ctimeNs, long btimeNs, int rdev) {
    Attributes withoutName() {
        return new Attributes(ino, mode, uid, gid, 0, size, blocks, atimeNs, mtimeNs, ctimeNs, btimeNs, rdev);
    }
}
