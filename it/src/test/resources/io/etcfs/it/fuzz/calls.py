"""Random system calls, each on a random node and on a local filesystem beside it: results, errors, bytes and attributes have to be equal.

usage: calls.py SEED STEPS LOCAL_DIRECTORY MOUNT...
"""
import os, random, sys, errno, mmap, stat, ctypes, struct

seed = int(sys.argv[1])
steps = int(sys.argv[2])
ref = sys.argv[3]
nodes = sys.argv[4:]
R = random.Random(seed)
top = "z%d_%d" % (seed, os.getpid())
os.mkdir(ref + "/" + top)
os.mkdir(nodes[0] + "/" + top)
libc = ctypes.CDLL(None, use_errno=True)


def renameat2(a, b, f):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), f) != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def fallocate(fd, mode, off, n):
    if libc.fallocate(fd, ctypes.c_int(mode), ctypes.c_long(off), ctypes.c_long(n)) != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


names = ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "e/d", "d/e", "d/e/a"]


def do(base, op):
    k = op[0]
    p = lambda n: base + "/" + top + "/" + n
    try:
        if k == "write":
            fd = os.open(p(op[1]), op[2], op[5])
            try:
                return ("ok", os.pwrite(fd, op[4], op[3]) if not op[2] & os.O_APPEND else os.write(fd, op[4]))
            finally:
                os.close(fd)
        if k == "setfl":
            import fcntl

            fd = os.open(p(op[1]), os.O_RDWR)
            try:
                r1 = os.pread(fd, op[2], 0)
                fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
                n = os.write(fd, op[3])
                r2 = os.pread(fd, 1 << 20, 0)
                return ("ok", n, r1, r2)
            finally:
                os.close(fd)
        if k == "read":
            fd = os.open(p(op[1]), os.O_RDONLY)
            try:
                return ("ok", os.pread(fd, op[3], op[2]))
            finally:
                os.close(fd)
        if k == "readall":
            fd = os.open(p(op[1]), os.O_RDONLY)
            try:
                return ("ok", os.pread(fd, 1 << 22, 0))
            finally:
                os.close(fd)
        if k == "trunc":
            os.truncate(p(op[1]), op[2])
            return ("ok",)
        if k == "falloc":
            fd = os.open(p(op[1]), os.O_RDWR)
            try:
                fallocate(fd, op[2], op[3], op[4])
            finally:
                os.close(fd)
            return ("ok",)
        if k == "mmap":
            fd = os.open(p(op[1]), os.O_RDWR)
            try:
                n = os.fstat(fd).st_size
                if n == 0:
                    return ("ok", 0)
                m = mmap.mmap(fd, n)
                o = op[2] % n
                d = op[3][: n - o]
                m[o : o + len(d)] = d
                if op[4]:
                    m.flush()
                r = bytes(m)
                m.close()
                return ("ok", r)
            finally:
                os.close(fd)
        if k == "rename":
            renameat2(p(op[1]), p(op[2]), op[3])
            return ("ok",)
        if k == "link":
            os.link(p(op[1]), p(op[2]))
            return ("ok",)
        if k == "unlink":
            os.unlink(p(op[1]))
            return ("ok",)
        if k == "mkdir":
            os.mkdir(p(op[1]), op[2])
            return ("ok",)
        if k == "rmdir":
            os.rmdir(p(op[1]))
            return ("ok",)
        if k == "symlink":
            os.symlink(op[1], p(op[2]))
            return ("ok",)
        if k == "chmod":
            os.chmod(p(op[1]), op[2])
            return ("ok",)
        if k == "chown":
            os.chown(p(op[1]), op[2], op[3])
            return ("ok",)
        if k == "utime":
            os.utime(p(op[1]), ns=(op[2], op[3]))
            return ("ok",)
        if k == "xset":
            os.setxattr(p(op[1]), op[2], op[3], op[4])
            return ("ok",)
        if k == "xget":
            return ("ok", os.getxattr(p(op[1]), op[2]), sorted(x for x in os.listxattr(p(op[1])) if x.startswith("user.")))
        if k == "xdel":
            os.removexattr(p(op[1]), op[2])
            return ("ok",)
        if k == "list":
            return ("ok", sorted(os.listdir(p(op[1]))))
        if k == "stat":
            s = os.lstat(p(op[1]))
            d = stat.S_ISDIR(s.st_mode)
            return ("ok", s.st_mode, s.st_nlink, s.st_uid, s.st_gid, None if d else s.st_size)
        if k == "seek":
            fd = os.open(p(op[1]), os.O_RDONLY)
            try:
                d = os.pread(fd, 1 << 22, 0)
                o = op[2]
                right = True
                if stat.S_ISDIR(os.fstat(fd).st_mode):
                    return ("ok", True)
                while o < len(d):
                    try:
                        q = os.lseek(fd, o, os.SEEK_DATA)
                    except OSError as e:
                        if e.errno != errno.ENXIO:
                            raise
                        q = len(d)
                    if d[o:q].count(0) != q - o:
                        right = False
                    if q >= len(d):
                        break
                    h = os.lseek(fd, q, os.SEEK_HOLE)
                    if h <= q or h > len(d):
                        right = False
                        break
                    o = h
                return ("ok", right)
            finally:
                os.close(fd)
    except OSError as e:
        return ("err", errno.errorcode.get(e.errno, e.errno))


def data(n):
    return R.randbytes(n)


def gen():
    n = R.choice(names)
    m = R.choice(names)
    x = R.random()
    off = R.choice([0, R.randrange(20000), R.randrange(300000), 4096 * R.randrange(20)])
    ln = R.choice([R.randrange(1, 200), 4096, R.randrange(1, 9000), R.randrange(1, 200000)])
    if x < 0.2:
        fl = os.O_RDWR | R.choice(
            [
                os.O_CREAT,
                os.O_CREAT,
                0,
                os.O_CREAT | os.O_EXCL,
                os.O_TRUNC,
                os.O_CREAT | os.O_TRUNC,
                os.O_APPEND,
                os.O_CREAT | os.O_APPEND,
                os.O_CREAT | os.O_DSYNC,
                os.O_CREAT | os.O_SYNC | os.O_APPEND,
                os.O_DIRECTORY,
            ]
        )
        return ("write", n, fl, off, data(ln), R.choice([0o644, 0o6755, 0o600]))
    if x < 0.23:
        return ("setfl", n, R.randrange(1, 9000), data(R.randrange(1, 9000)))
    if x < 0.30:
        return ("read", n, off, ln)
    if x < 0.34:
        return ("readall", n)
    if x < 0.40:
        return ("trunc", n, R.choice([off, R.randrange(300000), R.randrange(5000)]))
    if x < 0.46:
        return ("falloc", n, R.choice([0, 1, 3, 3, 16, 17, 2]), off, ln)
    if x < 0.52:
        return ("mmap", n, off, data(R.randrange(1, 9000)), R.random() < 0.5)
    if x < 0.62:
        return ("rename", n, m, R.choice([0, 0, 0, 1, 2]))
    if x < 0.66:
        return ("link", n, m)
    if x < 0.71:
        return ("unlink", n)
    if x < 0.76:
        return ("mkdir", n, R.choice([0o755, 0o2755, 0o1777]))
    if x < 0.78:
        return ("rmdir", n)
    if x < 0.80:
        return ("symlink", R.choice(names), n)
    if x < 0.83:
        return ("chmod", n, R.choice([0o644, 0o4755, 0o2755, 0o6775, 0o2644]))
    if x < 0.85:
        return ("chown", n, R.choice([-1, 0, 1000]), R.choice([-1, 0, 1000]))
    if x < 0.87:
        return ("utime", n, R.randrange(1 << 60), R.randrange(1 << 60))
    if x < 0.89:
        return ("xset", n, R.choice(["user.a", "user.b", "user.c"]), data(R.choice([0, 10, 1500])), R.choice([0, 0, 1, 2]))
    if x < 0.91:
        return ("xget", n, R.choice(["user.a", "user.b", "user.c"]))
    if x < 0.92:
        return ("xdel", n, R.choice(["user.a", "user.b"]))
    if x < 0.95:
        return ("list", R.choice(["d", "e", "d/e", "."]))
    if x < 0.98:
        return ("stat", n)
    return ("seek", n, off)


hist = []


def short(op):
    return tuple(("<%d>" % len(o)) if isinstance(o, bytes) else o for o in op)


bad = 0
for i in range(steps):
    op = gen()
    node = R.choice(nodes)
    a = do(ref, op)
    b = do(node, op)
    hist.append((i, nodes.index(node), short(op), a[0] if a[0] == "ok" else a))
    checks = [(op, a, b)]
    if R.random() < 0.3 or op[0] in ("write", "trunc", "falloc", "mmap", "setfl"):
        for q in (("readall", op[1]), ("stat", op[1])):
            n2 = R.choice(nodes)
            checks.append((q, do(ref, q), do(n2, q)))
    for q, a, b in checks:
        if a != b:
            bad += 1

            def sh(r):
                return tuple(("<%d>" % len(o)) if isinstance(o, bytes) else o for o in r)

            print("DIFF seed", seed, "step", i, "node", nodes.index(node), short(q), "after", short(op), "ref", sh(a), "got", sh(b))
            for x, y in zip(a, b):
                if isinstance(x, bytes) and isinstance(y, bytes):
                    d = [j for j in range(min(len(x), len(y))) if x[j] != y[j]]
                    if d:
                        print("   bytes differ from", d[0], "to", d[-1], "count", len(d), "got zero" if not any(y[j] for j in d) else "")
            for h in hist[-6:]:
                print("    ", h)
            if bad > 3:
                sys.exit(1)
print("seed", seed, "done, diffs", bad)
sys.exit(1 if bad else 0)
