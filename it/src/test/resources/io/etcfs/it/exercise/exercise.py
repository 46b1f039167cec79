"""Random calls on the bytes of a few files, compared with a model in memory after each read. One seed is one list of operations, whatever the filesystem answers.

usage: exercise.py SEED SECONDS|OPERATIONSops KEEP DIRECTORY...

The DIRECTORYs are one directory seen through one or more mounts; each open file belongs to one of them, taken at random. KEEP is a local directory: what is
needed to look into a difference is left there. Others may work in the same directory with other seeds. Exit code 1 and the last operations on a difference, 0 without one.

Bytes say who wrote them: 16 bytes are the operation's number, the file's number, and the offset in the file of the first of the 16. A seed that failed is run again
by its number of operations: the choice of each is the seed's, how they meet inside the filesystem is not.
"""
import ctypes, ctypes.util, errno, mmap, os, random, struct, sys, time

NAMES = 'abcd'
BLOCK = 4096
LARGEST = 3 << 20
HANDLES = 10
MAPPINGS = 4
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
KINDS = [
    ('plain', os.O_RDWR, 6),
    ('direct', os.O_RDWR | os.O_DIRECT, 3),
    ('append', os.O_RDWR | os.O_APPEND, 2),
    ('sync', os.O_RDWR | os.O_SYNC, 1),
    ('dsync', os.O_RDWR | os.O_DSYNC, 1),
    ('direct dsync', os.O_RDWR | os.O_DIRECT | os.O_DSYNC, 1),
]
libc = ctypes.CDLL(None, use_errno=True)


class Difference(Exception):
    pass


class Inode:
    """What a file should be."""

    def __init__(self, number):
        self.number = number
        self.data = bytearray()
        self.links = 1

    def put(self, offset, data):
        self.grow(offset)
        self.data[offset:offset + len(data)] = data

    def grow(self, size):
        if size > len(self.data):
            self.data.extend(bytes(size - len(self.data)))

    def zero(self, offset, end):
        end = min(end, len(self.data))
        if offset < end:
            self.data[offset:end] = bytes(end - offset)


class Handle:
    def __init__(self, inode, mount, kind, fd):
        self.inode, self.mount, self.kind, self.fd = inode, mount, kind, fd
        self.direct = 'direct' in kind
        self.mappings = []

    def __str__(self):
        return 'file %d on mount %d (%s)' % (self.inode.number, self.mount, self.kind)


class Mapping:
    def __init__(self, handle, length):
        self.handle = handle
        self.memory = mmap.mmap(handle.fd, length)
        self.length = length


class Exercise:
    def __init__(self, seed, keep, roots):
        self.random = random.Random(seed)
        self.keep, self.roots = keep, roots
        self.prefix = '%d-' % seed
        self.number = 0
        self.files = 0
        self.names = {}
        self.handles = []
        self.history = []
        self.counts = {}
        # For those ends that Python does not survive: a SIGBUS, a hang.
        self.log = open(keep + '/operations', 'wb', buffering=0)
        # One table of what can be done, by weight.
        self.table = [
            (self.write, 16), (self.write_vector, 3), (self.append, 4), (self.read, 14), (self.read_all, 3),
            (self.map, 3), (self.map_read, 7), (self.map_write, 9), (self.map_sync, 3), (self.unmap, 2),
            (self.truncate, 6), (self.punch, 4), (self.zero_range, 4), (self.allocate, 3), (self.copy, 6),
            (self.seek, 2), (self.sync, 4), (self.drop, 2), (self.status, 4),
            (self.open, 7), (self.close, 5), (self.unlink, 1), (self.rename, 1.5), (self.link, 0.7), (self.look, 3),
        ]

    # ---- choices

    def offset(self, inode):
        """Often at the start or end of a block, of the file, of a large unit; sometimes behind the end."""
        r, size = self.random, len(inode.data)
        kind = r.randrange(10)
        if kind < 4:
            at = r.randrange(size + 1)
        elif kind < 7:
            at = BLOCK * r.randrange(size // BLOCK + 2)
        elif kind < 8:
            at = size
        elif kind < 9:
            at = r.choice([65536, 131072, 1 << 20, 2 << 20]) + r.choice([-BLOCK, 0, BLOCK])
        else:
            at = size + r.randrange(200000)
        if r.randrange(4) == 0:
            at += r.choice([-1, 1, -511, 512])
        return min(max(at, 0), LARGEST - 1)

    def length(self, at):
        r = self.random
        kind = r.randrange(12)
        if kind < 4:
            n = r.randrange(1, 2 * BLOCK)
        elif kind < 7:
            n = BLOCK * r.randrange(1, 20)
        elif kind < 10:
            n = r.randrange(1, 150000)
        elif kind < 11:
            n = BLOCK - at % BLOCK + BLOCK * r.randrange(4)
        else:
            n = r.choice([65536, 1 << 20, (1 << 20) + BLOCK, r.randrange(1, 1 << 20)])
        return min(n, LARGEST - at)

    def bytes(self, inode, at, n):
        """What this operation writes there."""
        first = at - at % 16
        head = struct.pack('<IHH', self.number & 0xffffffff, inode.number & 0xffff, 0xe7cf)
        return b''.join(head + struct.pack('<Q', o) for o in range(first, at + n, 16))[at - first:at - first + n]

    def handle(self, where=lambda h: True):
        fit = [h for h in self.handles if where(h)]
        return self.random.choice(fit) if fit else None

    def mapping(self, where=lambda m: True):
        fit = [m for h in self.handles for m in h.mappings if where(m)]
        return self.random.choice(fit) if fit else None

    def know(self, h):
        """Page faults and copies go by the length that the kernel knows; what another mount has added is there after a call that asks for it."""
        if len(self.roots) > 1:
            # An answer that crosses an invalidation is dropped, and the next call asks again.
            for _ in range(3):
                os.fstat(h.fd)

    def settle(self, inode, end):
        """
        A write through the page cache that makes a file longer, while the page where it ended is written back for a mapping: Linux 6.18 puts zeros behind the old
        end into that page, and with them over what is being written, on any filesystem over FUSE. So that page is written back before.
        """
        if end > len(inode.data) and len(inode.data) % BLOCK:
            for m in [m for h in self.handles for m in h.mappings if h.inode is inode]:
                self.map_flush(m)

    def path(self, mount, name):
        return self.roots[mount] + '/' + self.prefix + name

    def say(self, *what):
        self.history.append('%d %s' % (self.number, ' '.join(str(w) for w in what)))
        self.log.write((self.history[-1] + '\n').encode())
        if len(self.history) > 200:
            del self.history[:100]

    # ---- checks

    def same(self, what, seen, should, at=0):
        if seen == should:
            return
        text = [what]
        if len(seen) != len(should):
            text.append('%d bytes instead of %d' % (len(seen), len(should)))
        n = min(len(seen), len(should))
        runs, begin = [], None
        for i in range(n + 1):
            differs = i < n and seen[i] != should[i]
            if differs and begin is None:
                begin = i
            elif not differs and begin is not None:
                if runs and begin - runs[-1][1] <= 16:
                    runs[-1][1] = i
                else:
                    runs.append([begin, i])
                begin = None
        for b, e in runs[:12]:
            text.append('bytes %d to %d are %s, should be %s' % (at + b, at + e, said(seen, b, e, at), said(should, b, e, at)))
        if len(runs) > 12:
            text.append('and %d more places' % (len(runs) - 12))
        raise Difference('\n  '.join(text))

    def must(self, what, condition):
        if not condition:
            raise Difference(what)

    # ---- operations: each says what it does before it does it

    def write(self):
        h = self.handle()
        if not h:
            return False
        at = len(h.inode.data) if h.kind == 'append' else self.offset(h.inode)
        n = self.length(at)
        if n <= 0:
            return False
        if h.direct:
            at -= at % BLOCK
            n = max(BLOCK, n - n % BLOCK)
        data = self.bytes(h.inode, at, n)
        self.settle(h.inode, at + n)
        self.say('write', h, at, n)
        done = 0
        while done < n:
            part = aligned(data[done:]) if h.direct else data[done:]
            got = os.pwritev(h.fd, [part], at + done)
            self.must('a write of %d bytes wrote %d' % (n - done, got), 0 < got <= n - done)
            h.inode.put(at + done, data[done:done + got])
            done += got

    def write_vector(self):
        h = self.handle(lambda h: not h.direct and h.kind != 'append')
        if not h:
            return False
        at = self.offset(h.inode)
        n = self.length(at)
        data = self.bytes(h.inode, at, n)
        cuts = sorted(self.random.randrange(n + 1) for _ in range(self.random.randrange(1, 6)))
        self.settle(h.inode, at + n)
        self.say('pwritev', h, at, n, cuts)
        got = os.pwritev(h.fd, [data[b:e] for b, e in zip([0] + cuts, cuts + [n])], at)
        self.must('pwritev of %d bytes wrote %d' % (n, got), got == n)
        h.inode.put(at, data)

    def append(self):
        h = self.handle(lambda h: h.kind == 'append')
        if not h:
            return False
        at = len(h.inode.data)
        n = min(self.random.choice([self.random.randrange(1, 200), self.length(at) or 1]), LARGEST - at)
        if n <= 0:
            return False
        data = self.bytes(h.inode, at, n)
        self.settle(h.inode, at + n)
        self.say('append', h, n, 'at', at)
        got = os.write(h.fd, data)
        self.must('an append of %d bytes wrote %d' % (n, got), got == n)
        h.inode.put(at, data)

    def read(self):
        h = self.handle()
        if not h:
            return False
        at = self.offset(h.inode)
        n = self.length(at)
        if h.direct:
            at -= at % BLOCK
            n = max(BLOCK, n - n % BLOCK)
        self.say('read', h, at, n)
        self.read_range(h, at, n)

    def read_all(self):
        h = self.handle()
        if not h:
            return False
        self.say('read all of', h)
        self.read_range(h, 0, LARGEST + BLOCK)

    def read_range(self, h, at, n):
        if h.direct:
            room = mmap.mmap(-1, n)
            seen = room[:os.preadv(h.fd, [room], at)]
        else:
            seen = os.pread(h.fd, n, at)
        should = bytes(h.inode.data[at:at + n])
        self.tries = 0
        while not h.direct and h.kind != 'append' and of_another_size(seen, should) and self.again():
            self.know(h)
            seen = os.pread(h.fd, n, at)
        self.same('read of %s' % h, seen, should, at)

    def again(self):
        """
        A read by the size that the kernel knew may be let pass, and is made again: that one read ends there, or has zeros behind the end. It takes another who works
        in the directory on another mount at the same time.
        """
        self.tries += 1
        self.counts['kernel sizes'] = self.counts.get('kernel sizes', 0) + 1
        return len(self.roots) > 1 and self.tries <= 3

    def map(self):
        h = self.handle(lambda h: not h.direct and h.inode.data)
        if not h or sum(len(o.mappings) for o in self.handles) >= MAPPINGS:
            return False
        self.say('mmap', h, len(h.inode.data))
        h.mappings.append(Mapping(h, len(h.inode.data)))

    def in_mapping(self):
        """A mapping and a range of it that the file has now, and that it had when it was mapped: a touch of any other page is a SIGBUS."""
        m = self.mapping(lambda m: m.handle.inode.data)
        if not m:
            return None
        self.know(m.handle)
        end = min(m.length, len(m.handle.inode.data))
        at = min(self.offset(m.handle.inode), end - 1)
        return m, at, min(max(self.length(at), 1), end - at)

    def map_read(self):
        found = self.in_mapping()
        if not found:
            return False
        m, at, n = found
        self.say('read mapped', m.handle, at, n)
        self.same('mapped %s' % m.handle, m.memory[at:at + n], bytes(m.handle.inode.data[at:at + n]), at)

    def map_write(self):
        found = self.in_mapping()
        if not found:
            return False
        m, at, n = found
        self.say('write mapped', m.handle, at, n)
        data = self.bytes(m.handle.inode, at, n)
        m.memory[at:at + n] = data
        m.handle.inode.put(at, data)
        if self.random.randrange(3) == 0:
            self.map_flush(m)

    def map_sync(self):
        m = self.mapping()
        if not m:
            return False
        self.map_flush(m)

    def map_flush(self, m):
        self.say('msync', m.handle)
        m.memory.flush()

    def unmap(self):
        m = self.mapping()
        if not m:
            return False
        self.say('munmap', m.handle)
        m.memory.close()
        m.handle.mappings.remove(m)

    def truncate(self):
        r = self.random
        h = self.handle()
        if not h:
            return False
        size = r.choice([self.offset(h.inode), r.randrange(len(h.inode.data) + 1), 0 if r.randrange(4) == 0 else self.offset(h.inode)])
        name = next((n for n in sorted(self.names) if self.names[n] is h.inode), None)
        if name and r.randrange(3) == 0:
            mount = r.randrange(len(self.roots))
            self.say('truncate', name, 'on mount', mount, size)
            os.truncate(self.path(mount, name), size)
        else:
            self.say('ftruncate', h, size)
            os.ftruncate(h.fd, size)
        del h.inode.data[size:]
        h.inode.grow(size)

    def fallocate(self, mode, what):
        h = self.handle()
        if not h:
            return None
        at = self.offset(h.inode)
        n = self.length(at)
        if n <= 0:
            return None
        self.say(what, h, at, n)
        if libc.fallocate(h.fd, mode, ctypes.c_int64(at), ctypes.c_int64(n)) != 0:
            raise OSError(ctypes.get_errno(), what)
        if not mode & KEEP_SIZE:
            h.inode.grow(at + n)
        if mode & (PUNCH_HOLE | ZERO_RANGE):
            h.inode.zero(at, at + n)
        return True

    def punch(self):
        return bool(self.fallocate(PUNCH_HOLE | KEEP_SIZE, 'punch hole'))

    def zero_range(self):
        return bool(self.fallocate(ZERO_RANGE | self.random.choice([0, KEEP_SIZE]), 'zero range'))

    def allocate(self):
        return bool(self.fallocate(self.random.choice([0, KEEP_SIZE]), 'fallocate'))

    def copy(self):
        # The kernel refuses to copy to where appends go.
        to = self.handle(lambda h: h.kind != 'append')
        source = to and self.handle(lambda h: h.mount == to.mount)
        if not source:
            return False
        at, target = self.offset(source.inode), self.offset(to.inode)
        n = min(self.length(at), LARGEST - target, len(source.inode.data) - at)
        if n <= 0 or source.inode is to.inode and abs(at - target) < n:
            return False
        if source.direct or to.direct:
            at, target, n = at - at % BLOCK, target - target % BLOCK, n - n % BLOCK
            if n <= 0:
                return False
        self.settle(to.inode, target + n)
        self.say('copy', source, at, 'to', to, target, n)
        self.know(source)
        self.tries = 0
        done = 0
        while done < n:
            try:
                got = os.copy_file_range(source.fd, to.fd, n - done, at + done, target + done)
            except OSError as e:
                # Between files of O_DIRECT the kernel has no way to copy on some filesystems.
                if e.errno == errno.EINVAL and (source.direct or to.direct):
                    self.counts['copies refused'] = self.counts.get('copies refused', 0) + 1
                    return True
                raise
            if got == 0 and self.again():
                self.know(source)
                continue
            self.must('a copy of %d bytes inside of the file answers %d' % (n - done, got), 0 < got <= n - done)
            to.inode.put(target + done, bytes(source.inode.data[at + done:at + done + got]))
            done += got

    def seek(self):
        h = self.handle(lambda h: h.inode.data)
        if not h:
            return False
        self.say('seek in', h)
        size, at = len(h.inode.data), 0
        while at < size:
            try:
                data = os.lseek(h.fd, at, os.SEEK_DATA)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
                data = size
            self.must('SEEK_DATA from %d answers %d, size %d' % (at, data, size), at <= data <= size)
            self.must('%s: a hole from %d to %d has bytes' % (h, at, data), not any(h.inode.data[at:data]))
            if data == size:
                return
            at = os.lseek(h.fd, data, os.SEEK_HOLE)
            self.must('SEEK_HOLE from %d answers %d, size %d' % (data, at, size), data < at <= size)

    def sync(self):
        h = self.handle()
        if not h:
            return False
        call = self.random.choice([os.fsync, os.fdatasync])
        self.say(call.__name__, h)
        call(h.fd)

    def drop(self):
        h = self.handle()
        if not h:
            return False
        self.say('drop pages of', h)
        os.posix_fadvise(h.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def status(self):
        h = self.handle()
        if not h:
            return False
        self.say('fstat', h)
        s = os.fstat(h.fd)
        self.must('%s has %d bytes, should have %d' % (h, s.st_size, len(h.inode.data)), s.st_size == len(h.inode.data))
        self.must('%s has %d links, should have %d' % (h, s.st_nlink, h.inode.links), s.st_nlink == h.inode.links)

    def open(self):
        r = self.random
        if len(self.handles) >= HANDLES:
            return False
        name, mount = r.choice(NAMES), r.randrange(len(self.roots))
        kind, flags = r.choices([(k, f) for k, f, _ in KINDS], [w for _, _, w in KINDS])[0]
        inode = self.names.get(name)
        cut = inode is not None and r.randrange(8) == 0
        if inode is None:
            self.files += 1
            inode = Inode(self.files)
            flags |= os.O_CREAT | (os.O_EXCL if r.randrange(2) else 0)
        if cut:
            flags |= os.O_TRUNC
        self.say('open', name, 'as file %d on mount %d (%s)' % (inode.number, mount, kind), 'cut' if cut else '')
        fd = os.open(self.path(mount, name), flags, 0o644)
        if cut:
            del inode.data[:]
        self.names[name] = inode
        self.handles.append(Handle(inode, mount, kind, fd))

    def close(self):
        h = self.handle()
        if not h:
            return False
        self.say('close', h)
        self.let_go(h)

    def let_go(self, h):
        # A mapping may outlive its descriptor; here it goes first or last.
        if self.random.randrange(2):
            for m in h.mappings:
                m.memory.close()
            os.close(h.fd)
        else:
            os.close(h.fd)
            for m in h.mappings:
                m.memory.close()
        self.handles.remove(h)

    def unlink(self):
        if not self.names:
            return False
        name, mount = self.random.choice(sorted(self.names)), self.random.randrange(len(self.roots))
        self.say('unlink', name, 'on mount', mount)
        os.unlink(self.path(mount, name))
        self.names.pop(name).links -= 1

    def rename(self):
        if not self.names:
            return False
        name, to, mount = self.random.choice(sorted(self.names)), self.random.choice(NAMES), self.random.randrange(len(self.roots))
        self.say('rename', name, to, 'on mount', mount)
        os.rename(self.path(mount, name), self.path(mount, to))
        inode = self.names[name]
        # Of two names of one file none goes.
        if self.names.get(to) is not inode:
            if to in self.names:
                self.names[to].links -= 1
            self.names[to] = inode
            del self.names[name]

    def link(self):
        free = [n for n in NAMES if n not in self.names]
        if not self.names or not free:
            return False
        name, to, mount = self.random.choice(sorted(self.names)), self.random.choice(free), self.random.randrange(len(self.roots))
        self.say('link', name, to, 'on mount', mount)
        os.link(self.path(mount, name), self.path(mount, to))
        self.names[to] = self.names[name]
        self.names[to].links += 1

    def look(self):
        """A name on one of the mounts, by itself."""
        name, mount = self.random.choice(NAMES), self.random.randrange(len(self.roots))
        self.say('stat', name, 'on mount', mount)
        try:
            size = os.stat(self.path(mount, name)).st_size
        except FileNotFoundError:
            size = None
        inode = self.names.get(name)
        should = None if inode is None else len(inode.data)
        self.must('%s on mount %d has %s bytes, should have %s' % (name, mount, size, should), size == should)

    # ---- the run

    def step(self):
        self.number += 1
        operation = self.random.choices([o for o, _ in self.table], [w for _, w in self.table])[0]
        if operation() is not False:
            self.counts[operation.__name__] = self.counts.get(operation.__name__, 0) + 1

    def verify(self):
        """All names and all open files, on all mounts."""
        for mount, root in enumerate(self.roots):
            self.say('names on mount', mount)
            seen = sorted(n.removeprefix(self.prefix) for n in os.listdir(root) if n.startswith(self.prefix))
            self.must('mount %d lists %s, should list %s' % (mount, seen, sorted(self.names)), seen == sorted(self.names))
            for name, inode in sorted(self.names.items()):
                self.say('read', name, 'on mount', mount)
                h = Handle(inode, mount, 'plain', os.open(self.path(mount, name), os.O_RDONLY))
                self.read_range(h, 0, LARGEST + BLOCK)
                os.close(h.fd)
        for h in self.handles:
            self.say('read all of', h)
            self.read_range(h, 0, LARGEST + BLOCK)

    def run(self, enough):
        while not enough(self.number):
            self.step()
            if self.number % 2000 == 0:
                self.verify()
        self.verify()
        for h in list(self.handles):
            self.let_go(h)
        self.verify()

    def leave(self):
        """What the files should be and what each mount shows."""
        for h in self.handles:
            self.copy_out('open-%d-mount-%d' % (h.inode.number, h.mount), lambda: os.pread(os.open('/proc/self/fd/%d' % h.fd, os.O_RDONLY), 2 * LARGEST, 0))
            self.copy_out('should-%d' % h.inode.number, lambda: bytes(h.inode.data))
        for name, inode in self.names.items():
            self.copy_out('should-%d' % inode.number, lambda: bytes(inode.data))
            for mount in range(len(self.roots)):
                self.copy_out('%s-mount-%d' % (name, mount), lambda: open(self.path(mount, name), 'rb').read())

    def copy_out(self, name, content):
        try:
            with open(self.keep + '/' + name, 'wb') as f:
                f.write(content())
        except OSError as e:
            print('could not keep', name, e)


def of_another_size(seen, should):
    """They agree as far as both go, and what one has more of is zero or missing."""
    n = min(len(seen), len(should))
    return len(seen) != len(should) and seen[:n] == should[:n] and not any(seen[n:])


def aligned(data):
    room = mmap.mmap(-1, len(data))
    room.write(data)
    return room


def said(data, begin, end, at):
    """Who wrote the bytes, from the first whole 16 of them."""
    part = data[begin:end]
    if not any(part):
        return 'zero'
    first = begin + -(at + begin) % 16
    # The difference may be a few bytes of it.
    for i in (first, first - 16):
        if 0 <= i and i + 16 <= len(data):
            number, file, magic, offset = struct.unpack('<IHHQ', data[i:i + 16])
            if magic == 0xe7cf:
                return 'of operation %d for offset %d of file %d' % (number, offset + begin - i, file)
    return part[:16].hex()


def main():
    seed, enough, keep, roots = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    if enough.endswith('ops'):
        last = int(enough[:-3])
        done = lambda n: n >= last
    else:
        end = time.monotonic() + float(enough)
        done = lambda n: time.monotonic() >= end
    exercise = Exercise(seed, keep, roots)
    try:
        exercise.run(done)
    except (Difference, OSError) as e:
        print('DIFFERENCE, seed %d, operation %d of %d mounts: %s' % (seed, exercise.number, len(roots), e))
        print('the last operations:\n  ' + '\n  '.join(exercise.history[-60:]))
        exercise.leave()
        print('kept in', keep)
        # Not by the way of Python, which unmaps what may hang.
        sys.stdout.flush()
        os._exit(1)
    print('seed %d: %d operations, no difference: %s' % (seed, exercise.number, ' '.join('%s %d' % c for c in sorted(exercise.counts.items()))))


main()
