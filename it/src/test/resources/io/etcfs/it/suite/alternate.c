/*
 * To be loaded before libc (LD_PRELOAD): a program that works on one directory works on two instead. Every call that names a path below $ALTERNATE_ONE goes to
 * the same path below $ALTERNATE_OTHER each second time. Handles, and calls relative to one, stay where they were opened.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_ulong calls;

struct path {
    char text[PATH_MAX * 2];
};

/* Whether this call goes to the other directory. */
static int other_now(void) {
    return atomic_fetch_add(&calls, 1) & 1;
}

/* Anything that is not a text of usual length below the one directory is passed on as it is: wrong pointers among it, which only the kernel can read safely. */
static const char *at(const char *path, int other, struct path *room) {
    static const char *one, *two;
    if (!one) {
        two = getenv("ALTERNATE_OTHER");
        one = getenv("ALTERNATE_ONE");
    }
    if (!other || (unsigned long) path < 4096 || (unsigned long) path >= 1UL << 47) {
        return path;
    }
    size_t length = strlen(one);
    if (strncmp(path, one, length) != 0 || (path[length] != '/' && path[length] != 0) || strlen(path) >= PATH_MAX) {
        return path;
    }
    snprintf(room->text, sizeof room->text, "%s%s", two, path + length);
    return room->text;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *) dlsym(RTLD_NEXT, #name)
#define ON_PATH(type, name, arguments, ...) type name arguments { REAL(name); struct path r; path = at(path, other_now(), &r); return real(__VA_ARGS__); }
#define ON_TWO(type, name, arguments, ...) type name arguments { REAL(name); struct path r, s; int o = other_now(); from = at(from, o, &r); to = at(to, o, &s); return real(__VA_ARGS__); }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); struct path r; va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        return real(at(path, other_now(), &r), flags, mode); \
    }
#define OPENAT(name) \
    int name(int dir, const char *path, int flags, ...) { \
        REAL(name); struct path r; va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        return real(dir, at(path, other_now(), &r), flags, mode); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
ON_PATH(int, creat, (const char *path, mode_t mode), path, mode)
ON_PATH(int, truncate, (const char *path, off_t n), path, n)
ON_PATH(int, truncate64, (const char *path, off64_t n), path, n)
ON_TWO(int, rename, (const char *from, const char *to), from, to)
ON_TWO(int, renameat, (int d, const char *from, int e, const char *to), d, from, e, to)
ON_TWO(int, link, (const char *from, const char *to), from, to)
ON_TWO(int, linkat, (int d, const char *from, int e, const char *to, int flags), d, from, e, to, flags)
ON_PATH(int, symlink, (const char *target, const char *path), target, path)
ON_PATH(int, symlinkat, (const char *target, int d, const char *path), target, d, path)
ON_PATH(int, unlink, (const char *path), path)
ON_PATH(int, unlinkat, (int d, const char *path, int flags), d, path, flags)
ON_PATH(int, rmdir, (const char *path), path)
ON_PATH(int, mkdir, (const char *path, mode_t mode), path, mode)
ON_PATH(int, mkdirat, (int d, const char *path, mode_t mode), d, path, mode)
ON_PATH(int, mkfifo, (const char *path, mode_t mode), path, mode)
ON_PATH(int, mkfifoat, (int d, const char *path, mode_t mode), d, path, mode)
ON_PATH(int, mknod, (const char *path, mode_t mode, dev_t device), path, mode, device)
ON_PATH(int, mknodat, (int d, const char *path, mode_t mode, dev_t device), d, path, mode, device)
ON_PATH(int, chmod, (const char *path, mode_t mode), path, mode)
ON_PATH(int, fchmodat, (int d, const char *path, mode_t mode, int flags), d, path, mode, flags)
ON_PATH(int, chown, (const char *path, uid_t u, gid_t g), path, u, g)
ON_PATH(int, lchown, (const char *path, uid_t u, gid_t g), path, u, g)
ON_PATH(int, fchownat, (int d, const char *path, uid_t u, gid_t g, int flags), d, path, u, g, flags)
ON_PATH(int, access, (const char *path, int mode), path, mode)
ON_PATH(int, faccessat, (int d, const char *path, int mode, int flags), d, path, mode, flags)

/* The two are one filesystem: their device numbers are made the same. */
static void same_device(dev_t *device) {
    static struct stat one, other;
    if (!one.st_ino) {
        int (*real)(int, const char *, struct stat *, int) = (__typeof__(real)) dlsym(RTLD_NEXT, "fstatat");
        if (real(AT_FDCWD, getenv("ALTERNATE_OTHER"), &other, 0) != 0 || real(AT_FDCWD, getenv("ALTERNATE_ONE"), &one, 0) != 0) {
            abort();
        }
    }
    if (*device == other.st_dev) {
        *device = one.st_dev;
    }
}

static int stated(int result, dev_t *device) {
    if (result == 0) {
        same_device(device);
    }
    return result;
}

#define STAT(name, arguments, ...) int name arguments { REAL(name); struct path r; path = at(path, other_now(), &r); return stated(real(__VA_ARGS__), &s->st_dev); }
STAT(stat, (const char *path, struct stat *s), path, s)
STAT(stat64, (const char *path, struct stat64 *s), path, s)
STAT(lstat, (const char *path, struct stat *s), path, s)
STAT(lstat64, (const char *path, struct stat64 *s), path, s)
STAT(fstatat, (int d, const char *path, struct stat *s, int flags), d, path, s, flags)
STAT(fstatat64, (int d, const char *path, struct stat64 *s, int flags), d, path, s, flags)
int fstat(int fd, struct stat *s) { REAL(fstat); return stated(real(fd, s), &s->st_dev); }
int fstat64(int fd, struct stat64 *s) { REAL(fstat64); return stated(real(fd, s), &s->st_dev); }
int statx(int d, const char *path, int flags, unsigned int mask, struct statx *s) {
    REAL(statx);
    struct path r;
    int result = real(d, at(path, other_now(), &r), flags, mask, s);
    if (result == 0) {
        dev_t device = makedev(s->stx_dev_major, s->stx_dev_minor);
        same_device(&device);
        s->stx_dev_major = major(device);
        s->stx_dev_minor = minor(device);
    }
    return result;
}

ON_PATH(int, utimensat, (int d, const char *path, const struct timespec times[2], int flags), d, path, times, flags)
ON_PATH(int, utimes, (const char *path, const struct timeval times[2]), path, times)
ON_PATH(int, lutimes, (const char *path, const struct timeval times[2]), path, times)
ON_PATH(ssize_t, readlink, (const char *path, char *buffer, size_t n), path, buffer, n)
ON_PATH(ssize_t, readlinkat, (int d, const char *path, char *buffer, size_t n), d, path, buffer, n)
ON_PATH(long, pathconf, (const char *path, int name), path, name)
