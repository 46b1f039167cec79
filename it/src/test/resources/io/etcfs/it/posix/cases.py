# What a local filesystem under Linux does, as functions over two ways to the same directory: twice the same path, or the mounts of two nodes. Each leaves its
# directory to the runner. OURS: false on the local filesystem that is the measure.
RESULT, OURS = ARGS[0], ARGS[1] == 'ours'
AT_FDCWD, NOREPLACE, EXCHANGE, WHITEOUT = -100, 1, 2, 4
KEEP_SIZE, PUNCH, COLLAPSE, ZERO, INSERT, UNSHARE = 1, 2, 8, 16, 32, 64
libc.renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
for name, args in ('readdir', [ctypes.c_void_p]), ('telldir', [ctypes.c_void_p]), ('closedir', [ctypes.c_void_p]), ('rewinddir', [ctypes.c_void_p]), ('seekdir', [ctypes.c_void_p, ctypes.c_long]):
    getattr(libc, name).argtypes = args


def eq(a, b, *what):
    check(a == b, *what, repr(a)[:200], 'is not', repr(b)[:200])
    tick()


def fails(code, call, *args, **named):
    try:
        result = call(*args, **named)
    except OSError as e:
        codes = code if isinstance(code, tuple) else (code,)
        check(e.errno in codes, getattr(call, '__name__', 'call'), args, 'failed with', errno.errorcode[e.errno], 'not', [errno.errorcode[c] for c in codes])
        return
    finally:
        tick()
    raise AssertionError('%s %s succeeded: %s' % (getattr(call, '__name__', 'call'), str(args)[:200], result))


def libcall(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def rename2(a, b, flags):
    libcall(libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), flags))


def fallocate(fd, mode, at, n):
    libcall(libc.fallocate(fd, mode, at, n))


def make(path, data=b'', mode=0o644):
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    if data:
        eq(os.write(fd, data), len(data))
    os.close(fd)
    tick()
    return path


class opened:
    def __init__(self, path, flags=os.O_RDWR, mode=0o644):
        self.fd = os.open(path, flags, mode)

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)
        tick()


def as_user(work, uid=1000, gid=1000, groups=()):
    """Runs work() in a process of that user; its exception is ours."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(gid)
            os.setuid(uid)
            work()
            os.write(w, b'ok')
        except BaseException:
            os.write(w, traceback.format_exc().encode()[:4000])
        finally:
            os._exit(0)
    os.close(w)
    said = os.read(r, 5000).decode()
    os.close(r)
    os.waitpid(pid, 0)
    tick()
    check(said == 'ok', 'as user', uid, said)


def as_user_raises(work, uid=1000, gid=1000):
    """As as_user; an OSError of the work is raised here, too."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = b'other'
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            work()
            said = b'0'
        except OSError as e:
            said = b'%d' % e.errno
        finally:
            os.write(w, said)
            os._exit(0)
    os.close(w)
    said = os.read(r, 100).decode()
    os.close(r)
    os.waitpid(pid, 0)
    tick()
    check(said != 'other', 'as user', uid)
    if said != '0':
        raise OSError(int(said), os.strerror(int(said)))


def times(path):
    s = os.stat(path)
    return s.st_mtime_ns, s.st_ctime_ns


def a_moment():
    time.sleep(0.012)
    tick()


def soon(seconds, condition, *what):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, *what)
        time.sleep(0.05)
        tick()


class Statx(ctypes.Structure):
    """struct statx of linux/stat.h, as far as it is looked at."""
    _fields_ = [('mask', ctypes.c_uint32), ('blksize', ctypes.c_uint32), ('attributes', ctypes.c_uint64), ('nlink', ctypes.c_uint32), ('uid', ctypes.c_uint32), ('gid', ctypes.c_uint32),
                ('mode', ctypes.c_uint16), ('spare0', ctypes.c_uint16), ('ino', ctypes.c_uint64), ('size', ctypes.c_uint64), ('blocks', ctypes.c_uint64), ('attributes_mask', ctypes.c_uint64),
                ('atime', ctypes.c_int64 * 2), ('btime_s', ctypes.c_int64), ('btime_ns', ctypes.c_uint32), ('spare1', ctypes.c_int32), ('ctime', ctypes.c_int64 * 2), ('mtime', ctypes.c_int64 * 2),
                ('rest', ctypes.c_uint8 * 144)]


STATX_BTIME, STATX_DIOALIGN = 0x800, 0x2000


def statx(path, mask):
    s = Statx()
    libcall(libc.statx(AT_FDCWD, os.fsencode(path), 0x100, mask, ctypes.byref(s)))
    return s


# ---- names


def case_open_and_create(a, b):
    fails(errno.ENOENT, os.stat, b + '/f')
    make(a + '/f', b'text')
    fails(errno.EEXIST, os.open, b + '/f', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    with opened(b + '/f', os.O_CREAT | os.O_RDWR) as fd:
        eq(os.read(fd, 10), b'text')
    fails(errno.ENOTDIR, os.stat, b + '/f/x')
    fails(errno.ENOTDIR, os.open, b + '/f', os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.ENOTDIR, os.stat, a + '/f/')
    os.mkdir(a + '/d')
    fails(errno.EISDIR, os.open, b + '/d', os.O_WRONLY)
    fails(errno.EISDIR, os.open, b + '/new/', os.O_CREAT | os.O_WRONLY)
    fails(errno.EEXIST, os.open, b + '/d', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails(errno.ENOENT, os.open, b + '/none/f', os.O_CREAT | os.O_WRONLY)
    os.symlink('f', a + '/s')
    fails(errno.ELOOP, os.open, b + '/s', os.O_RDONLY | os.O_NOFOLLOW)
    fails(errno.EEXIST, os.open, b + '/s', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.symlink('made', a + '/dangling')
    make_through = os.open(b + '/dangling', os.O_CREAT | os.O_WRONLY, 0o644)
    os.close(make_through)
    eq(os.stat(a + '/made').st_size, 0)
    eq(os.stat(b + '/d/../d/./../f').st_ino, os.stat(a + '/f').st_ino)


def case_a_name_is_known_at_once_on_the_other_node(a, b):
    for i in range(40):
        fails(errno.ENOENT, os.stat, b + '/f')
        make(a + '/f', b'x' * i)
        eq(os.stat(b + '/f').st_size, i)
        os.unlink(b + '/f' if i % 2 else a + '/f')
        fails(errno.ENOENT, os.stat, a + '/f')


def case_mkdir_rmdir(a, b):
    os.mkdir(a + '/d', 0o750)
    fails(errno.EEXIST, os.mkdir, b + '/d')
    eq(stat.S_IMODE(os.stat(b + '/d').st_mode), 0o750)
    make(b + '/d/f')
    fails(errno.ENOTEMPTY, os.rmdir, a + '/d')
    fails(errno.EISDIR, os.unlink, a + '/d')
    fails(errno.ENOTDIR, os.rmdir, b + '/d/f')
    fails(errno.EINVAL, os.rmdir, a + '/d/.')
    fails(errno.ENOTEMPTY, os.rmdir, a + '/d/..')
    os.unlink(a + '/d/f')
    os.rmdir(b + '/d')
    fails(errno.ENOENT, os.rmdir, a + '/d')
    fails(errno.ENOENT, os.mkdir, a + '/none/d')
    make(a + '/f')
    fails(errno.EEXIST, os.mkdir, b + '/f')
    fails(errno.ENOTDIR, os.mkdir, b + '/f/d')


def case_directory_link_counts(a, b):
    os.mkdir(a + '/d')
    eq(os.stat(b + '/d').st_nlink, 2)
    os.mkdir(b + '/d/1')
    os.mkdir(a + '/d/2')
    eq(os.stat(b + '/d').st_nlink, 4)
    make(a + '/d/f')
    eq(os.stat(b + '/d').st_nlink, 4)
    os.mkdir(b + '/e')
    os.rename(a + '/d/1', a + '/e/1')
    eq((os.stat(b + '/d').st_nlink, os.stat(b + '/e').st_nlink), (3, 3))
    os.mkdir(a + '/e/2')
    os.rename(b + '/d/2', b + '/e/2')
    eq((os.stat(a + '/d').st_nlink, os.stat(a + '/e').st_nlink), (2, 4))
    os.rmdir(b + '/e/2')
    eq(os.stat(a + '/e').st_nlink, 3)
    eq(os.stat(b + '/e/1/..').st_ino, os.stat(a + '/e').st_ino)


def case_rename_files(a, b):
    make(a + '/f', b'f')
    make(b + '/g', b'g')
    ino = os.stat(a + '/f').st_ino
    os.rename(b + '/f', b + '/g')
    fails(errno.ENOENT, os.stat, a + '/f')
    eq((get(a + '/g'), os.stat(a + '/g').st_ino), (b'f', ino))
    fails(errno.ENOENT, os.rename, a + '/f', a + '/h')
    os.rename(a + '/g', a + '/g')
    eq(get(b + '/g'), b'f')
    os.mkdir(a + '/d')
    fails(errno.EISDIR, os.rename, b + '/g', b + '/d')
    fails(errno.ENOTDIR, os.rename, b + '/d', b + '/g')
    fails((errno.ENOTDIR,), os.rename, b + '/g', b + '/x/')
    os.rename(b + '/g', b + '/d/g')
    eq(get(a + '/d/g'), b'f')
    fails((errno.EBUSY, errno.EINVAL), os.rename, a + '/d/.', a + '/e')
    fails(errno.ENAMETOOLONG, os.rename, a + '/d/g', a + '/' + 'x' * 256)


def case_rename_directories(a, b):
    os.makedirs(a + '/d/e')
    make(a + '/d/e/f', b'f')
    fails(errno.EINVAL, os.rename, b + '/d', b + '/d/e/x')
    fails(errno.EINVAL, os.rename, b + '/d', b + '/d/x')
    fails(errno.ENOTEMPTY, os.rename, a + '/d/e', a + '/d')
    os.mkdir(b + '/empty')
    os.rename(a + '/d', a + '/empty')
    eq(get(b + '/empty/e/f'), b'f')
    fails(errno.ENOENT, os.stat, b + '/d')
    os.makedirs(b + '/full/x')
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, a + '/empty', a + '/full')
    os.rename(b + '/empty/e', b + '/full/e')
    eq(os.stat(a + '/full/e/..').st_ino, os.stat(a + '/full').st_ino)
    eq(get(a + '/full/e/f'), b'f')


def case_rename_of_two_links_of_one_file_does_nothing(a, b):
    make(a + '/f', b'f')
    os.link(a + '/f', a + '/g')
    os.rename(b + '/f', b + '/g')
    eq((get(a + '/f'), get(a + '/g'), os.stat(b + '/f').st_nlink), (b'f', b'f', 2))
    fails(errno.EEXIST, rename2, a + '/f', a + '/g', NOREPLACE)


def case_rename_noreplace_and_exchange(a, b):
    make(a + '/f', b'f')
    make(a + '/g', b'g')
    fails(errno.EEXIST, rename2, b + '/f', b + '/g', NOREPLACE)
    eq((get(a + '/f'), get(a + '/g')), (b'f', b'g'))
    rename2(b + '/f', b + '/h', NOREPLACE)
    eq(get(a + '/h'), b'f')
    rename2(a + '/h', a + '/g', EXCHANGE)
    eq((get(b + '/h'), get(b + '/g')), (b'g', b'f'))
    os.makedirs(a + '/d/sub')
    os.mkdir(a + '/p')
    os.rename(a + '/d', a + '/p/d')
    rename2(b + '/p/d', b + '/g', EXCHANGE)
    eq((get(a + '/p/d'), os.listdir(a + '/g'), os.stat(a + '/p').st_nlink), (b'f', ['sub'], 2))
    eq(os.stat(a + '/g/..').st_ino, os.stat(a).st_ino)
    fails(errno.ENOENT, rename2, b + '/h', b + '/none', EXCHANGE)
    fails(errno.EINVAL, rename2, b + '/h', b + '/g', EXCHANGE | NOREPLACE)
    fails(errno.EINVAL, rename2, b + '/g', b + '/g/sub', EXCHANGE)
    fails(errno.EINVAL, rename2, b + '/h', b + '/g', EXCHANGE | WHITEOUT)


def case_rename_whiteout(a, b):
    def is_whiteout(path):
        s = os.lstat(path)
        eq((stat.S_ISCHR(s.st_mode), s.st_rdev, s.st_nlink, s.st_uid), (True, 0, 1, 0))

    os.mkdir(a + '/d')
    make(a + '/f', b'f')
    ino = os.stat(b + '/f').st_ino
    rename2(b + '/f', b + '/d/g', WHITEOUT)
    eq((os.stat(a + '/d/g').st_ino, get(a + '/d/g'), sorted(os.listdir(a)), os.listdir(a + '/d')), (ino, b'f', ['d', 'f'], ['g']))
    is_whiteout(a + '/f')
    make(a + '/h', b'h')
    rename2(b + '/d/g', b + '/h', WHITEOUT)
    is_whiteout(a + '/d/g')
    eq(get(a + '/h'), b'f')
    rename2(a + '/h', a + '/i', WHITEOUT | NOREPLACE)
    fails(errno.EEXIST, rename2, b + '/i', b + '/h', WHITEOUT | NOREPLACE)
    is_whiteout(b + '/h')
    os.mkdir(a + '/e')
    make(b + '/e/x')
    rename2(b + '/e', b + '/d/e', WHITEOUT)
    is_whiteout(a + '/e')
    eq((os.stat(a).st_nlink, os.stat(a + '/d').st_nlink, os.listdir(a + '/d/e')), (3, 3, ['x']))
    for name in 'f', 'h', 'e', 'd/g':
        os.unlink(a + '/' + name)
    eq((sorted(os.listdir(b)), os.listdir(b + '/d')), (['d', 'i'], ['e']))
    os.chmod(a, 0o777)
    make(a + '/own')
    os.chown(a + '/own', 1000, 1000)
    as_user(lambda: rename2(b + '/own', b + '/moved', WHITEOUT))
    eq((os.lstat(a + '/own').st_uid, stat.S_ISCHR(os.lstat(a + '/own').st_mode), os.stat(a + '/moved').st_uid), (1000, True, 1000))


def case_a_replaced_file_lives_on_in_its_handles(a, b):
    make(a + '/f', b'old')
    make(a + '/g', b'new')
    with opened(a + '/f') as fd:
        os.rename(b + '/g', b + '/f')
        eq(os.pread(fd, 10, 0), b'old')
        eq(os.fstat(fd).st_nlink, 0)
        eq(get(a + '/f'), b'new')
        os.pwrite(fd, b'more', 3)
        eq(os.pread(fd, 10, 0), b'oldmore')
    eq(get(b + '/f'), b'new')


def case_replacing_is_atomic_for_readers(a, b):
    make(a + '/f', b'0' * 5000)

    def replace(_):
        for i in rounds(60):
            make(a + '/t', b'%d' % (i % 10) * 5000)
            os.rename(a + '/t', a + '/f')
            # FUSE opens by inode, after the lookup. The kernel looks again once if that was replaced meanwhile; twice in a row, as at 1,000 a second, is ESTALE.
            time.sleep(0.01)

    def read(_):
        for _ in rounds(150):
            data = get(b + '/f')
            check(len(data) == 5000 and len(set(data)) == 1, 'a mixture')
    forked(2, lambda i: (replace, read)[i](i))


def case_hard_links(a, b):
    make(a + '/f', b'f')
    before = os.stat(a + '/f').st_ctime_ns
    a_moment()
    os.link(b + '/f', b + '/g')
    s = os.stat(a + '/g')
    eq((s.st_nlink, s.st_ino), (2, os.stat(b + '/f').st_ino))
    check(s.st_ctime_ns > before, 'ctime after link')
    fails(errno.EEXIST, os.link, a + '/f', a + '/g')
    os.mkdir(a + '/d')
    fails(errno.EPERM, os.link, b + '/d', b + '/e')
    fails(errno.ENOENT, os.link, b + '/none', b + '/e')
    os.link(a + '/g', a + '/d/h')
    with opened(b + '/d/h') as fd:
        os.write(fd, b'changed')
    eq((get(a + '/f'), get(a + '/g')), (b'changed', b'changed'))
    os.chmod(a + '/g', 0o600)
    eq(stat.S_IMODE(os.stat(b + '/d/h').st_mode), 0o600)
    os.unlink(b + '/f')
    os.unlink(a + '/g')
    eq((os.stat(b + '/d/h').st_nlink, get(a + '/d/h')), (1, b'changed'))
    os.symlink('none', a + '/s')
    os.link(b + '/s', b + '/t', follow_symlinks=False)
    eq((os.readlink(a + '/t'), os.lstat(a + '/t').st_nlink), ('none', 2))


def case_hard_links_up_to_the_limit(a, b):
    if OURS and a == b:
        return  # Takes 20 s, and the two nodes do the same and more.
    make(a + '/f')
    os.mkdir(a + '/d')
    i = 1
    try:
        while i < 66_000:
            os.link(a + '/f', a + '/d/%d' % i)
            i += 1
            if i % 500 == 0:
                tick()
    except OSError as e:
        eq(e.errno, errno.EMLINK)
    eq((i, os.stat(b + '/f').st_nlink), (65_000, 65_000))
    fails(errno.EMLINK, os.link, b + '/f', b + '/g')
    os.unlink(b + '/d/1')
    os.link(b + '/f', b + '/g')
    eq((os.stat(a + '/g').st_nlink, sum(1 for _ in os.scandir(a + '/d'))), (65_000, 64_998))


def case_symlinks(a, b):
    os.symlink('target', a + '/s')
    s = os.lstat(b + '/s')
    eq((os.readlink(b + '/s'), s.st_size, stat.S_IMODE(s.st_mode)), ('target', 6, 0o777))
    fails(errno.ENOENT, os.stat, b + '/s')
    fails(errno.EEXIST, os.symlink, 'x', b + '/s')
    fails(errno.ENOENT, os.symlink, '', b + '/t')
    os.symlink('x' * 4095, a + '/long')
    eq((os.readlink(b + '/long'), os.lstat(b + '/long').st_size), ('x' * 4095, 4095))
    fails(errno.ENAMETOOLONG, os.symlink, 'x' * 4096, b + '/t')
    os.symlink('b', a + '/a')
    os.symlink('a', a + '/b')
    fails(errno.ELOOP, os.stat, b + '/a')
    make(a + '/f')
    fails(errno.EINVAL, os.readlink, b + '/f')
    os.symlink(b'\xff\xfe', os.fsencode(a) + b'/bytes')
    eq(os.readlink(os.fsencode(b) + b'/bytes'), b'\xff\xfe')


def case_special_files(a, b):
    os.mkfifo(a + '/fifo', 0o640)
    eq(os.stat(b + '/fifo').st_mode, stat.S_IFIFO | 0o640)
    os.mknod(a + '/socket', stat.S_IFSOCK | 0o600)
    eq(os.stat(b + '/socket').st_mode, stat.S_IFSOCK | 0o600)
    os.mknod(a + '/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
    s = os.stat(b + '/null')
    eq((stat.S_IFMT(s.st_mode), s.st_rdev), (stat.S_IFCHR, os.makedev(1, 3)))
    os.mknod(a + '/block', stat.S_IFBLK | 0o600, os.makedev(259, 70000))
    eq(os.stat(b + '/block').st_rdev, os.makedev(259, 70000))
    fails(errno.EEXIST, os.mkfifo, b + '/fifo')
    fails(errno.ENXIO, os.open, b + '/socket', os.O_RDONLY)
    fails(errno.ENXIO, os.open, b + '/fifo', os.O_WRONLY | os.O_NONBLOCK)
    r = os.open(b + '/fifo', os.O_RDONLY | os.O_NONBLOCK)
    w = os.open(b + '/fifo', os.O_WRONLY)
    os.write(w, b'through')
    eq(os.read(r, 10), b'through')
    os.close(r)
    os.close(w)
    as_user(lambda: fails((errno.EPERM, errno.EACCES), os.mknod, b + '/dev', stat.S_IFCHR | 0o666, os.makedev(1, 3)))


def case_names_of_any_bytes(a, b):
    ab, bb = os.fsencode(a), os.fsencode(b)
    names = [b'x' * 255, bytes(c for c in range(1, 256) if c != 47)[:250], b'\xff', b' ', b'new\nline', 'ü'.encode(), 'u\u0308'.encode(), b'.hidden', b'...', b'-', b'*']
    for n in names:
        make(ab + b'/' + n, n)
    eq(sorted(os.listdir(bb)), sorted(names))
    for n in names:
        eq(get(bb + b'/' + n), n)
    for call in (os.stat, os.mkdir, os.unlink, lambda p: os.open(p, os.O_CREAT | os.O_WRONLY), lambda p: os.symlink(b'x', p)):
        fails(errno.ENAMETOOLONG, call, bb + b'/' + b'y' * 256)
    fails(errno.ENAMETOOLONG, os.stat, bb + b'/x' * 2100)
    for n in names:
        os.unlink(bb + b'/' + n)
    eq(os.listdir(ab), [])


def case_paths_of_4096_bytes(a, b):
    # With the NUL at their end.
    def deep(top):
        path = top
        while len(path) + 256 <= 4095 - 2:
            path += '/' + 'd' * min(255, 4095 - 2 - len(path) - 1)
        return path, path + '/' + 'f' * (4095 - len(path) - 1)
    (top_a, file_a), (top_b, file_b) = deep(a), deep(b)
    os.makedirs(top_a)
    make(file_a, b'deep')
    eq((len(os.fsencode(file_a)), get(file_a)), (4095, b'deep'))
    eq(os.listdir(top_a), [os.path.basename(file_a)])
    if len(a) == len(b):
        eq(get(file_b), b'deep')
        os.rename(file_b, top_b + '/g')
        os.rename(top_a + '/g', file_a)
    for call in os.stat, os.unlink, os.mkdir, os.listdir, lambda path: os.open(path, os.O_CREAT | os.O_WRONLY), lambda path: os.rename(path, a + '/x'), lambda path: os.rename(a, path):
        fails(errno.ENAMETOOLONG, call, file_a + 'f')
    # Deeper than any path: by way of its parts.
    at = os.open(top_b, os.O_RDONLY)
    os.mkdir('e' * 255, dir_fd=at)
    below = os.open('e' * 255, os.O_RDONLY, dir_fd=at)
    os.close(os.open('g' * 255, os.O_CREAT | os.O_WRONLY, dir_fd=below))
    eq(os.listdir(below), ['g' * 255])
    os.unlink('g' * 255, dir_fd=below)
    os.close(below)
    os.close(at)


def case_deep_paths(a, b):
    path = ''
    for i in range(60):
        path += '/d%d' % i
        os.mkdir((a if i % 2 else b) + path)
        tick()
    make(a + path + '/f', b'deep')
    eq(get(b + path + '/f'), b'deep')
    os.rename(b + '/d0', b + '/e0')
    eq(get(a + '/e0' + path[3:] + '/f'), b'deep')


# ---- attributes


def case_chmod_chown(a, b):
    make(a + '/f')
    os.mkdir(a + '/d')
    for path in '/f', '/d':
        for mode in 0, 0o7777, 0o1755, 0o2644, 0o4711, 0o640:
            m, c = times(b + path)
            a_moment()
            os.chmod(a + path, mode)
            eq(stat.S_IMODE(os.stat(b + path).st_mode), mode)
            check(times(b + path)[0] == m and times(b + path)[1] > c, 'times after chmod')
    os.chown(b + '/f', 1234, 2345)
    s = os.stat(a + '/f')
    eq((s.st_uid, s.st_gid), (1234, 2345))
    os.chown(a + '/f', -1, 77)
    s = os.stat(b + '/f')
    eq((s.st_uid, s.st_gid), (1234, 77))
    os.symlink('f', a + '/s')
    os.chown(b + '/s', 5, 6, follow_symlinks=False)
    s = os.lstat(a + '/s')
    eq((s.st_uid, s.st_gid, os.stat(a + '/f').st_uid), (5, 6, 1234))
    os.chmod(a + '/f', 0o6755)
    os.chown(b + '/f', 0, 0)
    eq(stat.S_IMODE(os.stat(a + '/f').st_mode), 0o755)


def case_times_that_are_set_stay(a, b):
    make(a + '/f', b'x')
    os.mkdir(a + '/d')
    os.symlink('f', a + '/s')
    for path in '/f', '/d', '/s':
        for at, mt in (1_000_000_001, 1_500_000_000_123_456_789), (0, 1), (-5_000_000_001, -1_000_000_000), (4_102_444_800_999_999_999, 4_102_444_800_000_000_001):
            c = os.lstat(b + path).st_ctime_ns
            a_moment()
            os.utime(a + path, ns=(at, mt), follow_symlinks=False)
            s = os.lstat(b + path)
            eq((s.st_atime_ns, s.st_mtime_ns), (at, mt), path)
            check(s.st_ctime_ns > c, 'ctime after utime')
    with opened(a + '/f') as fd:
        os.pwrite(fd, b'written', 0)
        os.utime(fd, ns=(10**18, 10**18 + 7))
        eq(os.stat(b + '/f').st_mtime_ns, 10**18 + 7)
    eq(get(b + '/f'), b'written')
    eq(os.stat(a + '/f').st_mtime_ns, 10**18 + 7, 'after close and a look from elsewhere')
    make(b + '/d/f')
    os.utime(b + '/d', ns=(1, 10**18))
    eq(os.stat(a + '/d').st_mtime_ns, 10**18)
    os.utime(a + '/f')
    check(abs(os.stat(b + '/f').st_mtime - time.time()) < 2, 'now')


def case_times_of_all_ages(a, b):
    path = make(a + '/f')
    for s in 0, -1, -5, 1 << 31, 1 << 32, -(1 << 31), (1 << 33) - 1, 9_223_372_035, -9_223_372_035:
        if not OURS and not -(1 << 31) < s < 15_032_385_535:
            continue
        os.utime(path, ns=(s * 10**9 + 999_999_999, s * 10**9 + 1))
        eq((os.stat(b + '/f').st_atime_ns, os.stat(b + '/f').st_mtime_ns), (s * 10**9 + 999_999_999, s * 10**9 + 1))
    for s, end in (1 << 40, 9_223_372_035 if OURS else 15_032_385_535), (-(1 << 40), -9_223_372_035 if OURS else -(1 << 31)):
        os.utime(path, (s, s))
        eq(os.stat(b + '/f').st_mtime_ns, end * 10**9)


def case_times_of_a_file(a, b):
    begin = time.time_ns()
    make(a + '/f', b'12345')
    s = os.stat(b + '/f')
    for t in s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns:
        check(begin - 20_000_000 <= t <= time.time_ns(), 'times at birth')

    def moves(m, c, what, call):
        before = times(b + '/f')
        a_moment()
        call()
        after = times(b + '/f')
        check((after[0] > before[0]) == m and (after[0] == before[0]) != m, what, 'mtime', before, after)
        check((after[1] > before[1]) == c and (after[1] == before[1]) != c, what, 'ctime', before, after)

    with opened(a + '/f') as fd:
        moves(True, True, 'write', lambda: os.pwrite(fd, b'x', 0))
        moves(True, True, 'write at the end', lambda: os.pwrite(fd, b'x', 9))
        moves(False, False, 'read', lambda: os.pread(fd, 3, 0))
        moves(True, True, 'ftruncate', lambda: os.ftruncate(fd, 3))
        moves(True, True, 'ftruncate to the same size', lambda: os.ftruncate(fd, 3))
        moves(False, False, 'fsync', lambda: os.fsync(fd))
        moves(False, False, 'empty write', lambda: os.write(fd, b''))
        m = mmap.mmap(fd, 3)
        moves(False, False, 'a look at a mapping', lambda: m[0])

        def through_a_mapping():
            m[1:2] = b'm'
            m.flush()
        moves(True, True, 'a mapping and msync', through_a_mapping)
        m.close()
        make(a + '/from', b'bytes of another file')
        with opened(a + '/from', os.O_RDONLY) as source:
            source_times = times(b + '/from')
            moves(True, True, 'copy_file_range', lambda: os.copy_file_range(source, fd, 5, 0, 0))
            os.lseek(fd, 0, os.SEEK_SET)
            moves(True, True, 'sendfile', lambda: os.sendfile(fd, source, 3, 5))
            eq(times(b + '/from'), source_times, 'what was copied')
        moves(True, True, 'fallocate', lambda: fallocate(fd, 0, 0, 8192))
    moves(False, True, 'chmod', lambda: os.chmod(a + '/f', 0o600))
    moves(False, True, 'link', lambda: os.link(a + '/f', a + '/g'))
    moves(False, True, 'unlink of a link', lambda: os.unlink(a + '/g'))
    moves(False, True, 'setxattr', lambda: os.setxattr(a + '/f', 'user.x', b'y'))
    moves(False, True, 'removexattr', lambda: os.removexattr(a + '/f', 'user.x'))
    moves(True, True, 'O_TRUNC', lambda: os.close(os.open(a + '/f', os.O_WRONLY | os.O_TRUNC)))
    moves(True, True, 'O_TRUNC when empty', lambda: os.close(os.open(a + '/f', os.O_WRONLY | os.O_TRUNC)))
    moves(False, False, 'open', lambda: os.close(os.open(a + '/f', os.O_RDWR)))
    moves(False, False, 'refused chmod', lambda: as_user(lambda: fails((errno.EPERM, errno.EACCES), os.chmod, a + '/f', 0)))
    before = os.stat(b + '/f').st_ctime_ns
    a_moment()
    os.rename(a + '/f', a + '/r')
    check(os.stat(b + '/r').st_ctime_ns > before, 'ctime after rename')


def case_birth_time(a, b):
    def born(path):
        s = statx(path, STATX_BTIME)
        check(s.mask & STATX_BTIME, 'no btime')
        return s.btime_s * 10**9 + s.btime_ns
    begin = time.time_ns()
    make(a + '/f', b'x')
    os.mkdir(a + '/d')
    os.symlink('x', a + '/s')
    at = [born(a + p) for p in ('/f', '/d', '/s')]
    check(all(begin - 20_000_000 <= t <= time.time_ns() for t in at), 'btime at birth')
    a_moment()
    put(b + '/f', b'changed')
    os.chmod(b + '/f', 0o600)
    os.utime(a + '/f', ns=(1, 1))
    os.link(a + '/f', a + '/l')
    os.rename(b + '/f', b + '/d/g')
    make(b + '/d/x')
    eq([born(b + p) for p in ('/l', '/d', '/s')] + [born(a + '/d/g')], at + at[:1])
    make(a + '/f')
    check(born(b + '/f') > at[0], 'another file of that name')


def case_alignment_of_direct_io_is_not_told(a, b):
    make(a + '/f', b'x')
    told = statx(b + '/f', STATX_DIOALIGN).mask & STATX_DIOALIGN
    if OURS:
        # The kernel's FUSE takes over basic fields and btime only. Any multiple of 512 bytes will do, in memory too.
        eq(told, 0)


def case_atime(a, b):
    make(a + '/f', b'x')
    os.mkdir(a + '/d')
    os.symlink('f', a + '/s')
    for path in '/f', '/d', '/s':
        os.utime(a + path, ns=(10**18, 10**18), follow_symlinks=False)
    get(b + '/f')
    os.listdir(b + '/d')
    os.readlink(b + '/s')
    with opened(a + '/f', os.O_RDONLY | os.O_NOATIME) as fd:
        os.read(fd, 1)
        m = mmap.mmap(fd, 1, prot=mmap.PROT_READ)
        eq(m[0:1], b'x')
        m.close()
    if OURS:
        # As with the mount option noatime. The measure here has relatime.
        eq([os.lstat(x + p).st_atime_ns for x in (a, b) for p in ('/f', '/d', '/s')], [10**18] * 6)
    fails(errno.EPERM, lambda: as_user_raises(lambda: os.close(os.open(a + '/f', os.O_RDONLY | os.O_NOATIME))))
    os.utime(b + '/f', (5, 6))
    eq((os.stat(a + '/f').st_atime, os.stat(a + '/f').st_mtime), (5, 6))


def case_times_after_calls_that_fail(a, b):
    os.chmod(a, 0o755)
    make(a + '/f', b'12345')
    make(a + '/g', b'g')
    os.mkdir(a + '/d')
    make(a + '/d/x')
    paths = ['/f', '/g', '/d', '/d/x', '']

    def nothing_moves(what, code, call, *args, **named):
        before = [times(b + p) for p in paths]
        a_moment()
        fails(code, call, *args, **named)
        eq([times(b + p) for p in paths], before, what)

    nothing_moves('truncate', errno.EINVAL, os.truncate, a + '/f', -1)
    nothing_moves('truncate of a directory', errno.EISDIR, os.truncate, a + '/d', 0)
    nothing_moves('link', errno.EEXIST, os.link, a + '/f', a + '/g')
    nothing_moves('link of a directory', errno.EPERM, os.link, a + '/d', a + '/new')
    nothing_moves('rename', errno.EEXIST, rename2, a + '/f', a + '/g', NOREPLACE)
    nothing_moves('rename to below', errno.EINVAL, os.rename, a + '/d', a + '/d/e')
    nothing_moves('rename over a directory', errno.EISDIR, os.rename, a + '/f', a + '/d')
    nothing_moves('rmdir', errno.ENOTEMPTY, os.rmdir, a + '/d')
    nothing_moves('rmdir of a file', errno.ENOTDIR, os.rmdir, a + '/f')
    nothing_moves('unlink of a directory', (errno.EISDIR, errno.EPERM), os.unlink, a + '/d')
    nothing_moves('symlink', errno.EEXIST, os.symlink, 'x', a + '/f')
    nothing_moves('mkfifo', errno.EEXIST, os.mkfifo, a + '/g')
    nothing_moves('O_EXCL', errno.EEXIST, os.open, a + '/f', os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_TRUNC)
    nothing_moves('O_DIRECTORY', errno.ENOTDIR, os.open, a + '/f', os.O_RDONLY | os.O_DIRECTORY)
    nothing_moves('setxattr', errno.ENODATA, os.setxattr, a + '/f', 'user.none', b'', os.XATTR_REPLACE)
    nothing_moves('removexattr', errno.ENODATA, os.removexattr, a + '/f', 'user.none')
    with opened(a + '/f') as fd:
        nothing_moves('fallocate', errno.EINVAL, fallocate, fd, 0, 0, 0)
        nothing_moves('fallocate of another mode', errno.EOPNOTSUPP, fallocate, fd, PUNCH, 0, 100)
        nothing_moves('write', errno.EFBIG, os.pwrite, fd, b'x', (1 << 63) - 1 - 4096)
    with opened(a + '/f', os.O_RDONLY) as fd:
        nothing_moves('write of a reader', errno.EBADF, os.write, fd, b'x')
    for what, call in [('chmod', lambda: os.chmod(a + '/f', 0o777)), ('chown', lambda: os.chown(a + '/f', 1000, 1000)), ('utime', lambda: os.utime(a + '/f', (1, 1))),
                       ('truncate', lambda: os.truncate(a + '/f', 0)), ('O_TRUNC', lambda: os.open(a + '/f', os.O_WRONLY | os.O_TRUNC)),
                       ('setxattr', lambda: os.setxattr(a + '/f', 'user.x', b'')), ('unlink', lambda: os.unlink(a + '/f')), ('mkdir', lambda: os.mkdir(a + '/d/new')),
                       ('rename', lambda: os.rename(a + '/f', a + '/g')), ('create', lambda: make(a + '/d/new'))]:
        nothing_moves(what + ' of others', (errno.EPERM, errno.EACCES), as_user_raises, call)


def case_times_of_what_is_replaced(a, b):
    def moves(what, paths, call):
        before = [os.stat(b + p).st_ctime_ns for p in paths]
        a_moment()
        call()
        return [what, [(p, t) for p, t in zip(paths, before)]]

    def later(before, path, paths_before):
        check(os.stat(b + path).st_ctime_ns > dict(paths_before)[before], 'ctime of', before, 'now', path)

    make(a + '/f', b'f')
    make(a + '/g', b'g')
    os.link(a + '/g', a + '/h')
    m = times(b + '/h')[0]
    _, before = moves('rename over one of two names', ['/f', '/h'], lambda: os.rename(a + '/f', a + '/g'))
    later('/f', '/g', before)
    later('/h', '/h', before)
    eq((os.stat(b + '/h').st_nlink, times(b + '/h')[0]), (1, m))
    make(a + '/i', b'i')
    with opened(b + '/i') as fd:
        c = os.fstat(fd).st_ctime_ns
        a_moment()
        os.rename(a + '/h', a + '/i')
        check(os.fstat(fd).st_ctime_ns > c and os.fstat(fd).st_nlink == 0, 'ctime of the last name')
    os.mkdir(a + '/d')
    make(a + '/d/x')
    _, before = moves('exchange', ['/g', '/d/x', '/d'], lambda: rename2(a + '/g', a + '/d/x', EXCHANGE))
    later('/g', '/d/x', before)
    later('/d/x', '/g', before)
    later('/d', '/d', before)
    _, before = moves('exchange of a directory', ['/g', '/d'], lambda: rename2(a + '/g', a + '/d', EXCHANGE))
    later('/g', '/d', before)
    later('/d', '/g', before)
    os.mkdir(a + '/e')
    with opened(b + '/e', os.O_RDONLY) as fd:
        os.mkdir(a + '/over')
        c = os.stat(b + '/over').st_ctime_ns
        a_moment()
        os.rename(a + '/over', a + '/e')
        check(os.stat(b + '/e').st_ctime_ns > c, 'ctime of a directory that moved')
        eq(os.fstat(fd).st_nlink, 0)


def case_times_of_the_parent(a, b):
    os.mkdir(a + '/d')
    os.mkdir(a + '/e')
    make(a + '/d/there')

    def moves(yes, what, call, paths=('/d',)):
        before = [times(b + p) for p in paths]
        a_moment()
        call()
        for p, (m, c) in zip(paths, before):
            now = times(b + p)
            check(now[0] > m and now[1] > c if yes else now == (m, c), what, p, (m, c), now)

    d = a + '/d'
    moves(True, 'create', lambda: make(d + '/f'))
    moves(False, 'write', lambda: put(d + '/f', b'x'))
    moves(False, 'chmod of a file', lambda: os.chmod(d + '/f', 0o600))
    moves(True, 'mkdir', lambda: os.mkdir(d + '/s'))
    moves(False, 'create below', lambda: make(d + '/s/f'))
    moves(True, 'link', lambda: os.link(d + '/f', d + '/l'))
    moves(True, 'symlink', lambda: os.symlink('x', d + '/y'))
    moves(True, 'mknod', lambda: os.mkfifo(d + '/p'))
    moves(True, 'rename inside', lambda: os.rename(d + '/l', d + '/m'))
    moves(True, 'rename over', lambda: os.rename(d + '/m', d + '/y'))
    moves(True, 'rename to elsewhere', lambda: os.rename(d + '/p', a + '/e/p'), ('/d', '/e'))
    moves(True, 'rename of a directory', lambda: os.rename(d + '/s', a + '/e/s'), ('/d', '/e'))
    moves(True, 'exchange', lambda: rename2(d + '/f', a + '/e/s', EXCHANGE), ('/d', '/e'))
    rename2(d + '/f', a + '/e/s', EXCHANGE)
    moves(True, 'unlink', lambda: os.unlink(d + '/f'))
    os.rename(a + '/e/s', d + '/s')
    moves(False, 'EEXIST', lambda: fails(errno.EEXIST, os.mkdir, d + '/there'))
    moves(False, 'EEXIST of open', lambda: fails(errno.EEXIST, os.open, d + '/there', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    moves(False, 'ENOENT', lambda: fails(errno.ENOENT, os.unlink, d + '/none'))
    moves(False, 'ENOTEMPTY', lambda: fails(errno.ENOTEMPTY, os.rmdir, d + '/s'))
    moves(False, 'EISDIR', lambda: fails(errno.EISDIR, os.unlink, d + '/s'))
    moves(False, 'refused rename', lambda: fails(errno.ENOTDIR, os.rename, d + '/s', d + '/there'))
    moves(False, 'refused exchange', lambda: fails(errno.ENOENT, rename2, d + '/s', d + '/none', EXCHANGE))
    moves(False, 'refused link', lambda: fails(errno.EEXIST, os.link, d + '/there', d + '/s'))
    moves(False, 'a listing', lambda: os.listdir(d))
    os.unlink(d + '/s/f')
    moves(True, 'rmdir', lambda: os.rmdir(d + '/s'))


def case_umask(a, b):
    old = os.umask(0o077)
    try:
        make(a + '/f', mode=0o666)
        os.mkdir(a + '/d', 0o777)
        os.mkfifo(a + '/p', 0o666)
    finally:
        os.umask(old)
    eq([stat.S_IMODE(os.stat(b + p).st_mode) for p in ('/f', '/d', '/p')], [0o600, 0o700, 0o600])
    old = os.umask(0)
    try:
        make(b + '/g', mode=0o666)
        os.mkdir(b + '/e', 0o1777)
    finally:
        os.umask(old)
    eq([stat.S_IMODE(os.stat(a + p).st_mode) for p in ('/g', '/e')], [0o666, 0o1777])


def case_setgid_directories(a, b):
    os.mkdir(a + '/d')
    os.chown(a + '/d', 0, 4321)
    os.chmod(a + '/d', 0o2777)
    make(b + '/d/f')
    os.mkdir(b + '/d/e')
    os.symlink('x', b + '/d/s')
    os.mkfifo(b + '/d/p')
    eq([os.lstat(a + '/d/' + n).st_gid for n in 'fesp'], [4321] * 4)
    eq(os.stat(a + '/d/e').st_mode & stat.S_ISGID, stat.S_ISGID)
    eq(os.stat(a + '/d/f').st_mode & stat.S_ISGID, 0)
    as_user(lambda: make(b + '/d/u'))
    s = os.stat(a + '/d/u')
    eq((s.st_uid, s.st_gid), (1000, 4321))


def case_set_user_id_goes_with_a_write_of_others(a, b):
    def mode():
        return stat.S_IMODE(os.stat(b + '/f').st_mode)

    def rewrite():
        with opened(a + '/f', os.O_WRONLY) as fd:
            os.write(fd, b'x')

    make(a + '/f', b'12345')
    os.chmod(a + '/f', 0o6777)
    rewrite()
    eq(mode(), 0o6777, 'root keeps them:')
    as_user(rewrite)
    eq(mode(), 0o777)
    os.chmod(a + '/f', 0o6777)
    as_user(lambda: os.truncate(a + '/f', 2))
    eq(mode(), 0o777)
    os.chmod(a + '/f', 0o6777)
    as_user(lambda: os.close(os.open(a + '/f', os.O_WRONLY | os.O_TRUNC)))
    eq(mode(), 0o777)
    os.chmod(a + '/f', 0o6777)
    os.chown(a + '/f', 1000, 1000)
    eq(mode(), 0o777)


def case_set_user_id_goes_with_a_change_of_owner(a, b):
    def made(kind, name):
        if kind == stat.S_IFDIR:
            os.mkdir(a + name)
        else:
            os.mknod(a + name, kind | 0o644, os.makedev(1, 3))
        os.chown(a + name, 1000, 1000)

    kinds = stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFDIR
    os.chmod(a, 0o777)
    for n, kind in enumerate(kinds):
        name, kept = '/%d' % n, 0o6000 if kind == stat.S_IFDIR else 0
        made(kind, name)
        for change in (lambda: as_user(lambda: os.chown(b + name, -1, 2000), groups=[2000]), lambda: as_user(lambda: os.chown(b + name, 1000, 1000)), lambda: os.chown(b + name, 0, 0)):
            os.chmod(a + name, 0o6755)
            change()
            eq(stat.S_IMODE(os.stat(a + name).st_mode), 0o755 | kept, oct(kind), 'owner or group changed')
        # Of what the group can't execute it means something else.
        os.chmod(a + name, 0o6745)
        os.chown(b + name, 1000, 1000)
        eq(stat.S_IMODE(os.stat(a + name).st_mode), 0o2745 | kept, oct(kind), 'not for the group')
        os.chmod(a + name, 0o6755)
        as_user(lambda: os.chown(b + name, -1, -1))
        check(stat.S_IMODE(os.stat(a + name).st_mode) in (0o6755, 0o755 | kept))


def case_set_id_bits_by_rule(a, b):
    def mode(name):
        return stat.S_IMODE(os.lstat(b + '/' + name).st_mode)

    os.chmod(a, 0o777)
    # Who is not of the group can't set its bit.
    make(a + '/f')
    os.chown(a + '/f', 1000, 0)
    as_user(lambda: os.chmod(a + '/f', 0o6755))
    eq(mode('f'), 0o4755)
    as_user(lambda: os.chmod(a + '/f', 0o2755), groups=(0,))
    eq(mode('f'), 0o2755)
    os.mkdir(a + '/d')
    # A directory that gives its group on gives no bit to a file of somebody else's group.
    os.chmod(a + '/d', 0o2777)
    os.chown(a + '/d', 0, 4321)
    as_user(lambda: (os.umask(0), make(a + '/d/x', mode=0o2775), make(a + '/d/y', mode=0o2765)))
    s = os.stat(b + '/d/x')
    eq((mode('d/x'), s.st_gid, mode('d/y')), (0o775, 4321, 0o2765 & ~0o2000 if mode('d/y') == 0o765 else 0o2765))
    as_user(lambda: os.mkdir(a + '/d/e'))
    eq((mode('d/e') & 0o2000, os.stat(b + '/d/e').st_gid), (0o2000, 4321))
    # Renamed into it, it stays what it was.
    os.mkdir(a + '/plain')
    os.rename(a + '/plain', a + '/d/plain')
    eq((mode('d/plain') & 0o2000, os.stat(b + '/d/plain').st_gid), (0, 0))


def case_sticky_directories(a, b):
    os.chmod(a, 0o755)
    for name, owner in ('theirs', 2000), ('own', 1000):
        os.mkdir(a + '/' + name)
        os.chown(a + '/' + name, owner, owner)
        os.chmod(a + '/' + name, 0o1777)
        for i, uid in enumerate((0, 1000, 2000)):
            make(a + '/%s/f%d' % (name, uid))
            os.mkdir(a + '/%s/d%d' % (name, uid))
            for kind in 'fd':
                os.chown(a + '/%s/%s%d' % (name, kind, uid), uid, uid)
    t, o = b + '/theirs', b + '/own'

    def user():
        for uid in 0, 2000:
            fails(errno.EPERM, os.unlink, t + '/f%d' % uid)
            fails(errno.EPERM, os.rmdir, t + '/d%d' % uid)
            fails(errno.EPERM, os.rename, t + '/f%d' % uid, t + '/moved')
            fails(errno.EPERM, os.rename, t + '/f1000', t + '/f%d' % uid)
            fails(errno.EPERM, os.rename, t + '/d1000', t + '/d%d' % uid)
            fails(errno.EPERM, rename2, t + '/f1000', t + '/f%d' % uid, EXCHANGE)
        os.rename(t + '/f1000', t + '/mine')
        os.link(t + '/mine', t + '/link')
        os.unlink(t + '/mine')
        os.rmdir(t + '/d1000')
        # In a directory of one's own all may go.
        for uid in 0, 2000:
            os.rename(o + '/f%d' % uid, o + '/moved%d' % uid)
            os.unlink(o + '/moved%d' % uid)
            os.rmdir(o + '/d%d' % uid)
    as_user(user)
    eq((sorted(os.listdir(a + '/theirs')), sorted(os.listdir(a + '/own'))), (['d0', 'd2000', 'f0', 'f2000', 'link'], ['d1000', 'f1000']))


def case_permissions(a, b):
    os.chmod(a, 0o755)
    make(a + '/secret', b's', 0o600)
    os.mkdir(a + '/closed', 0o700)
    make(a + '/closed/f')
    os.mkdir(a + '/sticky')
    os.chmod(a + '/sticky', 0o1777)
    make(a + '/sticky/roots')
    make(a + '/readable', b'r', 0o644)

    def user():
        fails(errno.EACCES, os.open, b + '/secret', os.O_RDONLY)
        fails(errno.EACCES, os.stat, b + '/closed/f')
        fails(errno.EACCES, os.listdir, b + '/closed')
        fails(errno.EACCES, os.mkdir, b + '/new')
        fails(errno.EACCES, os.unlink, b + '/readable')
        fails(errno.EACCES, os.open, b + '/readable', os.O_WRONLY)
        eq(get(b + '/readable'), b'r')
        fails(errno.EPERM, os.unlink, b + '/sticky/roots')
        fails(errno.EPERM, os.rename, b + '/sticky/roots', b + '/sticky/mine')
        make(b + '/sticky/own', b'o')
        os.rename(b + '/sticky/own', b + '/sticky/still')
        fails(errno.EPERM, os.chmod, b + '/readable', 0o777)
        fails(errno.EPERM, os.chown, b + '/readable', 1000, 1000)
        fails(errno.EPERM, os.chown, b + '/sticky/still', 0, 0)
        fails(errno.EPERM, os.utime, b + '/readable', (1, 1))
        fails(errno.EACCES, os.utime, b + '/readable')
        check(not os.access(b + '/secret', os.R_OK) and os.access(b + '/readable', os.R_OK), 'access')
    as_user(user)
    os.chown(b + '/closed', 1000, 1000)
    as_user(lambda: make(a + '/closed/u'))
    os.chown(b + '/secret', 0, 555)
    os.chmod(b + '/secret', 0o640)
    as_user(lambda: get(a + '/secret'), groups=(555,))


# ---- bytes


def case_reads_and_writes(a, b):
    data = random.randbytes(3_000_001)
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        eq(os.pwrite(fd, data, 4097), len(data))
        eq(os.fstat(fd).st_size, len(data) + 4097)
        eq(os.pread(fd, 10, len(data) + 4097), b'')
    tick()
    seen = get(b + '/f')
    check(seen == bytes(4097) + data, 'bytes')
    model = bytearray(seen)
    for i in range(60):
        at, n = random.randrange(len(model)), random.choice([1, 17, 511, 4096, 5000, 70_000])
        with opened((a, b)[i % 2] + '/f') as fd:
            part = random.randbytes(n)
            eq(os.pwrite(fd, part, at), n)
            model[at:at + n] = part
        at = max(0, at - 3000)
        with opened((b, a)[i % 2] + '/f') as fd:
            check(os.pread(fd, n + 6000, at) == bytes(model[at:at + n + 6000]), 'bytes after write', i)
    check(get(a + '/f') == bytes(model) == get(b + '/f'), 'all bytes')
    with opened(b + '/f') as fd:
        eq(os.lseek(fd, 0, os.SEEK_END), len(model))
        fails(errno.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
        eq(os.readv(fd, [bytearray(3)]), 0)
        eq(os.pwritev(fd, [b'ab', b'', b'cd'], 1), 4)
    with opened(a + '/f') as fd:
        eq(os.pread(fd, 4, 1), b'abcd')


def case_handles_know_their_mode(a, b):
    make(a + '/f', b'123')
    with opened(b + '/f', os.O_RDONLY) as fd:
        fails(errno.EBADF, os.write, fd, b'x')
        fails((errno.EINVAL, errno.EBADF), os.ftruncate, fd, 0)
    with opened(b + '/f', os.O_WRONLY) as fd:
        fails(errno.EBADF, os.read, fd, 1)
    with opened(b, os.O_RDONLY) as fd:
        fails(errno.EISDIR, os.read, fd, 1)


def case_truncate(a, b):
    make(a + '/f', b'x' * 10_000)
    os.truncate(b + '/f', 100)
    eq(get(a + '/f'), b'x' * 100)
    os.truncate(a + '/f', 9_000)
    eq(get(b + '/f'), b'x' * 100 + bytes(8_900))
    with opened(b + '/f') as fd:
        os.ftruncate(fd, 0)
        eq(os.stat(a + '/f').st_size, 0)
        os.ftruncate(fd, 1 << 40)
        eq(os.stat(a + '/f').st_size, 1 << 40)
        os.pwrite(fd, b'end', (1 << 40) - 3)
    with opened(a + '/f') as fd:
        eq(os.pread(fd, 10, (1 << 40) - 6), b'\0\0\0end')
    check(os.stat(b + '/f').st_blocks < 1000, 'a sparse file has blocks')
    fails(errno.EINVAL, os.truncate, a + '/f', -1)
    os.mkdir(a + '/d')
    fails(errno.EISDIR, os.truncate, b + '/d', 0)
    fails(errno.ENOENT, os.truncate, b + '/none', 0)
    make(b + '/g', b'0123456789' * 1000)
    for size in 9_999, 8_192, 4_097, 4_096, 4_095, 1:
        os.truncate((a, b)[size % 2] + '/g', size)
        eq(get((b, a)[size % 2] + '/g'), (b'0123456789' * 1000)[:size])
    os.truncate(a + '/g', 5_000)
    eq(get(b + '/g'), b'0' + bytes(4_999))


def case_o_trunc(a, b):
    make(a + '/f', b'x' * 5000)
    with opened(b + '/f', os.O_RDWR | os.O_TRUNC) as fd:
        eq(os.stat(a + '/f').st_size, 0)
        os.write(fd, b'new')
    eq(get(a + '/f'), b'new')
    with opened(a + '/f', os.O_RDONLY) as reader:
        with opened(b + '/f', os.O_WRONLY | os.O_TRUNC) as fd:
            eq(os.pread(reader, 10, 0), b'')
            os.write(fd, b'other')
        eq(os.pread(reader, 10, 0), b'other')
    # Whatever the handle may do.
    with opened(b + '/f', os.O_RDONLY | os.O_TRUNC) as fd:
        eq((os.fstat(fd).st_size, os.pread(fd, 10, 0)), (0, b''))
    eq((os.stat(a + '/f').st_size, get(a + '/f')), (0, b''))


def case_appends(a, b):
    make(a + '/f')
    with opened(a + '/f', os.O_WRONLY | os.O_APPEND) as x, opened(b + '/f', os.O_WRONLY | os.O_APPEND) as y:
        text = b''
        for i in range(60):
            line = b'%d %s\n' % (i, b'.' * random.randrange(300))
            os.write((x, y)[i % 2], line)
            text += line
        os.pwrite(x, b'also at the end', 0)
        text += b'also at the end'
    eq(get(b + '/f'), text)
    with opened(a + '/f', os.O_RDWR) as fd:
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
        with opened(b + '/f', os.O_WRONLY | os.O_APPEND) as y:
            os.write(y, b'1')
        os.write(fd, b'2')
        eq(os.pread(fd, 2, len(text)), b'12')
    eq(get(b + '/f'), text + b'12')


def case_appends_by_fcntl_and_by_call(a, b):
    make(a + '/f', b'0' * 10)
    with opened(a + '/f') as fa, opened(b + '/f') as fb:
        flags = fcntl.fcntl(fb, fcntl.F_GETFL)
        fcntl.fcntl(fb, fcntl.F_SETFL, flags | os.O_APPEND)
        for _ in range(5):
            os.pwrite(fa, b'a', os.fstat(fa).st_size)
            os.write(fb, b'b')
        eq(get(a + '/f'), b'0' * 10 + b'ab' * 5)
        fcntl.fcntl(fb, fcntl.F_SETFL, flags)
        os.pwrite(fb, b'H', 0)
        eq(get(a + '/f'), b'H' + b'0' * 9 + b'ab' * 5)
        size = 20
        for _ in range(5):
            for fd in fa, fb:
                if OURS:
                    # The kernel does not say that it is an append, and places it at the end that it knows: B4a.
                    os.fstat(fd)
                eq(os.pwritev(fd, [b'12', b'3'], 0, os.RWF_APPEND), 3)
                size += 3
                eq((os.fstat(fa).st_size, os.fstat(fb).st_size), (size, size))
        eq(get(b + '/f'), b'H' + b'0' * 9 + b'ab' * 5 + b'123' * 10)


def case_the_end_after_an_append(a, b):
    make(a + '/f', b'0' * 10)
    with opened(a + '/f', os.O_WRONLY | os.O_APPEND) as fa, opened(b + '/f', os.O_WRONLY | os.O_APPEND) as fb:
        for size in range(15, 60, 10):
            os.write(fa, b'aaaaa')
            # The position is of the end that the kernel knew, where another node has appended: B4a.
            a == b and eq(os.lseek(fa, 0, os.SEEK_CUR), size)
            eq(os.lseek(fa, 0, os.SEEK_END), size)
            os.write(fb, b'bbbbb')
            a == b and eq(os.lseek(fb, 0, os.SEEK_CUR), size + 5)
            eq((os.fstat(fb).st_size, os.lseek(fb, 0, os.SEEK_END)), (size + 5, size + 5))
    eq(get(b + '/f'), b'0' * 10 + b'aaaaabbbbb' * 5)


def case_concurrent_appends_are_whole(a, b):
    make(a + '/f')

    def work(i):
        with opened((a, b)[i % 2] + '/f', os.O_WRONLY | os.O_APPEND) as fd:
            for n in rounds(40):
                os.write(fd, b'%d %03d %s\n' % (i, n, b'x' * 200))
    forked(4, work)
    lines = get(b + '/f').split(b'\n')[:-1]
    eq(len(lines), 160)
    for i in range(4):
        eq([x for x in lines if x.startswith(b'%d ' % i)], [b'%d %03d %s' % (i, n, b'x' * 200) for n in range(40)])


def case_sparse_files(a, b):
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        for at in 0, 1 << 20, (1 << 20) + 4096, 5 << 20:
            os.pwrite(fd, b'd' * 4096, at)
        os.ftruncate(fd, 8 << 20)
    with opened(b + '/f') as fd:
        M = 1 << 20
        eq([os.lseek(fd, at, os.SEEK_DATA) for at in (0, 100, 4096, M + 5000, 2 * M)], [0, 100, M, M + 5000, 5 * M])
        eq([os.lseek(fd, at, os.SEEK_HOLE) for at in (0, 5000, M, 5 * M)], [4096, 5000, M + 8192, 5 * M + 4096])
        fails(errno.ENXIO, os.lseek, fd, 6 * M, os.SEEK_DATA)
        fails(errno.ENXIO, os.lseek, fd, 8 * M, os.SEEK_HOLE)
        eq(os.lseek(fd, 8 * M - 1, os.SEEK_HOLE), 8 * M - 1)
        check(os.pread(fd, 4096, 3 * M) == bytes(4096), 'hole')
        check(os.fstat(fd).st_blocks <= 64, 'blocks', os.fstat(fd).st_blocks)


def case_data_and_holes_after_changes(a, b):
    K = 4096

    def map_of(path):
        with opened(path, os.O_RDONLY) as fd:
            size, at, pieces = os.fstat(fd).st_size, 0, []
            while at < size:
                try:
                    data = os.lseek(fd, at, os.SEEK_DATA)
                except OSError as e:
                    eq(e.errno, errno.ENXIO)
                    break
                at = os.lseek(fd, data, os.SEEK_HOLE)
                pieces.append((data // K, at / K))
            # What is reserved and not written the measure may count as either.
            return pieces if OURS else [x for x in pieces if not 40 <= x[0] < 48]

    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        fails(errno.ENXIO, os.lseek, fd, 0, os.SEEK_DATA)
        fails(errno.ENXIO, os.lseek, fd, 0, os.SEEK_HOLE)
        os.pwrite(fd, b'd' * 64 * K, 0)
        eq(map_of(b + '/f'), [(0, 64)])
        fallocate(fd, PUNCH | KEEP_SIZE, 8 * K, 8 * K)
        eq(map_of(b + '/f'), [(0, 8), (16, 64)])
        os.ftruncate(fd, 20 * K)
        os.ftruncate(fd, 100 * K)
        eq(map_of(b + '/f'), [(0, 8), (16, 20)])
        # Reserved is not written.
        fallocate(fd, 0, 40 * K, 8 * K)
        os.fsync(fd)
        eq(map_of(b + '/f'), [(0, 8), (16, 20)])
        os.pwrite(fd, b'x', 43 * K)
        eq(map_of(b + '/f'), [(0, 8), (16, 20)] + [(43, 44)] * OURS)
        os.pwrite(fd, b'end', 100 * K - 3)
        eq(map_of(b + '/f'), [(0, 8), (16, 20)] + [(43, 44)] * OURS + [(99, 100)])
        os.ftruncate(fd, 99 * K + 10)
        eq(map_of(b + '/f')[-1], (99, 99 + 10 / K))
        fails(errno.ENXIO, os.lseek, fd, 99 * K + 10, os.SEEK_DATA)
        fails((errno.ENXIO, errno.EINVAL), os.lseek, fd, -1, os.SEEK_DATA)
        eq(os.lseek(fd, 0, os.SEEK_CUR) >= 0, True)


def case_mapped_bytes_are_no_hole(a, b):
    """Who copies a file without its holes copies them, though nobody has called msync."""
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        os.ftruncate(fd, 1 << 20)
        eq(len(get(b + '/f')), 1 << 20)
        with mmap.mmap(fd, 1 << 20) as m:
            fails(errno.ENXIO, os.lseek, fd, 0, os.SEEK_DATA)
            m[600_000] = 1
            eq((os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 600_000, os.SEEK_HOLE)), (598_016, 602_112))
            m[602_112] = 1
            eq(os.lseek(fd, 598_016, os.SEEK_HOLE), 606_208)
            with opened(b + '/f') as other:
                eq((os.lseek(other, 0, os.SEEK_DATA), os.lseek(other, 600_000, os.SEEK_HOLE)), (598_016, 606_208))


def case_fallocate(a, b):
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        fallocate(fd, 0, 0, 1 << 20)
        s = os.stat(b + '/f')
        eq(s.st_size, 1 << 20)
        check(s.st_blocks * 512 >= 1 << 20, 'no blocks')
        check(get(b + '/f') == bytes(1 << 20), 'zeros')
        os.pwrite(fd, b'x' * 20_000, 4_000)
        fallocate(fd, KEEP_SIZE, 1 << 20, 1 << 20)
        eq(os.stat(b + '/f').st_size, 1 << 20)
        fallocate(fd, PUNCH | KEEP_SIZE, 5_000, 10_000)
        model = bytes(4_000) + b'x' * 1_000 + bytes(10_000) + b'x' * 9_000
        eq(get(b + '/f')[:24_000], model)
        eq(os.stat(b + '/f').st_size, 1 << 20)
    with opened(b + '/f') as fd:
        eq(os.lseek(fd, 8192, os.SEEK_DATA) >= 12288, True, 'the hole is one')
        fallocate(fd, ZERO, 16_000, 1_000)
        eq(get(a + '/f')[15_000:18_000], b'x' * 1_000 + bytes(1_000) + b'x' * 1_000)
        fallocate(fd, ZERO, (1 << 20) - 10, 100)
        eq(os.stat(a + '/f').st_size, (1 << 20) + 90)
        fallocate(fd, ZERO | KEEP_SIZE, 2 << 20, 100)
        eq(os.stat(a + '/f').st_size, (1 << 20) + 90)
        fails(errno.EOPNOTSUPP, fallocate, fd, PUNCH, 0, 100)
        fails(errno.EINVAL, fallocate, fd, 0, 0, 0)
        fails(errno.EINVAL, fallocate, fd, 0, -1, 10)
        if OURS:
            # The kernel asks no FUSE filesystem for these.
            before = os.stat(a + '/f')
            for unknown in COLLAPSE, INSERT, UNSHARE, UNSHARE | KEEP_SIZE:
                fails(errno.EOPNOTSUPP, fallocate, fd, unknown, 0, 4096)
            s = os.stat(a + '/f')
            eq((s.st_size, s.st_blocks, s.st_mtime_ns, s.st_ctime_ns), (before.st_size, before.st_blocks, before.st_mtime_ns, before.st_ctime_ns))
    with opened(b + '/f', os.O_RDONLY) as fd:
        fails(errno.EBADF, fallocate, fd, 0, 0, 10)


def case_what_is_reserved_behind_the_end(a, b):
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        fallocate(fd, KEEP_SIZE, 0, 1 << 20)
        for size in 100, 4096, 10_000:
            os.truncate(b + '/f', size)
            s = os.stat(a + '/f')
            eq((s.st_size, s.st_blocks), (size, 2048), 'a file that grows keeps it')
        os.pwrite(fd, b'x', 50_000)
        eq(os.stat(b + '/f').st_blocks, 2048)
        eq(get(b + '/f'), bytes(50_000) + b'x')
        os.ftruncate(fd, 200_000)
        eq(os.stat(b + '/f').st_blocks, 2048)
        os.truncate(b + '/f', 200_000)
        eq(os.stat(a + '/f').st_blocks, 49 * 8, 'its own size gives it up')
        fallocate(fd, KEEP_SIZE, 1 << 20, 4096)
        os.truncate(b + '/f', 5)
        eq((os.stat(a + '/f').st_blocks, get(a + '/f')), (8, bytes(5)))


def case_direct_io(a, b):
    m = mmap.mmap(-1, 65536)
    m.write(random.randbytes(65536))
    with opened(a + '/f', os.O_CREAT | os.O_RDWR | os.O_DIRECT) as fd:
        eq(os.pwritev(fd, [m], 0), 65536)
        check(get(b + '/f') == m[:], 'buffered after direct')
        with opened(b + '/f') as other:
            os.pwrite(other, b'buffered', 4090)
        m2 = mmap.mmap(-1, 8192)
        eq(os.preadv(fd, [m2], 0), 8192)
        eq(m2[4090:4098], b'buffered', 'direct after buffered')
        m3 = mmap.mmap(-1, 4096)
        eq(os.preadv(fd, [m3], 65536), 0)
        # Any multiple of 512 bytes, in the file and in memory; of any other number local filesystems know nothing, and ours does.
        model = bytearray(get(b + '/f'))
        memory = memoryview(m)
        for at, n, where in [(512, 512, 512), (1536, 1024, 1024), (4096 - 512, 1024, 512), (65536 - 512, 4096, 1536), (131072 - 1536, 9 * 512, 512), (65536 + 4608, 512, 0)]:
            data = random.randbytes(n)
            m[where:where + n] = data
            eq(os.pwritev(fd, [memory[where:where + n]], at), n, at)
            model.extend(bytes(max(0, at + n - len(model))))
            model[at:at + n] = data
            check(get(b + '/f') == model, 'direct at', at)
            with opened(b + '/f', os.O_RDONLY | os.O_DIRECT) as other:
                start = at - 512
                eq(os.preadv(other, [memory[512:512 + 2560]], start), min(2560, len(model) - start))
                eq(m[512:512 + min(2560, len(model) - start)], bytes(model[start:start + 2560]), 'read directly at', start)
        memory.release()
        if OURS:
            os.pwrite(fd, b'odd', 777)
            model[777:780] = b'odd'
            eq(os.pread(fd, 5, 776), bytes(model[776:781]))
            check(get(b + '/f') == model, 'direct at any offset')


def case_mapped_pages_and_calls_see_each_other(a, b):
    make(a + '/f', b'.' * 20_000)
    with opened(a + '/f') as fd, opened(b + '/f') as other:
        m = mmap.mmap(fd, 20_000)
        m[5_000:5_006] = b'mapped'
        eq(os.pread(fd, 6, 5_000), b'mapped')
        os.pwrite(fd, b'call', 9_000)
        eq(m[9_000:9_004], b'call')
        m.flush()
        eq(os.pread(other, 6, 5_000), b'mapped', 'after msync')
        os.pwrite(other, b'elsewhere', 12_000)
        eq(m[12_000:12_009], b'elsewhere')
        for i in range(20):
            m[100:104] = b'%04d' % i
            m.flush()
            eq(os.pread(other, 4, 100), b'%04d' % i)
            os.pwrite(other, b'%04d' % (1000 + i), 200)
            eq(m[200:204], b'%04d' % (1000 + i))
        m[0:5] = b'later'
        m.close()
    soon(5, lambda: get(b + '/f')[:5] == b'later', 'a dirty page of a closed mapping')
    with opened(b + '/f', os.O_RDONLY) as fd:
        p = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        p[0:5] = b'local'
        eq(os.pread(fd, 5, 0), b'later')
        p.close()


def case_what_a_mapping_did_not_change(a, b):
    model = bytearray(b'.' * 8192)
    make(a + '/f', bytes(model))
    with opened(a + '/f') as fa, opened(b + '/f') as fb:
        shared = mmap.mmap(fa, 8192)
        for n in range(4):
            # Both nodes come to share the file: after a second that nobody changed it.
            time.sleep(1.1)
            tick()
            eq((os.pread(fb, 8192, 0), shared[:]), (model, model))
            model[n + 10] = model[n + 5000] = shared[n + 10] = shared[n + 5000] = n + 65
            model[1000:1003] = b'abc' if n % 2 else b'ABC'
            os.pwrite(fb, model[1000:1003], 1000)
            os.pwrite(fb, model[6000:6100], 6000)
            tick()
            shared.flush()
            eq((os.pread(fb, 8192, 0), os.pread(fa, 8192, 0), shared[:]), (model, model, model), n)
        # New contents in the place of those that are mapped.
        time.sleep(1.1)
        eq((os.pread(fb, 8192, 0), shared[:]), (model, model))
        shared[7] = 1
        with opened(b + '/f', os.O_WRONLY | os.O_TRUNC) as fd:
            os.write(fd, b'new' * 2000)
        shared.flush()
        for root in a, b:
            now = bytearray(get(root + '/f'))
            check(now[7] in (1, b'new'[7 % 3]), now[7])
            now[7] = b'new'[7 % 3]
            eq(now, b'new' * 2000)
        shared.close()


def case_programs_run(a, b):
    put(a + '/true', get('/bin/true'))
    os.chmod(a + '/true', 0o755)
    subprocess.run([b + '/true'], check=True)
    put(a + '/script', b'#!/bin/sh\necho "$1"\n')
    os.chmod(a + '/script', 0o755)
    eq(subprocess.run([b + '/script', 'said'], check=True, capture_output=True).stdout, b'said\n')
    put(a + '/sleep', get('/bin/sleep'))
    os.chmod(a + '/sleep', 0o755)
    p = subprocess.Popen([a + '/sleep', '5'])
    # The one for reading cuts the file off where the other ones are refused before; a program that is just starting still reads it.
    for flags in os.O_RDONLY | os.O_TRUNC, os.O_WRONLY, os.O_RDWR | os.O_TRUNC:
        fails(errno.ETXTBSY, os.open, a + '/sleep', flags)
    fails(errno.ETXTBSY, os.truncate, a + '/sleep', 5)
    time.sleep(0.05)
    eq(p.poll(), None)
    p.kill()
    p.wait()
    os.close(os.open(a + '/sleep', os.O_RDONLY | os.O_TRUNC))
    eq(os.stat(b + '/sleep').st_size, 0)


def case_copies_inside(a, b):
    data = random.randbytes(200_000)
    make(a + '/f', data)
    with opened(b + '/f') as x, opened(b + '/g', os.O_CREAT | os.O_RDWR) as y:
        done = 0
        while done < len(data):
            done += os.copy_file_range(x, y, len(data) - done)
        with opened(b + '/h', os.O_CREAT | os.O_RDWR) as z:
            done = 0
            while done < len(data):
                done += os.sendfile(z, x, done, len(data) - done)
    check(get(a + '/g') == data == get(a + '/h'), 'copies')


def case_copies_of_ranges(a, b):
    data = random.randbytes(50_000)
    make(a + '/f', data)
    with opened(b + '/f') as x, opened(b + '/g', os.O_CREAT | os.O_RDWR) as y:
        eq(os.copy_file_range(x, y, 100, 49_990, 10), 10)
        eq(get(a + '/g'), bytes(10) + data[49_990:])
        eq(os.copy_file_range(x, y, 100, 50_000, 0), 0)
        eq(os.copy_file_range(x, y, 100, 1 << 40, 0), 0)
        # Into a hole, and within one file.
        eq(os.copy_file_range(x, y, 10_000, 5, 1 << 20), 10_000)
        with opened(a + '/g') as fd:
            eq(os.pread(fd, 10_001, (1 << 20)), data[5:10_005])
        eq(os.copy_file_range(x, x, 1000, 0, 40_000), 1000)
        eq(get(a + '/f'), data[:40_000] + data[:1000] + data[41_000:])
        fails(errno.EINVAL, os.copy_file_range, x, x, 1000, 0, 500)
        with opened(b + '/g', os.O_WRONLY | os.O_APPEND) as z:
            fails(errno.EBADF, os.copy_file_range, x, z, 10)
        with opened(b + '/g', os.O_RDONLY) as z:
            fails(errno.EBADF, os.copy_file_range, x, z, 10)
        with opened(b + '/g', os.O_WRONLY) as z:
            fails(errno.EBADF, os.copy_file_range, z, y, 10)
        with opened(b, os.O_RDONLY) as z:
            fails(errno.EISDIR, os.copy_file_range, z, y, 10)
    with opened(b + '/f', os.O_RDONLY) as x, opened(a + '/h', os.O_CREAT | os.O_WRONLY) as y:
        os.sendfile(y, x, 49_000, 5000)
        eq(get(b + '/h'), data[49_000:])
        r, w = os.pipe()
        os.sendfile(w, x, 100, 50)
        eq(os.read(r, 100), data[100:150])
        os.write(w, b'from a pipe')
        if hasattr(os, 'splice'):
            eq(os.splice(r, y, 11, offset_dst=0), 11)
            eq(get(b + '/h')[:11], b'from a pipe')
        os.close(r)
        os.close(w)


def case_fsync(a, b):
    make(a + '/f', b'x')
    with opened(a + '/f') as fd:
        os.fsync(fd)
        os.fdatasync(fd)
    with opened(b, os.O_RDONLY) as fd:
        os.fsync(fd)
    with opened(b + '/f', os.O_WRONLY | os.O_SYNC) as fd:
        os.write(fd, b'y')
    with opened(a + '/f', os.O_WRONLY | os.O_DSYNC) as fd:
        os.write(fd, b'z')
    eq(get(b + '/f'), b'z')


class lockers:
    """Processes that have the file open, in turns on the one and on the other mount."""
    def __init__(self, n, a, b, name='/f'):
        if not os.path.exists(a + name):
            make(a + name, b'x' * 100)
        os.stat(b + name)
        self.all = [Locker((a, b)[i % 2] + name) for i in range(n)]

    def __enter__(self):
        return self.all

    def __exit__(self, kind, *_):
        for l in self.all:
            if kind:
                l.kill()
            else:
                l.end()


EX, SH, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN
AGAIN = errno.EAGAIN


def case_flock(a, b):
    with lockers(3, a, b) as (x, y, z):
        eq(x.flock(EX), 0)
        eq([y.flock(SH), y.flock(EX), z.flock(SH)], [AGAIN] * 3)
        eq(x.flock(SH), 0)
        eq([y.flock(SH), z.flock(SH), y.flock(SH)], [0] * 3)
        # A conversion gives up what there was, also if it fails.
        eq(x.flock(EX), AGAIN)
        eq([y.flock(LOCK_UN), z.flock(EX), x.flock(SH)], [0, 0, AGAIN])
        eq(z.flock(LOCK_UN), 0)
        eq(z.flock(LOCK_UN), 0)
        eq(x.flock(EX), 0)


def case_flock_waits(a, b):
    with lockers(3, a, b) as (x, y, z):
        eq(x.flock(EX), 0)
        y.flock_later(EX)
        z.flock_later(SH)
        check(y.waits() and z.waits(), 'do not wait')
        eq(x.flock(LOCK_UN), 0)
        first, second = (z, y) if y.waits() else (y, z)
        eq(first.later(), 0)
        check(second.waits(), 'both have it')
        eq(first.flock(LOCK_UN), 0)
        eq(second.later(), 0)


def case_flock_belongs_to_the_open_file(a, b):
    with lockers(2, a, b) as (x, y):
        eq(x.call('open'), 0)
        eq(x.call('dup', 0), 0)
        eq(x.flock(EX, file=0), 0)
        eq(x.flock(EX, file=1), AGAIN)
        eq(x.flock(EX, file=2), 0)
        eq(x.call('close', 0), 0)
        eq(y.flock(SH), AGAIN)
        eq(x.call('close', 2), 0)
        soon(5, lambda: y.flock(SH) == 0, 'the last close frees it')


def case_ranges(a, b):
    with lockers(3, a, b) as (x, y, z):
        eq(x.lock(W, 0, 10), 0)
        eq([y.lock(W, 9, 1), y.lock(R, 0, 0), y.lock(W, 10, 10), z.lock(W, 20)], [AGAIN, AGAIN, 0, 0])
        eq(x.lock(R, 5, 20), AGAIN)
        eq(z.lock(UN, 30), 0)
        eq([x.lock(W, 30, 1), x.lock(W, 1 << 40, 5), z.lock(W, 1 << 40, 1)], [0, 0, AGAIN])
        # A part of it is given up: two are left.
        eq(x.lock(UN, 4, 2), 0)
        eq([y.lock(W, 4, 2), y.lock(W, 3, 1), y.lock(W, 6, 1)], [0, AGAIN, AGAIN])
        eq(x.lock(UN), 0)
        eq([z.lock(W, 0, 4), z.lock(W, 30)], [0, 0])


def case_upgrade_and_downgrade(a, b):
    with lockers(3, a, b) as (x, y, z):
        eq([x.lock(R, 0, 100), y.lock(R, 0, 100)], [0, 0])
        eq([x.lock(W, 0, 10), z.lock(W, 50, 1)], [AGAIN, AGAIN])
        eq(y.lock(UN, 0, 10), 0)
        eq(x.lock(W, 0, 10), 0)
        eq([y.lock(R, 9, 1), z.lock(R, 10, 1)], [AGAIN, 0])
        eq(x.lock(R, 0, 10), 0)
        eq(y.lock(R, 0, 10), 0)


def case_range_waits(a, b):
    with lockers(3, a, b) as (x, y, z):
        eq(x.lock(W, 0, 10), 0)
        y.lock_later(W, 5, 10)
        z.lock_later(R, 0, 5)
        check(y.waits() and z.waits(), 'do not wait')
        eq(x.lock(UN, 0, 5), 0)
        eq(z.later(), 0)
        check(y.waits(), 'y does not wait')
        eq(x.lock(R, 5, 5), 0)
        check(y.waits(), 'y does not wait')
        eq(x.lock(UN), 0)
        eq(y.later(), 0)
        eq(x.lock(R, 14, 1), AGAIN)


def case_getlk(a, b):
    with lockers(2, a, b) as (x, y):
        eq(x.test(W), None)
        eq(x.lock(R, 10, 10), 0)
        eq(y.test(R), None)
        kind, start, length, pid = y.test(W, 5, 100)
        eq((kind, start, length), (R, 10, 10))
        check(pid == x.pid or OURS and a != b and pid == 0, 'pid', pid)
        eq(x.lock(W, 30), 0)
        eq(y.test(W, 20, 1), None)
        eq(y.test(R, 29, 2)[:3], (W, 30, 0))
        eq(x.test(W), None)


def case_closing_any_descriptor_frees_the_ranges_of_the_process(a, b):
    with lockers(2, a, b) as (x, y):
        eq(x.lock(W, 0, 10), 0)
        eq(x.call('open'), 0)
        eq(x.lock(W, 20, 10, file=1), 0)
        eq(y.lock(R, 0, 1), AGAIN)
        eq(x.call('close', 1), 0)
        eq([y.lock(W, 0, 10), y.lock(W, 20, 10)], [0, 0])


def case_open_file_description_locks(a, b):
    with lockers(2, a, b) as (x, y):
        eq(x.call('open'), 0)
        eq(x.ofd(W, 0, 10, file=0), 0)
        eq([x.ofd(R, 5, 1, file=1), x.lock(R, 5, 1, file=1), y.lock(W, 9, 1), y.ofd(W, 10, 1)], [AGAIN, AGAIN, AGAIN, 0])
        eq(x.call('close', 1), 0)
        eq(y.ofd(R, 0, 1), AGAIN)
        eq(x.call('close', 0), 0)
        soon(5, lambda: y.ofd(R, 0, 1) == 0, 'the last close frees it')


def case_locks_of_a_killed_process_go(a, b):
    with lockers(3, a, b) as (x, y, z):
        victim = Locker(a + '/f')
        eq([victim.flock(EX), victim.lock(W, 0, 10), x.ofd(R, 50, 1)], [0, 0, 0])
        y.flock_later(EX)
        z.lock_later(W, 0, 1)
        check(y.waits() and z.waits(), 'do not wait')
        victim.kill()
        eq([y.later(), z.later()], [0, 0])
        # One that is killed while it waits gets nothing.
        waiter = Locker(b + '/f')
        waiter.lock_later(W, 0, 1)
        check(waiter.waits(), 'does not wait')
        waiter.kill()
        eq(z.lock(UN), 0)
        eq(x.lock(W, 0, 1), 0)


def case_a_signal_ends_a_wait(a, b):
    with lockers(2, a, b) as (x, y):
        eq([x.lock(W, 0, 10), x.flock(EX)], [0, 0])
        # Python's handlers are installed without SA_RESTART.
        for later in lambda: y.lock_later(W, 5, 1), lambda: y.flock_later(SH):
            later()
            check(y.waits(), 'does not wait')
            y.signal(signal.SIGUSR1)
            eq(y.later(), errno.EINTR)
        eq([x.lock(UN), x.flock(LOCK_UN)], [0, 0])
        eq([x.lock(W), x.flock(EX)], [0, 0])


def case_deadlock(a, b):
    with lockers(2, a, b) as (x, y):
        eq([x.lock(W, 0, 1), y.lock(W, 1, 1)], [0, 0])
        x.lock_later(W, 1, 1)
        check(x.waits(), 'does not wait')
        y.lock_later(W, 0, 1)
        eq(y.later(), errno.EDEADLK)
        eq(y.lock(UN), 0)
        eq(x.later(), 0)


def case_an_upgrade_of_two_readers_is_a_deadlock(a, b):
    with lockers(2, a, b) as (x, y):
        eq([x.lock(R, 0, 1), y.lock(R, 0, 1)], [0, 0])
        x.lock_later(W, 0, 1)
        check(x.waits(), 'does not wait')
        y.lock_later(W, 0, 1)
        eq(y.later(), errno.EDEADLK)
        eq(y.lock(UN), 0)
        eq(x.later(), 0)


def case_locks_need_the_right_mode(a, b):
    make(a + '/f')
    r, w = Locker(b + '/f', os.O_RDONLY), Locker(a + '/f', os.O_WRONLY)
    eq([r.lock(W), w.lock(R), r.lock(R), r.lock(UN), w.lock(W)], [errno.EBADF, errno.EBADF, 0, 0, 0])
    eq(r.flock(EX), 0)
    r.end()
    w.end()


def case_counting_under_a_lock(a, b):
    for how in 'flock', 'fcntl':
        make(a + '/n' + how, b'0')
        os.stat(b + '/n' + how)

        def count(i):
            fd = os.open((a, b)[i % 2] + '/n' + how, os.O_RDWR)
            for _ in range(60):
                if how == 'flock':
                    fcntl.flock(fd, EX)
                else:
                    fcntl.lockf(fd, EX)
                tick()
                n = int(os.pread(fd, 20, 0))
                os.pwrite(fd, b'%d' % (n + 1), 0)
                if how == 'flock':
                    fcntl.flock(fd, LOCK_UN)
                else:
                    fcntl.lockf(fd, LOCK_UN)
                tick()
        forked(4, count)
        eq(get(b + '/n' + how), b'240')


def case_sqlite(a, b):
    import sqlite3
    db = sqlite3.connect(a + '/db', timeout=60)
    db.execute('create table t (who int, n int)')
    db.commit()
    db.close()
    os.stat(b + '/db')

    def work(i):
        db = sqlite3.connect((a, b)[i % 2] + '/db', timeout=60, isolation_level=None)
        for n in range(15):
            db.execute('begin immediate')
            have = db.execute('select count(*) from t where who = ?', (i,)).fetchone()[0]
            check(have == n, 'rows', have, 'of', n)
            db.execute('insert into t values (?, ?)', (i, n))
            db.execute('commit')
            tick()
        db.close()
    forked(4, work)
    db = sqlite3.connect(b + '/db', timeout=60)
    eq(db.execute('pragma integrity_check').fetchall(), [('ok',)])
    eq(db.execute('select who, count(*), count(distinct n) from t group by who order by who').fetchall(), [(i, 15, 15) for i in range(4)])
    db.close()


# ---- extended attributes


def case_xattrs(a, b):
    make(a + '/f')
    fails(errno.ENODATA, os.getxattr, b + '/f', 'user.x')
    os.setxattr(a + '/f', 'user.x', b'value\0\xff')
    eq(os.getxattr(b + '/f', 'user.x'), b'value\0\xff')
    fails(errno.EEXIST, os.setxattr, b + '/f', 'user.x', b'', os.XATTR_CREATE)
    fails(errno.ENODATA, os.setxattr, b + '/f', 'user.y', b'', os.XATTR_REPLACE)
    os.setxattr(b + '/f', 'user.x', b'', os.XATTR_REPLACE)
    eq(os.getxattr(a + '/f', 'user.x'), b'')
    os.setxattr(b + '/f', 'trusted.t', b't')
    os.setxattr(b + '/f', 'user.x', b'12345')
    eq(sorted(os.listxattr(a + '/f')), ['trusted.t', 'user.x'])
    buffer = ctypes.create_string_buffer(3)
    fails(errno.ERANGE, lambda: libcall(libc.getxattr(os.fsencode(a + '/f'), b'user.x', buffer, 3)))
    eq(libc.getxattr(os.fsencode(a + '/f'), b'user.x', None, 0), 5)
    os.removexattr(b + '/f', 'user.x')
    fails(errno.ENODATA, os.removexattr, a + '/f', 'user.x')
    eq(os.listxattr(b + '/f'), ['trusted.t'])
    as_user(lambda: eq(os.listxattr(b + '/f'), []))
    long = 'user.' + 'n' * 250
    os.setxattr(a + '/f', long, b'long')
    eq(os.getxattr(b + '/f', long), b'long')
    fails(errno.ERANGE, os.setxattr, a + '/f', long + 'n', b'')
    fails(errno.EOPNOTSUPP, os.setxattr, a + '/f', 'nonsense.x', b'')
    fails(errno.EOPNOTSUPP, os.getxattr, b + '/f', 'nonsense.x')
    fails(errno.EINVAL, os.setxattr, a + '/f', 'user.', b'')
    os.mkdir(a + '/d')
    os.setxattr(b + '/d', 'user.dir', b'd')
    eq(os.getxattr(a + '/d', 'user.dir'), b'd')
    os.symlink('f', a + '/s')
    fails(errno.EPERM, os.setxattr, b + '/s', 'user.x', b'', follow_symlinks=False)
    os.setxattr(b + '/s', 'trusted.x', b'link', follow_symlinks=False)
    eq(os.getxattr(a + '/s', 'trusted.x', follow_symlinks=False), b'link')
    as_user(lambda: fails((errno.EACCES, errno.EPERM), os.setxattr, b + '/f', 'user.z', b''))
    as_user(lambda: fails((errno.EACCES, errno.EPERM), os.setxattr, b + '/f', 'trusted.z', b''))
    os.rename(a + '/f', a + '/g')
    eq(os.getxattr(b + '/g', long), b'long')


def case_xattrs_of_a_full_file_can_be_replaced(a, b):
    make(a + '/f')
    n = 0
    try:
        while n < 5000:
            os.setxattr(a + '/f', 'user.name-%d' % n, b'first-value-%d' % n, os.XATTR_CREATE)
            n += 1
            tick()
    except OSError as e:
        eq(e.errno, errno.ENOSPC)
    check(n >= 50, 'only', n)
    for i in range(n):
        os.setxattr(b + '/f', 'user.name-%d' % i, b'value-%d' % i, os.XATTR_REPLACE)
        tick()
    for i in range(n):
        eq(os.getxattr(a + '/f', 'user.name-%d' % i), b'value-%d' % i)
    for i in range(n):
        os.removexattr(a + '/f', 'user.name-%d' % i)
        tick()
    eq(os.listxattr(b + '/f'), [])


def case_large_and_many_xattrs(a, b):
    make(a + '/f')
    if OURS:
        big = random.randbytes(65536)
        os.setxattr(a + '/f', 'user.big', big)
        check(os.getxattr(b + '/f', 'user.big') == big, 'big value')
        os.setxattr(b + '/f', 'user.big', big[:40_000])
        check(os.getxattr(a + '/f', 'user.big') == big[:40_000], 'replaced')
        os.setxattr(b + '/f', 'user.big', b'small')
        eq(os.getxattr(a + '/f', 'user.big'), b'small')
    fails(errno.E2BIG, os.setxattr, a + '/f', 'user.bigger', bytes(65537))
    for i in range(40):
        os.setxattr((a, b)[i % 2] + '/f', 'user.n%d' % i, b'%d' % i)
        tick()
    for i in range(40):
        eq(os.getxattr((b, a)[i % 2] + '/f', 'user.n%d' % i), b'%d' % i)
    eq(len(os.listxattr(b + '/f')), 41 if OURS else 40)


def case_xattr_limits(a, b):
    make(a + '/f')
    path = os.fsencode(a + '/f')

    def list_bytes(size):
        buffer = ctypes.create_string_buffer(max(1, size))
        return libcall(libc.listxattr(path, buffer if size else None, size)), buffer.raw

    eq(list_bytes(0)[0], 0)
    names = ['user.%s' % ('n' * n) for n in (1, 100, 250)]
    for n in names:
        os.setxattr(b + '/f', n, n.encode())
    size = sum(len(n) + 1 for n in names)
    eq(list_bytes(0)[0], size)
    eq(sorted(list_bytes(size)[1].split(b'\0')[:3]), sorted(n.encode() for n in names))
    fails(errno.ERANGE, list_bytes, size - 1)
    fails(errno.ERANGE, list_bytes, 1)
    for n in 'user.' + 'n' * 251, 'trusted.' + 'n' * 248:
        fails(errno.ERANGE, os.setxattr, a + '/f', n, b'')
        fails(errno.ERANGE, os.getxattr, a + '/f', n)
        fails(errno.ERANGE, os.removexattr, a + '/f', n)
    fails(errno.ERANGE, os.setxattr, a + '/f', '', b'')
    fails(errno.EINVAL, lambda: libcall(libc.setxattr(path, b'user.x', b'x', 1, 4)))
    fails(errno.E2BIG, os.setxattr, b + '/f', 'user.x', bytes(65_537))
    fails(errno.ENODATA, os.getxattr, b + '/f', 'user.x')
    fails(errno.ENOENT, os.getxattr, b + '/none', 'user.x')
    for n in 'user', 'system.x', 'x', 'USER.x':
        fails(errno.EOPNOTSUPP, os.setxattr, a + '/f', n, b'x')
    # As much as there is room for: then ENOSPC, and nothing else is changed by that.
    large = 65_536 if OURS else 900
    values = {}
    for i in range(200):
        value = random.randbytes(large)
        try:
            os.setxattr((a, b)[i % 2] + '/f', 'user.v%d' % i, value)
        except OSError as e:
            eq(e.errno, errno.ENOSPC)
            break
        values[i] = value
    check(2 <= len(values) < 200, len(values), 'values')
    fails(errno.ENODATA, os.getxattr, a + '/f', 'user.v%d' % len(values))
    for i, value in values.items():
        check(os.getxattr(b + '/f', 'user.v%d' % i) == value, 'value', i)
    eq(len(os.listxattr(a + '/f')), len(names) + len(values))
    os.removexattr(a + '/f', 'user.v0')
    os.setxattr(b + '/f', 'user.again', values[1])
    check(os.getxattr(a + '/f', 'user.again') == values[1], 'in the room of another')


# ---- access control lists

ACCESS, DEFAULT = 'system.posix_acl_access', 'system.posix_acl_default'
UO, U, GO, G, M, O = 1, 2, 4, 8, 16, 32


def acl(text):
    """The kernel's form of 'UO6 U6:1000 GO4 M6 O0'."""
    data = struct.pack('<I', 2)
    for word in text.split():
        what, _, who = word.partition(':')
        data += struct.pack('<HHI', globals()[what[:-1]], int(what[-1]), int(who) if who else 0xffffffff)
    return data


def acl_text(path, name=ACCESS):
    data, names, text = os.getxattr(path, name), {UO: 'UO', U: 'U', GO: 'GO', G: 'G', M: 'M', O: 'O'}, []
    eq(data[:4], struct.pack('<I', 2))
    for at in range(4, len(data), 8):
        tag, permissions, who = struct.unpack_from('<HHI', data, at)
        text.append('%s%d%s' % (names[tag], permissions, ':%d' % who if tag in (U, G) else ''))
    return ' '.join(text)


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def opens(path, flags=os.O_RDWR):
    os.close(os.open(path, flags))


def case_acls(a, b):
    make(a + '/f', b'text', 0o640)
    fails(errno.ENODATA, os.getxattr, b + '/f', ACCESS)
    as_user(lambda: fails(errno.EACCES, opens, b + '/f'))
    before = os.stat(b + '/f')
    a_moment()
    os.setxattr(a + '/f', ACCESS, acl('UO6 U6:1000 GO4 M6 O0'))
    eq((acl_text(b + '/f'), mode(b + '/f'), os.listxattr(b + '/f')), ('UO6 U6:1000 GO4 M6 O0', 0o660, [ACCESS]))
    after = os.stat(b + '/f')
    check(after.st_ctime_ns > before.st_ctime_ns and after.st_mtime_ns == before.st_mtime_ns, 'times')
    as_user(lambda: opens(b + '/f'))
    as_user(lambda: opens(a + '/f'))
    as_user(lambda: fails(errno.EACCES, opens, b + '/f'), 1001)
    # A chmod changes the mask, and a mask limits all that are named.
    os.chmod(b + '/f', 0o614)
    eq((acl_text(a + '/f'), mode(a + '/f')), ('UO6 U6:1000 GO4 M1 O4', 0o614))
    as_user(lambda: fails(errno.EACCES, opens, a + '/f', os.O_RDONLY))
    as_user(lambda: opens(a + '/f', os.O_RDONLY), 1001)
    os.chmod(a + '/f', 0o640)
    eq(acl_text(b + '/f'), 'UO6 U6:1000 GO4 M4 O0')
    as_user(lambda: opens(b + '/f', os.O_RDONLY))
    as_user(lambda: fails(errno.EACCES, opens, b + '/f'))
    # Groups.
    os.setxattr(b + '/f', ACCESS, acl('UO6 GO0 G4:2000 M4 O0'))
    as_user(lambda: opens(a + '/f', os.O_RDONLY), 1001, 1001, [2000])
    as_user(lambda: fails(errno.EACCES, opens, a + '/f', os.O_RDONLY), 1001, 1001)
    # Says nothing more than a mode: is the mode.
    os.setxattr(a + '/f', ACCESS, acl('UO7 GO5 O1'))
    fails(errno.ENODATA, os.getxattr, b + '/f', ACCESS)
    eq((mode(b + '/f'), os.listxattr(b + '/f')), (0o751, []))
    # Removed: the mask stays as the group's bits. There need not be one.
    os.setxattr(b + '/f', ACCESS, acl('UO6 U7:1000 GO0 M7 O0'))
    os.removexattr(a + '/f', ACCESS)
    eq(mode(b + '/f'), 0o670)
    os.removexattr(b + '/f', ACCESS)
    fails(errno.EACCES, os.setxattr, a + '/f', DEFAULT, acl('UO6 GO0 O0'))
    for wrong in 'UO6 GO4', 'UO6 U6:1000 GO4 O0', 'GO4 UO6 O0', 'UO6 UO6 GO4 O0', 'UO6 GO4 U6:1000 M6 O0', 'UO6 GO4 M6 M6 O0':
        fails(errno.EINVAL, os.setxattr, b + '/f', ACCESS, acl(wrong))
    fails(errno.EINVAL, os.setxattr, b + '/f', ACCESS, acl('UO6 GO4 O0')[:-1])
    as_user(lambda: fails(errno.EPERM, os.setxattr, a + '/f', ACCESS, acl('UO7 GO7 O7')))
    eq(mode(b + '/f'), 0o670)
    # Not in the file's group: sgid goes.
    make(a + '/g')
    os.chown(a + '/g', 1000, 2000)
    os.chmod(a + '/g', 0o2770)
    as_user(lambda: os.setxattr(b + '/g', ACCESS, acl('UO7 U7:1001 GO7 M7 O0')), 1000, 1000, [2000])
    eq(mode(a + '/g'), 0o2770)
    as_user(lambda: os.setxattr(b + '/g', ACCESS, acl('UO7 U5:1001 GO7 M7 O0')))
    eq((mode(a + '/g'), acl_text(a + '/g')), (0o770, 'UO7 U5:1001 GO7 M7 O0'))
    many = 'UO7 ' + ' '.join('U6:%d' % (5000 + i) for i in range(300)) + ' GO7 M7 O0'
    if OURS:
        os.setxattr(a + '/g', ACCESS, acl(many))
        eq(acl_text(b + '/g'), many)


def case_an_acl_is_believed_no_longer_than_it_is_true(a, b):
    """With the same mode each time: only the list says who may."""
    os.mkdir(a + '/d', 0o770)
    make(a + '/d/f', b'', 0o660)
    for path in '/d', '/d/f':
        os.setxattr(a + path, ACCESS, acl('UO7 U7:1000 GO0 M7 O0'))
    for i in range(12):
        where, other = (a, b) if i % 2 else (b, a)
        path = '/d' if i % 3 == 0 else '/d/f'
        if i % 4 == 3:
            # What names and attributes are believed for is over.
            time.sleep(2.2)
            tick()
        as_user(lambda: opens(other + '/d/f'))
        as_user(lambda: opens(where + '/d/f'))
        os.setxattr(where + path, ACCESS, acl('UO7 U0:1000 GO0 M7 O0'))
        as_user(lambda: fails(errno.EACCES, opens, other + '/d/f'))
        as_user(lambda: fails(errno.EACCES, opens, where + '/d/f'))
        os.setxattr(other + path, ACCESS, acl('UO7 U7:1000 GO0 M7 O0'))
        as_user(lambda: opens(where + '/d/f'))


def case_default_acls(a, b):
    os.mkdir(a + '/d')
    os.setxattr(a + '/d', DEFAULT, acl('UO7 U7:1000 GO5 M7 O0'))
    eq((mode(b + '/d'), acl_text(b + '/d', DEFAULT), os.listxattr(b + '/d')), (0o755, 'UO7 U7:1000 GO5 M7 O0', [DEFAULT]))
    fails(errno.ENODATA, os.getxattr, b + '/d', ACCESS)
    umask = os.umask(0o077)
    make(b + '/d/f', b'', 0o664)
    eq((mode(a + '/d/f'), acl_text(a + '/d/f')), (0o660, 'UO6 U7:1000 GO5 M6 O0'))
    as_user(lambda: opens(a + '/d/f'))
    fails(errno.ENODATA, os.getxattr, a + '/d/f', DEFAULT)
    make(a + '/d/private', b'', 0o400)
    eq((mode(b + '/d/private'), acl_text(b + '/d/private')), (0o400, 'UO4 U7:1000 GO5 M0 O0'))
    os.mkdir(a + '/d/sub', 0o777)
    eq((mode(b + '/d/sub'), acl_text(b + '/d/sub'), acl_text(b + '/d/sub', DEFAULT)), (0o770, 'UO7 U7:1000 GO5 M7 O0', 'UO7 U7:1000 GO5 M7 O0'))
    os.mkdir(b + '/d/sub/sub', 0o700)
    eq((mode(a + '/d/sub/sub'), acl_text(a + '/d/sub/sub')), (0o700, 'UO7 U7:1000 GO5 M0 O0'))
    os.mkfifo(b + '/d/fifo', 0o622)
    eq((mode(a + '/d/fifo'), acl_text(a + '/d/fifo')), (0o620, 'UO6 U7:1000 GO5 M2 O0'))
    os.symlink('f', a + '/d/s')
    eq(mode(b + '/d/s'), 0o777)
    fails((errno.EOPNOTSUPP, errno.ENODATA), os.getxattr, b + '/d/s', ACCESS, follow_symlinks=False)
    fails(errno.EOPNOTSUPP, os.setxattr, b + '/d/s', ACCESS, acl('UO7 GO5 O0'), follow_symlinks=False)
    # One that says no more than a mode takes the place of the umask, and leaves no list.
    os.setxattr(b + '/d', DEFAULT, acl('UO7 GO5 O4'))
    make(a + '/d/plain', b'', 0o666)
    eq((mode(b + '/d/plain'), os.listxattr(b + '/d/plain')), (0o644, []))
    os.rename(a + '/d/f', a + '/f')
    os.link(b + '/f', b + '/d/again')
    eq((acl_text(b + '/f'), acl_text(a + '/d/again')), ('UO6 U7:1000 GO5 M6 O0',) * 2)
    os.removexattr(a + '/d', DEFAULT)
    make(b + '/d/masked', b'', 0o666)
    eq(mode(a + '/d/masked'), 0o600)
    os.umask(umask)
    eq(acl_text(a + '/d/sub', DEFAULT), 'UO7 U7:1000 GO5 M7 O0')
    # sgid and a default list go together.
    os.chown(a + '/d/sub', 0, 2000)
    os.chmod(a + '/d/sub', 0o2770)
    os.mkdir(b + '/d/sub/more', 0o775)
    eq((mode(a + '/d/sub/more'), os.stat(a + '/d/sub/more').st_gid), (0o2770, 2000))


# ---- removed while in use


def free(path):
    tick()
    s = os.statvfs(path)
    return s.f_bfree * s.f_frsize


def case_an_unlinked_file_lives_until_it_is_closed(a, b):
    make(a + '/f', b'start')
    with opened(a + '/f') as fd:
        os.unlink(b + '/f')
        fails(errno.ENOENT, os.stat, a + '/f')
        eq((os.fstat(fd).st_nlink, os.fstat(fd).st_size, os.pread(fd, 10, 0)), (0, 5, b'start'))
        os.pwrite(fd, b'x' * 100_000, 5)
        eq(os.fstat(fd).st_size, 100_005)
        os.ftruncate(fd, 3)
        eq(os.pread(fd, 10, 0), b'sta')
        os.fsync(fd)
        os.fchmod(fd, 0o600)
        eq(stat.S_IMODE(os.fstat(fd).st_mode), 0o600)
        make(b + '/f', b'another')
        eq(os.pread(fd, 10, 0), b'sta')
    eq(get(a + '/f'), b'another')


def case_descriptors_of_a_path(a, b):
    make(a + '/f', b'bytes')
    os.mkdir(a + '/d')
    fd, held, dir = os.open(b + '/f', os.O_PATH), os.open(b + '/f', os.O_RDONLY), os.open(b + '/d', os.O_PATH)
    path = '/proc/self/fd/%d' % fd
    fails(errno.EBADF, os.read, fd, 5)
    eq((os.fstat(fd).st_size, get(path)), (5, b'bytes'))
    os.chmod(path, 0o640)
    eq(mode(a + '/f'), 0o640)
    os.rename(a + '/f', a + '/g')
    make(a + '/f', b'others')
    eq((os.fstat(fd).st_size, get(path)), (5, b'bytes'))
    os.unlink(a + '/g')
    eq((os.fstat(fd).st_nlink, get(path)), (0, b'bytes'), 'somebody has it open')
    os.close(held)
    if a == b:
        eq((os.fstat(fd).st_nlink, get(path)), (0, b'bytes'))
    os.close(fd)
    # By itself it does not keep what another node removes: the kernel does not tell of it.
    fd = os.open(b + '/f', os.O_PATH)
    if a == b:
        os.unlink(a + '/f')
        eq((os.fstat(fd).st_nlink, get('/proc/self/fd/%d' % fd)), (0, b'others'))
    else:
        time.sleep(0.6)
        os.unlink(a + '/f')
        # Until it is freed it is there, without a name.
        try:
            eq(os.fstat(fd).st_nlink, 0)
        except OSError as e:
            eq(e.errno, errno.ESTALE)
    os.close(fd)
    make(a + '/d/x')
    eq(os.stat('x', dir_fd=dir).st_size, 0)
    os.unlink(a + '/d/x')
    os.rmdir(a + '/d')
    os.mkdir(a + '/d')
    fails(errno.ENOENT, os.open, 'x', os.O_CREAT | os.O_WRONLY, dir_fd=dir)
    eq((os.fstat(dir).st_nlink, os.listdir(a + '/d')), (0, []))
    os.close(dir)


def case_space_comes_back(a, b):
    data = random.randbytes(1 << 20)
    if not OURS:
        return
    make(a + '/keep', b'x' * 4096)
    before = free(b)
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        for i in range(24):
            os.pwrite(fd, data, i << 20)
            tick()
        os.fsync(fd)
        soon(5, lambda: free(b) <= before - (23 << 20), 'statfs does not see the blocks that are used')
        os.unlink(b + '/f')
        check(os.pread(fd, 4096, 20 << 20) == data[:4096], 'bytes of the unlinked file')
        soon(5, lambda: free(a) <= before - (23 << 20), 'the space of an open file is given back')
    soon(9, lambda: free(a) >= before - (2 << 20), 'the space does not come back', before)
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        for i in range(24):
            os.pwrite(fd, data, i << 20)
            tick()
    os.truncate(b + '/f', 0)
    soon(9, lambda: free(b) >= before - (2 << 20), 'the space does not come back after truncate', before)


def case_an_open_directory_is_removed(a, b):
    os.mkdir(a + '/d')
    fd = os.open(a + '/d', os.O_RDONLY)
    os.rmdir(b + '/d')
    eq((os.fstat(fd).st_nlink, os.listdir(fd)), (0, []))
    fails(errno.ENOENT, os.open, 'f', os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    fails(errno.ENOENT, os.mkdir, 'd', dir_fd=fd)
    fails(errno.ENOENT, os.stat, 'f', dir_fd=fd)
    os.close(fd)
    fails(errno.ENOENT, os.stat, a + '/d')


def case_what_a_removed_directory_answers(a, b):
    os.chmod(a, 0o755)
    os.mkdir(a + '/d', 0o755)
    make(a + '/f')
    fd = os.open(a + '/d', os.O_RDONLY)
    os.chdir(a + '/d')
    # Whoever does not own it: the kernel looks for its ACL.
    r, w = os.pipe()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = b''
        try:
            os.setgroups([])
            os.setgid(1000)
            os.setuid(1000)
            os.read(told, 1)
            for call in lambda: os.stat('x'), lambda: os.open('x', os.O_RDONLY), lambda: os.listdir('.'), lambda: os.access('.', os.X_OK), lambda: os.stat('.').st_nlink:
                try:
                    said += b'%s,' % str(call()).encode()
                except OSError as e:
                    said += b'%s,' % errno.errorcode[e.errno].encode()
        finally:
            os.write(w, said)
            os._exit(0)
    try:
        os.rmdir(b + '/d')
        os.write(tell, b'x')
        os.waitpid(pid, 0)
        tick()
        eq(os.read(r, 1000), b'ENOENT,ENOENT,[],True,0,')
        eq(os.fstat(fd).st_nlink, 0)
        os.fchmod(fd, 0o700)
        eq(stat.S_IMODE(os.fstat(fd).st_mode), 0o700)
        os.fchown(fd, 1000, 1000)
        os.utime(fd, ns=(5, 6))
        s = os.stat('.')
        eq((s.st_uid, s.st_gid, s.st_atime_ns, s.st_mtime_ns, s.st_nlink, stat.S_IMODE(s.st_mode)), (1000, 1000, 5, 6, 0, 0o700))
        fails(errno.ENODATA, os.getxattr, fd, 'user.x')
        eq(os.listxattr(fd), [])
        os.fsync(fd)
        again = os.open('.', os.O_RDONLY)
        eq(os.listdir(again), [])
        os.close(again)
        fails(errno.ENOENT, os.rename, a + '/f', 'f')
        fails(errno.ENOENT, os.link, a + '/f', 'f')
        fails(errno.ENOENT, os.symlink, 'x', 'f')
        fails(errno.ENOENT, os.unlink, 'f')
        fails(errno.ENOENT, os.rmdir, 'f')
        fails(errno.ENOENT, os.mknod, 'f', stat.S_IFIFO | 0o600)
        fails((errno.ENOENT, errno.EPERM), os.open, '.', os.O_TMPFILE | os.O_RDWR)
        check(os.statvfs('.').f_blocks > 0, 'statvfs')
    finally:
        os.chdir('/')
        os.close(fd)
    eq(os.listdir(b), ['f'])


def case_the_working_directory_is_removed(a, b):
    os.mkdir(a + '/d')
    os.chdir(a + '/d')
    try:
        os.rmdir(b + '/d')
        fails(errno.ENOENT, os.open, 'f', os.O_CREAT | os.O_WRONLY)
        if a == b:
            # Elsewhere: the kernel keeps the path of a directory that another node removed.
            fails(errno.ENOENT, os.getcwd)
        eq((os.stat('.').st_nlink, os.listdir('.')), (0, []))
        os.mkdir(b + '/d')
        fails(errno.ENOENT, os.open, 'f', os.O_CREAT | os.O_WRONLY)
        fails(errno.ENOENT, os.stat, 'f')
    finally:
        os.chdir('/')
    make(a + '/d/f')


# ---- directories


class DIR:
    def __init__(self, path):
        self.d = libc.opendir(os.fsencode(path))

    def next(self):
        entry = libc.readdir(self.d)
        tick()
        return ctypes.string_at(entry + 19) if entry else None

    def tell(self):
        return libc.telldir(self.d)

    def seek(self, at):
        libc.seekdir(self.d, at)

    def rest(self):
        names = []
        while True:
            name = self.next()
            if name is None:
                return names
            names.append(name)

    def close(self):
        libc.closedir(self.d)


def case_the_working_directory_is_moved(a, b):
    os.makedirs(a + '/p/d/in')
    os.mkdir(a + '/q')
    os.chdir(b + '/p/d')
    for old, new in ('p/d', 'q/e'), ('q/e', 'p/f'), ('p', 'r'):
        os.rename(a + '/' + old, a + '/' + new)
        make('here')
        eq(sorted(os.listdir('.')), ['here', 'in'])
        os.unlink('here')
        moved = 'r/f' if new == 'r' else new
        eq(os.listdir(a + '/' + moved), ['in'])
        if a != b:
            # The kernel goes by where it last found it, and asks for neither '..' nor getcwd.
            os.stat(b + '/' + moved)
        eq(os.getcwd(), os.path.realpath(b) + '/' + moved)
        eq(os.stat('..').st_ino, os.stat(a + '/' + moved + '/..').st_ino)
        eq(os.stat('in/../..').st_ino, os.stat(b + '/' + os.path.dirname(moved)).st_ino)
    os.chdir('/')


def case_listings_name_types_and_inodes(a, b):
    make(a + '/f')
    os.mkdir(a + '/d')
    os.symlink('x', a + '/s')
    os.mkfifo(a + '/p')
    with os.scandir(b) as entries:
        found = {e.name: (e.inode(), e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False), e.is_symlink()) for e in entries}
    eq(found, {n: (os.lstat(a + '/' + n).st_ino, n == 'd', n == 'f', n == 's') for n in 'fdsp'})
    d = DIR(b)
    names = d.rest()
    d.close()
    eq(sorted(names), [b'.', b'..', b'd', b'f', b'p', b's'])


def case_a_listing_of_5000_names_while_names_go(a, b):
    for i in range(5000):
        os.close(os.open(a + '/%05d' % i, os.O_CREAT | os.O_WRONLY))
        tick()
    all_names = {b'%05d' % i for i in range(5000)}
    seen = os.listdir(os.fsencode(b))
    eq((len(seen), set(seen) == all_names), (5000, True))
    d = DIR(b)
    names = [d.next() for _ in range(300)]
    for i in range(0, 5000, 2):
        os.unlink(a + '/%05d' % i)
        if i % 500 == 0:
            names += [d.next() for _ in range(200)]
        tick()
    names = [n for n in names + d.rest() if n not in (None, b'.', b'..')]
    d.close()
    eq(len(names), len(set(names)), 'a name twice:')
    missing = {b'%05d' % i for i in range(1, 5000, 2)} - set(names)
    check(not missing, len(missing), 'names missing', sorted(missing)[:5])
    check(not set(names) - all_names, 'names that never were')
    eq(set(os.listdir(os.fsencode(b))), {b'%05d' % i for i in range(1, 5000, 2)})
    with os.scandir(b) as entries:
        for e in entries:
            os.unlink(b + '/' + e.name)
            tick()
    eq(os.listdir(a), [])


def case_telldir_seekdir(a, b):
    for i in range(400):
        make(a + '/n%d' % i)
    d = DIR(b)
    first = [d.next() for _ in range(150)]
    at = d.tell()
    rest = d.rest()
    eq(len(set(first + rest)), 402)
    d.seek(at)
    eq(d.rest(), rest)
    os.unlink(a + '/' + rest[0].decode())
    libc.rewinddir(d.d)
    eq(len(d.rest()), 401)
    d.seek(at)
    eq(d.rest(), rest[1:])
    make(a + '/new')
    libc.rewinddir(d.d)
    check(b'new' in d.rest(), 'a new name after rewinddir')
    d.close()


def case_seekdir_while_others_create_and_delete(a, b):
    stay = {b'stay%d' % i for i in range(300)}
    for n in stay:
        make(os.fsencode(a) + b'/' + n)
    d = DIR(b)
    seen = {}
    places = []
    while True:
        at = d.tell()
        name = d.next()
        if name is None:
            break
        places.append((at, name))
        seen[name] = seen.get(name, 0) + 1
        i = len(places)
        if i % 5 == 0:
            make(a + '/new%d' % i)
        if i % 10 == 0 and os.path.exists(a + '/new%d' % (i - 5)):
            os.unlink(a + '/new%d' % (i - 5))
    eq({n: c for n, c in seen.items() if c != 1}, {}, 'names twice')
    eq(stay - set(seen), set(), 'names that stayed are missing')
    # Each place still begins with the name that it began with, or with those that came before that one since.
    for at, name in random.sample([p for p in places if p[1] in stay], 20):
        d.seek(at)
        rest = d.rest()
        eq(rest.count(name), 1)
        check(not [n for n in rest[:rest.index(name)] if n in stay], 'others are before it')
        later = [n for _, n in places[[p[1] for p in places].index(name):] if n in stay]
        eq([n for n in rest if n in stay], later, 'the rest')
    d.close()


# ---- all of it


def case_statfs(a, b):
    s, t = os.statvfs(a), os.statvfs(b)
    eq((s.f_namemax, s.f_frsize, s.f_blocks), (255, 4096, t.f_blocks))
    check(0 < s.f_bfree <= s.f_blocks and s.f_bavail <= s.f_bfree, 'free blocks')


def case_inode_numbers_are_the_same_everywhere(a, b):
    make(a + '/f')
    os.mkdir(b + '/d')
    eq([os.stat(a + p).st_ino for p in ('', '/f', '/d')], [os.stat(b + p).st_ino for p in ('', '/f', '/d')])
    ino = os.stat(a + '/f').st_ino
    os.rename(b + '/f', b + '/d/g')
    eq(os.stat(a + '/d/g').st_ino, ino)


def case_offsets_at_the_limit(a, b):
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        fails((errno.EFBIG, errno.EINVAL), os.pwrite, fd, b'x', (1 << 63) - 1)
        os.pwrite(fd, b'far', 1 << 42)
    with opened(b + '/f') as fd:
        eq((os.fstat(fd).st_size, os.pread(fd, 5, 1 << 42)), ((1 << 42) + 3, b'far'))


def case_a_directory_moved_on_the_other_node_is_moved_on(a, b):
    # The kernel of the second node still has it at its first place, and can't move it there in the middle of a rename.
    def known(path, files):
        for n in range(files):
            eq(get(path + '/f%d' % n), b'%d' % n)
        os.stat(path)
    for n, (files, third) in enumerate([(0, 'c'), (3, 'c'), (0, 'a'), (3, 'a'), (3, 'b')]):
        here, there = a + '/%d' % n, b + '/%d' % n
        for d in 'abc':
            os.makedirs(here + '/' + d)
        os.mkdir(here + '/a/d')
        for i in range(files):
            put(here + '/a/d/f%d' % i, b'%d' % i)
        known(there + '/a/d', files)
        os.rename(here + '/a/d', here + '/b/e')
        try:
            os.rename(there + '/b/e', there + '/' + third + '/g')
        except OSError as e:
            # Where the place it was at first is locked for this very rename and something below it is remembered, the next try succeeds.
            check(e.errno == errno.ESTALE and files and third == 'a', n, files, third, e)
            os.rename(there + '/b/e', there + '/' + third + '/g')
        for d in here, there:
            eq((os.listdir(d + '/' + third), os.path.exists(d + '/b/e')), (['g'], False), n, d)
            known(d + '/' + third + '/g', files)


def case_a_file_of_16_tib(a, b):
    last = (1 << 44) - 8192
    with opened(a + '/f', os.O_CREAT | os.O_RDWR) as fd:
        eq(os.pwrite(fd, b'end', last), 3)
        eq(os.pwrite(fd, b'begin', 0), 5)
        os.ftruncate(fd, last + 4096)
    with opened(b + '/f') as fd:
        eq((os.fstat(fd).st_size, os.pread(fd, 4, last), os.pread(fd, 4, 1 << 43), os.pread(fd, 6, 0)), (last + 4096, b'end\0', bytes(4), b'begin\0'))
        eq((os.lseek(fd, 4096, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE)), (last, 4096))
        check(os.fstat(fd).st_blocks < 100, 'blocks')
        os.ftruncate(fd, 4096)
    fails(errno.EFBIG, os.truncate, a + '/f', (1 << 44) + 4096)
    eq((os.stat(a + '/f').st_size, get(a + '/f')), (4096, b'begin' + bytes(4091)))


def give_name(fd, path):
    libcall(libc.linkat(AT_FDCWD, b'/proc/self/fd/%d' % fd, AT_FDCWD, os.fsencode(path), 0x400))


def case_tmpfile(a, b):
    os.mkdir(a + '/d')
    before = times(b + '/d')
    fd = os.open(a + '/d', os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b'unnamed')
    s = os.fstat(fd)
    eq((os.listdir(b + '/d'), s.st_nlink, stat.S_IMODE(s.st_mode), s.st_size, times(b + '/d')), ([], 0, 0o640, 7, before))
    with opened('/proc/self/fd/%d' % fd, os.O_RDONLY) as again:
        eq(os.read(again, 10), b'unnamed')
    # Also after its directory was used elsewhere.
    make(b + '/d/x')
    os.write(fd, b' file')
    give_name(fd, a + '/named')
    eq((get(b + '/named'), os.stat(b + '/named').st_nlink, os.stat(b + '/named').st_ino, os.fstat(fd).st_nlink), (b'unnamed file', 1, s.st_ino, 1))
    os.write(fd, b', named')
    eq(get(b + '/named'), b'unnamed file, named')
    give_name(fd, a + '/d/twice')
    eq(os.stat(b + '/named').st_nlink, 2)
    os.unlink(b + '/named')
    os.unlink(b + '/d/twice')
    os.pwrite(fd, b'U', 0)
    # Once it has lost them all it gets no other.
    fails(errno.ENOENT, give_name, fd, a + '/named')
    eq((os.fstat(fd).st_nlink, os.pread(fd, 3, 0)), (0, b'Unn'))
    os.close(fd)
    eq((os.listdir(a), os.listdir(b + '/d')), (['d'], ['x']))
    fd = os.open(a, os.O_TMPFILE | os.O_WRONLY | os.O_EXCL, 0o600)
    fails(errno.ENOENT, give_name, fd, a + '/named')
    os.close(fd)
    # Its directory can go while it is there.
    fd = os.open(a + '/d', os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b'stays')
    os.unlink(b + '/d/x')
    os.rmdir(b + '/d')
    eq(os.pread(fd, 9, 0), b'stays')
    give_name(fd, a + '/kept')
    os.close(fd)
    eq((get(b + '/kept'), os.stat(b + '/kept').st_nlink), (b'stays', 1))
    fails(errno.ENOENT, os.open, a + '/none', os.O_TMPFILE | os.O_RDWR)
    fails((errno.ENOTDIR, errno.EISDIR), os.open, a + '/kept', os.O_TMPFILE | os.O_RDWR)
    os.chmod(a, 0o755)
    as_user(lambda: fails(errno.EACCES, os.open, a, os.O_TMPFILE | os.O_RDWR))
    os.mkdir(a + '/e')
    os.setxattr(a + '/e', DEFAULT, acl('UO7 U7:1000 GO5 M7 O0'))
    fd = os.open(b + '/e', os.O_TMPFILE | os.O_RDWR, 0o666)
    give_name(fd, b + '/e/f')
    os.close(fd)
    eq((mode(a + '/e/f'), acl_text(a + '/e/f')), (0o660, 'UO6 U7:1000 GO5 M6 O0'))


def case_space_of_files_without_a_name_comes_back(a, b):
    with opened(a + '/all-nodes', os.O_CREAT | os.O_RDWR):
        pass
    before = free(a)
    fds = [os.open(p, os.O_TMPFILE | os.O_RDWR) for p in (a, b) * 5]
    for fd in fds:
        os.write(fd, bytes(1 << 20))
        os.fsync(fd)
    soon(10, lambda: free(a) <= before - (9 << 20), 'space is not taken', before, free(a))
    for fd in fds:
        os.close(fd)
    soon(20, lambda: free(a) >= before - (1 << 20), 'space does not come back', before, free(a))


def run_all():
    only = ARGS[2:]
    cases = [(n[5:], f) for n, f in list(globals().items()) if n.startswith('case_') and (not only or n[5:] in only)]
    os.umask(0o022)
    os.chmod(HERE, 0o755)
    out = open(RESULT, 'w', buffering=1)
    for name, case in cases:
        random.seed(name)
        out.write('begin %s\n' % name)
        os.mkdir(HERE + '/' + name)
        begin = time.monotonic()
        try:
            os.stat(THERE + '/' + name)
            case(HERE + '/' + name, THERE + '/' + name)
            out.write('ok %s %d\n' % (name, (time.monotonic() - begin) * 1000))
        except BaseException:
            out.write('failed %s %s\n' % (name, json.dumps(traceback.format_exc()[-3000:])))
        os.chdir('/')
        tick()


import json
run_all()
