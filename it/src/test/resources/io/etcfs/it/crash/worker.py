# Runs the calls of a script, one a line, and says how far it came in a file outside of the mount: calls begun, ended, ended before the last fsync that
# returned, then the time at which each ended. Ends when the daemon is gone.
SCRIPT, PROGRESS = ARGS
os.chdir(HERE)
calls = [line.split() for line in open(SCRIPT)]
_file = os.open(PROGRESS, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(_file, 32 + 8 * (len(calls) + 1))
progress = mmap.mmap(_file, 32 + 8 * (len(calls) + 1))


def say(where, value):
    struct.pack_into('<q', progress, 8 * where, value)


def extend(path, flags, at, length, number):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        unit = b'%d\n' % number
        data = (unit * (length // len(unit) + 1))[:length]
        done = os.write(fd, data) if flags & os.O_APPEND else os.pwrite(fd, data, at)
        check(done == length, 'short write', done, length)
    finally:
        os.close(fd)


def fsync(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


RUN = {
    'mkdir': lambda p: os.mkdir(p, 0o755),
    'create': lambda p: os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)),
    'append': lambda p, at, n, number: extend(p, os.O_APPEND, int(at), int(n), int(number)),
    'pwrite': lambda p, at, n, number: extend(p, 0, int(at), int(n), int(number)),
    'truncate': lambda p, size: os.truncate(p, int(size)),
    'chmod': lambda p, mode: os.chmod(p, int(mode)),
    'rename': os.rename,
    'link': os.link,
    'symlink': os.symlink,
    'unlink': os.unlink,
    'rmdir': os.rmdir,
    'fsync': fsync,
}
os.umask(0o022)
for i, (name, *args) in enumerate(calls):
    say(0, i + 1)
    try:
        RUN[name](*args)
    except OSError as e:
        if e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED):
            print(i, name, *args, e)
            sys.exit(0)
        raise
    struct.pack_into('<q', progress, 32 + 8 * i, time.monotonic_ns())
    say(1, i + 1)
    if name == 'fsync':
        say(2, i + 1)
    tick()
idle()
time.sleep(1000)
