# Calls of every sort on a few names that the other node uses, too. What a local filesystem would refuse is refused here.
random.seed(int(ARGS[0]))
held = []


def directory():
    return HERE + '/' + random.choice('abc') + ('' if random.random() < 0.6 else '/d%d' % random.randrange(3))


def name():
    return directory() + '/f%d' % random.randrange(12)


def subdirectory():
    return directory() + '/d%d' % random.randrange(3)


def write():
    with open(name(), random.choice(['r+b', 'wb'])) as f:
        f.seek(random.choice([0, 0, random.randrange(1 << 20)]))
        f.write(os.urandom(random.randrange(1, 200_000)))
        if random.random() < 0.3:
            f.flush()
            os.fsync(f.fileno())


def hold():
    if len(held) > 5:
        held.pop(0).close()
    held.append(open(name(), 'rb'))


def unnamed():
    f = open(os.open(directory(), os.O_TMPFILE | os.O_RDWR), 'r+b')
    f.write(os.urandom(random.randrange(1, 100_000)))
    if random.random() < 0.3:
        os.fsync(f.fileno())
    if random.random() < 0.5:
        held.append(f)
    if random.random() < 0.7:
        # os.link does not follow.
        if libc.linkat(-100, b'/proc/self/fd/%d' % f.fileno(), -100, os.fsencode(name()), 0x400) < 0:
            raise OSError(ctypes.get_errno(), 'linkat')


# The other node moves directories, too: Linux can then refuse to move one on, and the next try succeeds (SEMANTICS, ESTALE) unless it was moved again meanwhile.
def move():
    source, target = subdirectory(), subdirectory()
    for left in range(4, -1, -1):
        try:
            return os.rename(source, target)
        except OSError as e:
            if e.errno != errno.ESTALE or left == 0:
                raise


calls = [write, unnamed, write, write, hold,
         lambda: os.truncate(name(), random.randrange(400_000)),
         lambda: os.unlink(name()),
         lambda: os.unlink(name()),
         lambda: os.rename(name(), name()),
         lambda: os.link(name(), name()),
         lambda: os.mkdir(subdirectory()),
         lambda: os.rmdir(subdirectory()),
         move,
         lambda: os.setxattr(name(), 'user.x', os.urandom(random.choice([20, 6_000])))]
for n in until(90):
    if os.path.exists(ARGS[1]):
        break
    refused(random.choice(calls), errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)
