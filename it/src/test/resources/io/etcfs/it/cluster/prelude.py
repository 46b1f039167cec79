# What each child program begins with. Every operation on a mount has to be followed by tick() within the hang detector's limit; whoever waits for something
# else says so with idle().
import ctypes, errno, fcntl, mmap, os, random, signal, stat, struct, subprocess, sys, threading, time, traceback

_page = mmap.mmap(os.open(os.environ['ETCFS_TICKS'], os.O_RDWR), 64 + 16 * 1024)
_slot = 0
_count = 0
# The scene's directory on the child's own node, and on the other one.
HERE, THERE, ARGS = sys.argv[1], sys.argv[2], sys.argv[3:]
BLOCK = 4096
libc = ctypes.CDLL(None, use_errno=True)


def tick():
    global _count
    _count += 1
    struct.pack_into('<q', _page, 64 + 16 * _slot, _count)


def _register(slot):
    global _slot
    _slot = slot
    tick()
    struct.pack_into('<q', _page, 64 + 16 * slot + 8, os.getpid())


def idle():
    """Until busy(), nothing that this process waits for is an operation."""
    struct.pack_into('<q', _page, 64 + 16 * _slot + 8, 0)


def busy():
    _register(_slot)


def until(seconds):
    """Rounds, one tick each, until the time is over."""
    end = time.monotonic() + seconds
    n = 0
    while time.monotonic() < end:
        tick()
        yield n
        n += 1


def rounds(n, seconds=1e9):
    end = time.monotonic() + seconds
    for i in range(n):
        tick()
        if time.monotonic() > end:
            return
        yield i


def check(condition, *what):
    if not condition:
        raise AssertionError(' '.join(str(w) for w in what))


def forked(n, work):
    """n processes that each run work(i); all must succeed."""
    pids = []
    for i in range(n):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _register(1 + i)
                work(i)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                idle()
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    idle()
    bad = [pid for pid in pids if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0]
    busy()
    check(not bad, len(bad), 'of', n, 'processes failed')


def put(path, data):
    """A file with these bytes, made or replaced."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(fd, data)
    os.close(fd)
    tick()


def get(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        data = b''
        while True:
            part = os.pread(fd, 1 << 20, len(data))
            if not part:
                return data
            data += part
            tick()
    finally:
        os.close(fd)
        tick()


def refused(call, *allowed):
    """Runs call(); the errno if it is one of those allowed, else 0."""
    try:
        call()
        return 0
    except OSError as e:
        if e.errno in allowed:
            return e.errno
        raise
    finally:
        tick()


_register(0)
struct.pack_into('<q', _page, 8, 1)
while struct.unpack_from('<q', _page, 0)[0] == 0:
    tick()
    time.sleep(0.002)
tick()
