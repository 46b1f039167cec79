# A device without a free block. ARGS: whether it is ours; one: from one node, which has all arenas in the end; two: from both at once.
OURS = ARGS[0] == 'ours'
MIB = 1 << 20
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def free(path):
    s = os.statvfs(path)
    tick()
    return s.f_bavail


def no_room(call, *args):
    check(refused(lambda: call(*args), errno.ENOSPC), 'there is room for', call, str(args)[:100])


def pattern(at, n, seed):
    """Bytes that say where they belong."""
    first = at // 8
    words = struct.pack('<%dQ' % (n // 8 + 2), *(seed << 40 | (first + i) for i in range(n // 8 + 2)))
    return words[at % 8:at % 8 + n]


def fill(fd, at, seed):
    """Everything that goes in, down to the last block."""
    for size in MIB, 65536, 4096, 1:
        while True:
            try:
                n = os.pwrite(fd, pattern(at, size, seed), at)
            except OSError as e:
                check(e.errno == errno.ENOSPC, e)
                break
            finally:
                tick()
            at += n
    return at


def verify(path, size, seed):
    fd = os.open(path, os.O_RDONLY)
    check(os.fstat(fd).st_size == size, path, 'has', os.fstat(fd).st_size, 'bytes, not', size)
    for at in range(0, size, MIB):
        n = min(MIB, size - at)
        check(os.pread(fd, n, at) == pattern(at, n, seed), path, 'has other bytes at', at)
        tick()
    os.close(fd)


def one(a, b):
    keep = os.open(a + '/keep', os.O_CREAT | os.O_RDWR)
    os.pwrite(keep, pattern(0, MIB, 1), 0)
    sparse = os.open(a + '/sparse', os.O_CREAT | os.O_RDWR)
    os.pwrite(sparse, b'x' * 4096, 0)
    os.ftruncate(sparse, 4 * MIB)
    os.fsync(keep)
    big = os.open(a + '/big', os.O_CREAT | os.O_RDWR)
    size = fill(big, 0, 2)
    check(free(a) == 0, 'blocks are left:', free(a))
    os.fsync(big)
    verify(b + '/big', size, 2)
    # What adds nothing goes on; what does is refused and changes nothing.
    os.pwrite(keep, pattern(100, 5000, 1), 100)
    os.fdatasync(keep)
    no_room(os.pwrite, keep, b'x' * 10, MIB)
    no_room(os.pwrite, sparse, b'x' * 10, MIB)
    check(os.fstat(keep).st_size == MIB, 'the size after ENOSPC')
    log = os.open(a + '/keep', os.O_WRONLY | os.O_APPEND)
    no_room(os.write, log, b'x' * 100_000)
    check(os.fstat(keep).st_size == MIB, 'the size after a refused append')
    os.close(log)
    empty = os.open(a + '/empty', os.O_CREAT | os.O_RDWR)
    no_room(os.write, empty, b'x')
    no_room(lambda: check(libc.fallocate(empty, 0, 0, 8 * MIB) < 0 and ctypes.get_errno() == errno.ENOSPC) or (_ for _ in ()).throw(OSError(errno.ENOSPC, 'fallocate')))
    os.close(empty)
    check(os.stat(b + '/empty').st_size == 0, 'the size of what had no room')
    os.ftruncate(keep, 100 * MIB)
    os.ftruncate(keep, MIB)
    os.rename(a + '/empty', a + '/renamed')
    os.chmod(a + '/keep', 0o600)
    # A mapping: SIGBUS at the first touch locally. Here the kernel asks nobody then, and msync says it, once; what has a block is written.
    if OURS:
        m = mmap.mmap(sparse, 4 * MIB)
        m[0:4] = b'kept'
        m[2 * MIB:2 * MIB + 4] = b'lost'
        no_room(m.flush)
        os.fsync(sparse)
        check(get(b + '/sparse')[:4] == b'kept', 'a mapped page that has a block')
        m.close()
    os.close(sparse)
    # Room again, by every way there is: used at once.
    taken = []
    for way in 'truncate', 'punch', 'unlink', 'unlink of an open one', 'rename over', 'truncate elsewhere':
        if way.startswith('truncate'):
            size -= 2 * MIB
            os.truncate((b if way.endswith('elsewhere') else a) + '/big', size)
        elif way == 'punch':
            size -= 2 * MIB
            check(libc.fallocate(big, 3, size, 2 * MIB) == 0, 'punch')
            os.ftruncate(big, size)
        elif way == 'unlink':
            os.unlink(taken.pop(0)[0])
        elif way == 'unlink of an open one':
            f = os.open(taken[0][0], os.O_RDONLY)
            os.unlink(taken.pop(0)[0])
            if OURS:
                no_room(os.pwrite, keep, b'x' * 4096, MIB)
            os.close(f)
        else:
            os.close(os.open(a + '/other', os.O_CREAT | os.O_WRONLY))
            os.rename(a + '/other', taken.pop(0)[0])
        tick()
        path = a + '/after ' + way
        f = os.open(path, os.O_CREAT | os.O_RDWR)
        n = fill(f, 0, 3)
        check(n == 2 * MIB or not OURS and n > 0, 'after', way, 'there is room for', n, 'bytes, not 2 MiB')
        os.fsync(f)
        os.close(f)
        taken.append((path, n))
    for path, n in taken:
        verify(b + path[len(a):], n, 3)
    os.close(big)
    verify(a + '/big', size, 2)
    verify(b + '/keep', MIB, 1)
    os.close(keep)
    for name in os.listdir(b):
        if not name.startswith('lost+found'):
            os.unlink(b + '/' + name)
            tick()


def two(a, b):
    """Both fill it at once; then one frees what the other goes on with."""
    sizes = mmap.mmap(-1, 64)

    def work(i):
        fd = os.open((a, b)[i] + '/of%d' % i, os.O_CREAT | os.O_RDWR)
        at = fill(fd, 0, 10 + i)
        os.fsync(fd)
        struct.pack_into('<q', sizes, 8 * i, at)
        # The other may have stopped before: what it has is what it had.
    forked(2, work)
    for i in range(2):
        size = struct.unpack_from('<q', sizes, 8 * i)[0]
        check(size > 0)
        verify((b, a)[i] + '/of%d' % i, size, 10 + i)
    check(free(a) == 0, 'blocks are left:', free(a))
    # The blocks of the file of the one are in the arenas of that one.
    for i in range(2):
        size = struct.unpack_from('<q', sizes, 8 * i)[0]
        here, there = ((a, b), (b, a))[i]
        os.truncate(there + '/of%d' % i, size // 2 // 8 * 8)
        fd = os.open(here + '/of%d' % i, os.O_RDWR)
        check(os.pwrite(fd, pattern(size // 2 // 8 * 8, 65536, 10 + i), size // 2 // 8 * 8) == 65536, 'after the other has freed some')
        os.close(fd)
        verify(there + '/of%d' % i, size // 2 // 8 * 8 + 65536, 10 + i)
    for i in range(2):
        os.unlink((b, a)[i] + '/of%d' % i)


def soon(seconds, condition, *what):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, *what)
        time.sleep(0.05)
        tick()


for d in HERE, THERE:
    os.makedirs(d, exist_ok=True)
before = free(HERE)
if ARGS[1] == 'two':
    two(HERE, THERE)
else:
    one(HERE, THERE)
if OURS:
    soon(10, lambda: free(THERE) >= before - 2 * MIB // 4096, 'the space does not come back', before, free(THERE))
