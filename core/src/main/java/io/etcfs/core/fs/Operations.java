package io.etcfs.core.fs;

import io.etcfs.core.lock.HeldLock;
import io.etcfs.core.lock.LockOwner;
import io.etcfs.core.lock.LockRequest;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The filesystem as the kernel asks for it: one method an operation of the FUSE protocol (linux/fuse.h), with its meaning. Inode numbers are
 * the kernel's node ids; 1 is the root. Names are bytes without '/' and NUL.
 *
 * <p>Every method may throw {@link MustWait} if and only if {@code call.mayWait()} is false. None keeps a reference to a buffer it was given.
 * Times for which the kernel may believe an answer are in ns from now; 0 means it must ask again.
 */
public interface Operations {
    /** A name's inode. {@code attributes} null: there is no such name, and the kernel may remember that for {@code entryValidNs}. */
    record Entry(long ino, long generation, Attributes attributes, long entryValidNs, long attributesValidNs) {}

    record Attr(Attributes attributes, long validNs) {}

    /** {@code openFlags}: FOPEN_* of the protocol. */
    record Opened(long handle, int openFlags) {}

    record Created(Entry entry, Opened opened) {}

    /**
     * Numbers of statfs(2); {@code blockSize} in bytes, the counts in blocks and inodes.
     */
    record FilesystemStatus(int blockSize, long blocks, long freeBlocks, long availableBlocks, long files, long freeFiles, int nameMax) {}

    /**
     * The fields of a setattr that are set; null: leave alone. Times: {@link #NOW_NS} for the current time.
     *
     * @param handle          of the open file it was called through (ftruncate), or -1
     * @param killPrivileges  clear suid and sgid (FATTR_KILL_SUIDGID)
     */
    record Change(Integer mode, Integer uid, Integer gid, Long size, Long atimeNs, Long mtimeNs, Long ctimeNs, long handle, boolean killPrivileges) {
        public static final long NOW_NS = Long.MIN_VALUE;
    }

    /** Takes the entries of a directory listing one by one. */
    interface DirectorySink {
        /** Room for one more entry with a name of that length, in the form of the listing that was asked for. False ends the listing. */
        boolean hasRoomFor(int nameLength);

        /**
         * @param cookie of this entry: a listing that goes on from it starts behind it
         * @param type   DT_* of dirent(5)
         * @param entry  for a listing with attributes: the entry, counted as one lookup, or null if the kernel has to look it up itself
         */
        void add(byte[] name, long ino, int type, long cookie, Entry entry);
    }

    /** Added to the flags of an open file in {@link #read} and {@link #write}: the bytes do not pass the kernel's page cache. */
    int AROUND_CACHE = 1 << 30;
    int SET_XATTR_CREATE = 1;
    int SET_XATTR_REPLACE = 2;
    /** Added to these where an access ACL is set by somebody outside of the file's group (FUSE_SETXATTR_ACL_KILL_SGID): sgid goes. */
    int SET_XATTR_KILL_SET_GID = 1 << 30;
    int RENAME_NOREPLACE = 1;
    int RENAME_EXCHANGE = 2;
    int RENAME_WHITEOUT = 4;

    /**
     * To be asked when the answer to the call is about to be written, as late as can be: may it grant the validities that it was made with? False: it was made
     * too long ago, and each of them is to be written as 0. Never waits; the answer is the same or becomes false when asked again.
     */
    boolean grantsStand(Call call);

    /** The answer to the call was written to the kernel, or could not be. To be called after each operation for whose call {@link Call#hasGrants}. */
    void replied(Call call);

    Entry lookup(Call call, long parent, byte[] name) throws FsException;

    /** The kernel gives back {@code count} lookups of an inode. Never waits. */
    void forget(long ino, long count);

    /** {@code handle} -1: not through an open file. */
    Attr getattr(Call call, long ino, long handle) throws FsException;

    Attr setattr(Call call, long ino, Change change) throws FsException;

    byte[] readlink(Call call, long ino) throws FsException;

    Entry symlink(Call call, long parent, byte[] name, byte[] target) throws FsException;

    /** {@code mode} has the type; {@code umask} has not been applied if the kernel was told DONT_MASK. */
    Entry mknod(Call call, long parent, byte[] name, int mode, int umask, int rdev) throws FsException;

    Entry mkdir(Call call, long parent, byte[] name, int mode, int umask) throws FsException;

    void unlink(Call call, long parent, byte[] name) throws FsException;

    void rmdir(Call call, long parent, byte[] name) throws FsException;

    void rename(Call call, long parent, byte[] name, long newParent, byte[] newName, int flags) throws FsException;

    Entry link(Call call, long ino, long newParent, byte[] newName) throws FsException;

    /** {@code flags}: of open(2), as the kernel passes them on; {@code killPrivileges}: with O_TRUNC, clear suid and sgid. */
    Opened open(Call call, long ino, int flags, boolean killPrivileges) throws FsException;

    Created create(Call call, long parent, byte[] name, int mode, int umask, int flags) throws FsException;

    /** O_TMPFILE: as create, without a name. {@link #link} gives it one, unless {@code flags} have O_EXCL. */
    Created tmpfile(Call call, long parent, int mode, int umask, int flags) throws FsException;

    /**
     * @param openFlags as of {@link #write}
     * @param scratch page-aligned memory of at least {@code size} + 8 KiB, into which the bytes are put
     * @return the part of {@code scratch} that holds the bytes read; shorter than {@code size} only at the end of the file
     */
    MemorySegment read(Call call, long ino, long handle, long offset, int size, int openFlags, MemorySegment scratch) throws FsException;

    /**
     * @param data           the bytes; if its address is page-aligned, whole blocks of it go to the device without a copy
     * @param openFlags      of the file as they are now (O_APPEND, O_DIRECT, O_SYNC, O_DSYNC count), and {@link #AROUND_CACHE}
     * @param fromPageCache  FUSE_WRITE_CACHE: write-back of a shared mapping
     * @param killPrivileges clear suid and sgid
     * @return bytes written: all of {@code data}
     */
    int write(Call call, long ino, long handle, long offset, MemorySegment data, int openFlags, boolean fromPageCache, boolean killPrivileges) throws FsException;

    /**
     * Closes one descriptor of the file.
     *
     * @param lockOwner whose fcntl locks go
     */
    void flush(Call call, long ino, long handle, long lockOwner) throws FsException;

    /**
     * F_GETLK.
     *
     * @return a lock that keeps {@code wanted} away, or null
     */
    LockRequest.Conflict getlk(Call call, long ino, long handle, HeldLock wanted) throws FsException;

    /**
     * Takes a lock of flock(2) or fcntl(2).
     *
     * @param wait until it can be had; ends with EINTR on any signal. Else it fails with EAGAIN
     * @throws FsException EDEADLK, if processes would wait for each other; ENOLCK: there are too many locks
     */
    void lock(Call call, long ino, long handle, HeldLock wanted, boolean wait) throws FsException;

    /** Gives up the bytes from {@code start} to {@code end}, both included. After an error that is still done. */
    void unlock(Call call, long ino, long handle, LockOwner owner, long start, long end) throws FsException;

    /** Frees what is left of locks that were taken through the handle only. Never waits for what others hold; work that is left is done later. */
    void release(Call call, long ino, long handle);

    void fsync(Call call, long ino, long handle, boolean dataOnly) throws FsException;

    Opened opendir(Call call, long ino) throws FsException;

    /** {@code cookie} 0: from the start. {@code withAttributes}: FUSE_READDIRPLUS. */
    void readdir(Call call, long ino, long handle, long cookie, boolean withAttributes, DirectorySink sink) throws FsException;

    void releasedir(Call call, long ino, long handle);

    void fsyncdir(Call call, long ino, long handle, boolean dataOnly) throws FsException;

    FilesystemStatus statfs(Call call) throws FsException;

    void setxattr(Call call, long ino, byte[] name, byte[] value, int flags) throws FsException;

    byte[] getxattr(Call call, long ino, byte[] name) throws FsException;

    List<byte[]> listxattr(Call call, long ino) throws FsException;

    void removexattr(Call call, long ino, byte[] name) throws FsException;

    /** {@code whence}: SEEK_DATA (3) or SEEK_HOLE (4). */
    long lseek(Call call, long ino, long handle, long offset, int whence) throws FsException;

    void fallocate(Call call, long ino, long handle, long offset, long length, int mode) throws FsException;
}
