"""As calls.py, with files that stay open on both sides: unlink and rename over open files, O_DIRECT, mappings.

usage: handles.py SEED STEPS LOCAL_DIRECTORY MOUNT...
"""
import os, random, sys, errno, mmap, stat

seed = int(sys.argv[1])
steps = int(sys.argv[2])
ref = sys.argv[3]
nodes = sys.argv[4:]
R = random.Random(seed)
top = "y%d_%d" % (seed, os.getpid())
os.mkdir(ref + "/" + top)
os.mkdir(nodes[0] + "/" + top)
names = ["a", "b", "c"]
slots = {}


def e(f):
    try:
        return ("ok", f())
    except OSError as x:
        return ("err", errno.errorcode.get(x.errno, x.errno))


def aligned(n):
    m = mmap.mmap(-1, n)
    return m


hist = []
bad = 0
for i in range(steps):
    x = R.random()
    n = R.choice(names)
    ni = R.randrange(len(nodes))
    node = nodes[ni]
    P = lambda b: b + "/" + top + "/" + n
    off = R.choice([0, R.randrange(20000), R.randrange(200000), 4096 * R.randrange(20)])
    ln = R.choice([R.randrange(1, 200), 4096, R.randrange(1, 9000), R.randrange(1, 150000)])
    d = R.randbytes(ln)
    ops = None
    if x < 0.12 and len(slots) < 12:
        fl = R.choice(
            [
                os.O_RDWR,
                os.O_RDWR | os.O_CREAT,
                os.O_RDWR | os.O_APPEND | os.O_CREAT,
                os.O_RDWR | os.O_CREAT | os.O_EXCL,
                os.O_RDWR | os.O_TRUNC,
                os.O_RDWR | os.O_DIRECT | os.O_CREAT,
                os.O_RDWR | os.O_CREAT | os.O_SYNC,
            ]
        )
        a = e(lambda: os.open(P(ref), fl & ~os.O_DIRECT, 0o644))
        b = e(lambda: os.open(P(node), fl, 0o644))
        hist.append((i, ni, "open", n, hex(fl), a[0] if a[0] == "ok" else a))
        if a[0] == "ok" and b[0] == "ok":
            slots[i] = (a[1], b[1], ni, n, fl)
            continue
        a = (a[0], a[1] if a[0] == "err" else 0)
        b = (b[0], b[1] if b[0] == "err" else 0)
    elif x < 0.18 and slots:
        k = R.choice(list(slots))
        s = slots.pop(k)
        a = e(lambda: os.close(s[0]))
        b = e(lambda: os.close(s[1]))
        hist.append((i, s[2], "close", k, s[3]))
    elif x < 0.24:
        a = e(lambda: os.unlink(P(ref)))
        b = e(lambda: os.unlink(P(node)))
        hist.append((i, ni, "unlink", n, a))
    elif x < 0.28:
        m = R.choice(names)
        a = e(lambda: os.rename(P(ref), ref + "/" + top + "/" + m))
        b = e(lambda: os.rename(P(node), node + "/" + top + "/" + m))
        hist.append((i, ni, "rename", n, m, a))
    elif x < 0.31:
        m = R.choice(names)
        a = e(lambda: os.link(P(ref), ref + "/" + top + "/" + m))
        b = e(lambda: os.link(P(node), node + "/" + top + "/" + m))
        hist.append((i, ni, "link", n, m, a))
    elif slots:
        k = R.choice(list(slots))
        fa, fb, ni, n, fl = slots[k]
        y = R.random()
        if y < 0.3:
            if fl & os.O_DIRECT:
                ln = 4096 * R.randrange(1, 30)
                off = 4096 * R.randrange(40)
                buf = aligned(ln)
                buf.write(R.randbytes(ln))
                d = bytes(buf)
                a = e(lambda: os.pwrite(fa, d, off))
                b = e(lambda: os.pwritev(fb, [buf], off))
            else:
                a = e(lambda: os.pwrite(fa, d, off))
                b = e(lambda: os.pwrite(fb, d, off))
            hist.append((i, ni, "pwrite", k, n, hex(fl), off, ln, a))
        elif y < 0.6:
            if fl & os.O_DIRECT:
                buf = aligned(1 << 20)
                a = e(lambda: os.pread(fa, 1 << 20, 0))
                b = e(lambda: bytes(buf[: os.preadv(fb, [buf], 0)]))
            else:
                a = e(lambda: os.pread(fa, 1 << 20, 0))
                b = e(lambda: os.pread(fb, 1 << 20, 0))
            hist.append((i, ni, "pread", k, n, hex(fl)))
        elif y < 0.72:
            t = R.choice([off, R.randrange(200000)])
            a = e(lambda: os.ftruncate(fa, t))
            b = e(lambda: os.ftruncate(fb, t))
            hist.append((i, ni, "ftruncate", k, n, t, a))
        elif y < 0.88:
            g = lambda f: (lambda s: (s.st_mode, s.st_nlink, s.st_size))(os.fstat(f))
            a = e(lambda: g(fa))
            b = e(lambda: g(fb))
            hist.append((i, ni, "fstat", k, n, a))
        elif y < 0.92:
            a = e(lambda: os.fsync(fa))
            b = e(lambda: os.fsync(fb))
            hist.append((i, ni, "fsync", k, n))
        else:

            def mm(f):
                sz = os.fstat(f).st_size
                if not sz:
                    return 0
                m = mmap.mmap(f, sz)
                o = off % sz
                w = d[: sz - o]
                m[o : o + len(w)] = w
                m.flush()
                r = bytes(m)
                m.close()
                return r

            a = e(lambda: mm(fa))
            b = e(lambda: mm(fb))
            hist.append((i, ni, "mmap", k, n, off, ln))
    else:
        continue
    if a != b:
        bad += 1
        sh = lambda r: tuple("<%d>" % len(o) if isinstance(o, bytes) else o for o in r)
        print("DIFF seed", seed, "step", i, "ref", sh(a), "got", sh(b))
        if isinstance(a[1], bytes) and isinstance(b[1], bytes):
            dd = [j for j in range(min(len(a[1]), len(b[1]))) if a[1][j] != b[1][j]]
            if dd:
                print("  differ", dd[0], dd[-1], len(dd), "zeros" if not any(b[1][j] for j in dd) else "")
        for h in hist[-14:]:
            print("   ", h)
        if bad > 1:
            break
for s in slots.values():
    os.close(s[0])
    os.close(s[1])
print("seed", seed, "diffs", bad)
sys.exit(1 if bad else 0)
