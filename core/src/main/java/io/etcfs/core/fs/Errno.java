package io.etcfs.core.fs;

/** The errors an operation can end with; numbers are Linux's (asm-generic/errno.h). */
public enum Errno {
    EPERM(1), ENOENT(2), EINTR(4), EIO(5), ENXIO(6), E2BIG(7), EBADF(9), EAGAIN(11), ENOMEM(12), EACCES(13), EBUSY(16), EEXIST(17),
    EXDEV(18), ENOTDIR(20), EISDIR(21), EINVAL(22), ETXTBSY(26), EFBIG(27), ENOSPC(28), EROFS(30), EMLINK(31), ERANGE(34), EDEADLK(35),
    ENAMETOOLONG(36), ENOLCK(37), ENOSYS(38), ENOTEMPTY(39), ELOOP(40), ENODATA(61), EOPNOTSUPP(95), ECONNABORTED(103), ETIMEDOUT(110), ESTALE(116);

    private final int number;

    Errno(int number) {
        this.number = number;
    }

    public int number() {
        return number;
    }
}
