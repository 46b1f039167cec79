package io.etcfs.core.domain;

import io.etcfs.core.record.proto.FileType;

/**
 * A name of a directory.
 *
 * @param hash      of the name: its place in the directory's order and its readdir cookie
 * @param home      the directory in whose domain the inode lives; the inode itself for a directory
 * @param bornBatch the batch that first puts it, or 0 if it was read from etcd
 */
public record Dirent(byte[] name, long hash, long ino, FileType type, long home, long bornBatch) {
    public byte[] encode() {
        return io.etcfs.core.record.proto.Dirent.newBuilder().setInode(ino).setType(type).setHome(home).build().toByteArray();
    }

    public boolean isDirectory() {
        return type == FileType.DIRECTORY;
    }

    /** DT_* of dirent(5), which is the format bits of st_mode. */
    public int dirType() {
        return Inode.format(type) >> 12;
    }
}
