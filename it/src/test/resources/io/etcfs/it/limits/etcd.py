# What a node says while etcd has little room (ARGS: little), none (none), or room again (room). It was filled up by records of this filesystem or of others.
SECONDS = 15


def new_things(d):
    """Each of them puts a key that was not there."""
    return [('create', lambda: os.close(os.open(d + '/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY))), ('mkdir', lambda: os.mkdir(d + '/newdir')),
            ('symlink', lambda: os.symlink('x', d + '/newlink')), ('link', lambda: os.link(d + '/file', d + '/newname')), ('mkfifo', lambda: os.mkfifo(d + '/newfifo')),
            ('setxattr', lambda: os.setxattr(d + '/file', 'user.new', b'x' * 100)), ('write', lambda: write(d + '/file', 1 << 20)), ('tmpfile', lambda: os.close(os.open(d, os.O_TMPFILE | os.O_RDWR)))]


def write(path, at):
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, b'bytes' * 800, at)
    finally:
        os.close(fd)


def refusals(d):
    return {name: refused(call, errno.ENOSPC, errno.ETIMEDOUT) for name, call in new_things(d)}


def reads(d):
    check(get(d + '/file')[:5] == b'bytes', 'bytes')
    check('file' in os.listdir(d) and os.stat(d + '/file').st_size >= 5 and os.getxattr(d + '/file', 'user.old') == b'old', 'reads')
    check(os.statvfs(d).f_blocks > 0, 'statvfs')
    fails_as = refused(lambda: os.stat(d + '/none'), errno.ENOENT)
    check(fails_as == errno.ENOENT, 'a name that is not there', fails_as)


what = ARGS[0]
if what == 'prepare':
    os.mkdir(HERE)
    put(HERE + '/file', b'bytes')
    os.setxattr(HERE + '/file', 'user.old', b'old')
    for i in range(20):
        put(HERE + '/old%d' % i, b'old')
    fd = os.open(HERE, os.O_RDONLY)
    os.fsync(fd)
elif what == 'fill':
    # Records of this filesystem, until it is refused.
    os.mkdir(HERE + '/fill')
    value = os.urandom(60_000)
    n = 0
    while not refused(lambda: put(HERE + '/fill/%d' % n, b''), errno.ENOSPC) and not refused(lambda: os.setxattr(HERE + '/fill/%d' % n, 'user.fill', value), errno.ENOSPC):
        n += 1
        check(n < 5000, 'nothing is refused')
        # Not faster than etcd's size is looked at.
        time.sleep(0.02)
    print(n, 'values of 60,000 bytes')
elif what == 'little':
    said = refusals(HERE)
    check(set(said.values()) == {errno.ENOSPC}, 'not all is refused', said)
    reads(HERE)
    # What is there can be changed and removed.
    os.chmod(HERE + '/file', 0o600)
    write(HERE + '/file', 0)
    os.rename(HERE + '/old0', HERE + '/renamed')
    os.unlink(HERE + '/old1')
    os.truncate(HERE + '/file', 5)
    os.removexattr(HERE + '/fill/0', 'user.fill')
    fd = os.open(HERE + '/file', os.O_RDWR)
    os.fsync(fd)
elif what == 'grow':
    # Somebody else's records, until the file has so many bytes.
    import base64, http.client, json, urllib.parse
    at = urllib.parse.urlsplit(ARGS[1])

    def ask(path, request):
        c = http.client.HTTPConnection(at.hostname, at.port)
        c.request('POST', '/v3/' + path, json.dumps(request))
        answer = json.loads(c.getresponse().read())
        c.close()
        tick()
        return answer
    n = 0
    while True:
        size = int(ask('maintenance/status', {})['dbSize'])
        if size >= int(ARGS[2]):
            break
        check(n < 3000, 'the file has only', size)
        several = 10 if size < int(ARGS[2]) * 0.9 else 1
        puts = [{'requestPut': {'key': base64.b64encode(b'somebody-else/%d' % (n + i)).decode(), 'value': base64.b64encode(b'v' * 60_000).decode()}} for i in range(several)]
        check(ask('kv/txn', {'success': puts}).get('succeeded'), 'refused at', size)
        n += several
        # It counts what it has written, ten times a second.
        time.sleep(0.15)
elif what == 'refused':
    end = time.monotonic() + SECONDS
    while refused(lambda: os.close(os.open(HERE + '/probe%f' % time.monotonic(), os.O_CREAT | os.O_EXCL | os.O_WRONLY)), errno.ENOSPC) == 0:
        check(time.monotonic() < end, 'nothing is refused')
        time.sleep(0.1)
    reads(HERE)
elif what == 'hold':
    # A lock that would go with the session, and reads and writes of what is there, all the time.
    held = os.open(HERE + '/old5', os.O_RDWR)
    fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 0)
    fd = os.open(HERE + '/old4', os.O_RDWR)
    n = 0
    while not os.path.exists(ARGS[1]):
        os.pwrite(fd, struct.pack('<q', n), 0)
        check(struct.unpack('<q', os.pread(fd, 8, 0))[0] == n, 'bytes')
        # Where the lock is lost with its session this says EIO.
        os.pread(held, 1, 0)
        n += 1
        tick()
        time.sleep(0.02)
    os.fsync(fd)
    fcntl.lockf(held, fcntl.LOCK_UN, 100, 0)
    check(struct.unpack('<q', get(THERE + '/old4')[:8])[0] == n - 1, 'bytes on the other node')
elif what == 'empty':
    for name in os.listdir(HERE + '/fill'):
        os.unlink(HERE + '/fill/' + name)
        tick()
    os.rmdir(HERE + '/fill')
elif what == 'none':
    # Taken in, in a block that is there.
    fd = os.open(HERE + '/old2', os.O_WRONLY)
    os.pwrite(fd, b'new', 0)
    os.close(fd)
    end = time.monotonic() + SECONDS
    while refused(lambda: os.close(os.open(HERE + '/probe%f' % time.monotonic(), os.O_CREAT | os.O_EXCL | os.O_WRONLY)), errno.ENOSPC) == 0:
        check(time.monotonic() < end, 'nothing is refused')
        time.sleep(0.1)
    begin = time.monotonic()
    said = refusals(HERE)
    check(set(said.values()) == {errno.ENOSPC}, 'not all is refused', said)
    check(time.monotonic() - begin < 10, 'it takes', time.monotonic() - begin)
    reads(HERE)
    # Taken in as far as memory goes, published once there is room.
    os.unlink(HERE + '/old3')
    check(not os.path.exists(HERE + '/old3'))
    fd = os.open(HERE + '/file', os.O_RDWR)
    check(refused(lambda: os.fsync(fd), errno.ENOSPC) == errno.ENOSPC, 'fsync')
elif what == 'room':
    end = time.monotonic() + SECONDS
    while True:
        said = {name: code for name, code in refusals(HERE).items()} if not os.path.exists(HERE + '/new') else {}
        if set(said.values()) <= {0}:
            break
        check(time.monotonic() < end, 'still refused', said)
        for n in 'new', 'newlink', 'newname', 'newfifo':
            refused(lambda: os.unlink(HERE + '/' + n), errno.ENOENT)
        refused(lambda: os.rmdir(HERE + '/newdir'), errno.ENOENT)
        refused(lambda: os.removexattr(HERE + '/file', 'user.new'), errno.ENODATA)
        time.sleep(0.2)
    for n in 'new', 'newlink', 'newname', 'newfifo':
        os.unlink(HERE + '/' + n)
    os.rmdir(HERE + '/newdir')
    os.removexattr(HERE + '/file', 'user.new')
    os.truncate(HERE + '/file', 5)
    fd = os.open(HERE + '/file', os.O_RDWR)
    os.fsync(fd)
    reads(THERE)
    reads(HERE)
elif what == 'afterwards':
    check(get(THERE + '/old2') == b'new' and not os.path.exists(THERE + '/old3'), 'what was acknowledged')
