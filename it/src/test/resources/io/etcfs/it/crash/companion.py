# Works on the node that survives, in a directory of its own and in the shared one (one time in so many), until a file says stop. No call may fail. Then both nodes see all of it.
OWN, STOP, RESULT, SHARED_ONE_IN = ARGS
import json
os.chdir(HERE)
random.seed(OWN)
os.mkdir(OWN)
kept = {}
longest = [0, '']
calls = 0


def timed(what, call, *args, **named):
    global calls
    begin = time.monotonic()
    result = call(*args, **named)
    took = time.monotonic() - begin
    tick()
    calls += 1
    if took > longest[0]:
        longest[:] = [took, what]
    return result


def write(path, data, flags):
    fd = timed('open', os.open, path, flags | os.O_WRONLY, 0o644)
    if data:
        check(timed('write', os.write, fd, data) == len(data), 'short write')
    if random.randrange(50) == 0:
        timed('fsync', os.fsync, fd)
    timed('close', os.close, fd)


n = 0
while not os.path.exists(STOP):
    n += 1
    place = OWN + '/' if random.randrange(int(SHARED_ONE_IN)) else 'shared/' + OWN + '-'
    data = b'%d of %s\n' % (n, OWN.encode()) * random.randrange(600)
    name = place + str(n)
    write(name, data, os.O_CREAT | os.O_EXCL)
    other = place + random.choice(['a', 'b', 'c', 'd', 'e', 'f'])
    timed('rename', os.rename, name, other)
    kept[other] = data
    if random.randrange(3) == 0:
        gone = random.choice(sorted(kept))
        timed('unlink', os.unlink, gone)
        del kept[gone]
    elif random.randrange(3) == 0:
        longer = random.choice(sorted(kept))
        write(longer, b'more %d\n' % n, os.O_APPEND)
        kept[longer] += b'more %d\n' % n
    if kept:
        read = random.choice(sorted(kept))
        check(get(read) == kept[read], read, 'reads as something else')
    if n % (10 * int(SHARED_ONE_IN)) == 0:
        listed = timed('listdir', os.listdir, 'shared')
        check(sorted('shared/' + x for x in listed if x.startswith(OWN + '-')) == sorted(k for k in kept if k.startswith('shared/')), 'names in the shared directory')
    time.sleep(0.002)
for root in HERE, THERE:
    os.chdir(root)
    tick()
    names = sorted([OWN + '/' + x for x in os.listdir(OWN)] + ['shared/' + x for x in os.listdir('shared') if x.startswith(OWN + '-')])
    tick()
    check(names == sorted(kept), 'names on', root, names, sorted(kept))
    for name in names:
        check(get(name) == kept[name], name, 'differs on', root)
with open(RESULT, 'w') as f:
    f.write('%d %d %s' % (calls, longest[0] * 1000, longest[1]))
