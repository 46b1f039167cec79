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


R, W, UN = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK


class Locker:
    """A process of its own that has a file open and does as it is told, a call at a time."""
    GETLK, SETLK, SETLKW, OFD_GETLK, OFD_SETLK, OFD_SETLKW = 5, 6, 7, 36, 37, 38

    def __init__(self, path, flags=os.O_RDWR):
        self.path = path
        ask, self._ask = os.pipe()
        self._answer, answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # Those of other lockers, too, which would not see their end.
            for fd in range(3, 256):
                if fd not in (ask, answer):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
            self._serve(os.fdopen(ask), os.fdopen(answer, 'w', buffering=1), path, flags)
        os.close(ask)
        os.close(answer)
        self._ask, self._answer = os.fdopen(self._ask, 'w', buffering=1), os.fdopen(self._answer)
        check(self.answer() == 'open')

    def _serve(self, ask, answer, path, flags):
        signal.signal(signal.SIGUSR1, lambda *_: None)
        files = [os.open(path, flags)]
        answer.write('open\n')
        for line in ask:
            word, *n = line.split()
            n = [int(x) for x in n]
            try:
                if word == 'fcntl':
                    # By the C library: Python would try again by itself after a signal.
                    lock = ctypes.create_string_buffer(struct.pack('hhqqi4x', n[2], 0, n[3], n[4], 0))
                    if libc.fcntl(files[n[0]], n[1], lock) != 0:
                        raise OSError(ctypes.get_errno(), 'fcntl')
                    kind, _, start, length, pid = struct.unpack('hhqqi4x', lock.raw[:32])
                    answer.write('0 %d %d %d %d\n' % (kind, start, length, pid))
                    continue
                elif word == 'flock':
                    if libc.flock(files[n[0]], n[1]) != 0:
                        raise OSError(ctypes.get_errno(), 'flock')
                elif word == 'open':
                    files.append(os.open(path, flags))
                elif word == 'dup':
                    files.append(os.dup(files[n[0]]))
                elif word == 'close':
                    os.close(files[n[0]])
                elif word == 'write':
                    os.pwrite(files[n[0]], b'w', n[1])
                elif word == 'fsync':
                    os.fsync(files[n[0]])
                elif word == 'read':
                    os.pread(files[n[0]], 1, n[1])
                answer.write('0\n')
            except OSError as e:
                answer.write('%d\n' % e.errno)
        os._exit(0)

    def tell(self, word, *numbers):
        self._ask.write(' '.join([word] + [str(int(x)) for x in numbers]) + '\n')

    def answer(self, seconds=20):
        import select
        end = time.monotonic() + seconds
        while not select.select([self._answer], [], [], 0.02)[0]:
            tick()
            check(time.monotonic() < end, 'no answer from the locker')
        tick()
        line = self._answer.readline()
        check(line, 'the locker ended')
        return line.strip()

    def call(self, word, *numbers):
        self.tell(word, *numbers)
        return int(self.answer().split()[0])

    def waits(self, seconds=0.3):
        import select
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self._answer], [], [], 0.02)[0]:
                return False
            tick()
        return True

    def lock(self, kind, start=0, length=0, file=0):
        return self.call('fcntl', file, self.SETLK, kind, start, length)

    def lock_later(self, kind, start=0, length=0, file=0):
        self.tell('fcntl', file, self.SETLKW, kind, start, length)

    def later(self):
        return int(self.answer().split()[0])

    def test(self, kind, start=0, length=0, file=0):
        """Null, or kind, start, length and pid of what is in the way."""
        self.tell('fcntl', file, self.GETLK, kind, start, length)
        code, *found = [int(x) for x in self.answer().split()]
        check(code == 0, 'F_GETLK', code)
        return None if found[0] == UN else tuple(found)

    def ofd(self, kind, start=0, length=0, file=0):
        return self.call('fcntl', file, self.OFD_SETLK, kind, start, length)

    def flock(self, how, file=0):
        return self.call('flock', file, how | fcntl.LOCK_NB)

    def flock_later(self, how, file=0):
        self.tell('flock', file, how)

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        tick()

    def end(self):
        self._ask.close()
        self._answer.close()
        os.waitpid(self.pid, 0)
        tick()


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
