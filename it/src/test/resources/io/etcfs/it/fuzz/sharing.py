"""Two processes a node write interleaved records of one file, then append to another: each record is what its writer wrote last, no line is lost.

usage: sharing.py MOUNT...
"""
import os, sys, random, time, multiprocessing as mp, fcntl

nodes = sys.argv[1:]
F = "share%d" % os.getpid()
REC = 1000
N = 400
open(nodes[0] + "/" + F, "wb").write(b"\0" * REC * N)


def w(k, q):
    R = random.Random(k)
    mine = {}
    bad = 0
    fd = os.open(nodes[k % len(nodes)] + "/" + F, os.O_RDWR)
    wr = len(nodes) * 2
    end = time.time() + 12
    while time.time() < end:
        i = R.randrange(N // wr) * wr + k
        if R.random() < 0.5:
            b = R.randbytes(REC)
            os.pwrite(fd, b, i * REC)
            mine[i] = b
        else:
            got = os.pread(fd, REC, i * REC)
            if got != mine.get(i, b"\0" * REC):
                bad += 1
                print("bad own record", k, i, "zeros" if not any(got) else "")
    os.close(fd)
    q.put((mine, bad))


def app(k, n, name):
    fd = os.open(nodes[k % len(nodes)] + "/" + name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for i in range(n):
        os.write(fd, b"%d:%06d:" % (k, i) + b"x" * (i % 300) + b"\n")
    os.close(fd)


q = mp.Queue()
P = [mp.Process(target=w, args=(k, q)) for k in range(4)]
[p.start() for p in P]
allm = {}
tot = 0
for _ in P:
    m, b = q.get()
    allm.update(m)
    tot += b
[p.join() for p in P]
for n in nodes:
    d = open(n + "/" + F, "rb").read()
    b = sum(d[i * REC : (i + 1) * REC] != v for i, v in allm.items())
    print(n, "records", len(allm), "wrong", b, "size ok", len(d) == REC * N)
    tot += b + (len(d) != REC * N)
A = "app%d" % os.getpid()
P = [mp.Process(target=app, args=(k, 300, A)) for k in range(4)]
[p.start() for p in P]
[p.join() for p in P]
for n in nodes:
    L = open(n + "/" + A, "rb").read().split(b"\n")[:-1]
    s = set((l.split(b":")[0], l.split(b":")[1]) for l in L)
    print("append lines", len(L), "distinct", len(s))
    tot += len(L) != 1200 or len(s) != 1200
sys.exit(1 if tot else 0)
