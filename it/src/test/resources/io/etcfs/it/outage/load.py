# Works in a directory of its own that is there and in the shared one until a file says stop, and writes down what must be there afterwards: for each name the contents
# it may have, null for none. A call that fails with ETIMEDOUT has had no effect, one that fails with EIO may have had.
import json
NAME, STOP, RESULT, MAY_FAIL, LIMIT_S = ARGS
may_fail, limit = MAY_FAIL == 'yes', float(LIMIT_S)
os.chdir(HERE)
random.seed(NAME)
may = {}
lines = []
failures, longest, calls = {}, [0, ''], 0


def run(call, *args):
    """(errno or 0, result)"""
    global calls
    if may_fail:
        idle()
    begin = time.monotonic()
    try:
        result, error = call(*args), 0
    except OSError as e:
        if not may_fail or e.errno not in (errno.EIO, errno.ETIMEDOUT):
            raise
        result, error = None, e.errno
        what = '%s %s' % (call.__name__, errno.errorcode[error])
        failures[what] = failures.get(what, 0) + 1
    took = time.monotonic() - begin
    if took > longest[0]:
        longest[:] = [took, call.__name__]
    check(took < limit, call.__name__, *args[:1], 'took', took)
    if may_fail:
        busy()
    if not error:
        calls += 1
        tick()
    return error, result


def allow(name, before, after, error):
    may[name] = [after] if not error else [before] if error == errno.ETIMEDOUT else [before, after]


def sure(place=''):
    return [n for n in may if len(may[n]) == 1 and may[n][0] is not None and n.startswith(place)]


def make(name, text):
    error, fd = run(os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    allow(name, None, '', error)
    if error:
        return
    error, n = run(os.write, fd, text.encode())
    check(error or n == len(text), 'short write')
    allow(name, '', text, error)
    if random.randrange(20) == 0:
        run(os.fsync, fd)
    run(os.close, fd)


def append():
    line = '%-4s%010d\n' % (NAME, len(lines))
    error, fd = run(os.open, 'shared/log', os.O_WRONLY | os.O_APPEND)
    if error:
        return
    error, n = run(os.write, fd, line.encode())
    check(error or n == len(line), 'short append')
    lines.append([line, 'sure' if not error else 'no' if error == errno.ETIMEDOUT else 'maybe'])
    run(os.close, fd)


def step(n):
    place = NAME + '/' if random.randrange(3) else 'shared/' + NAME + '-'
    name = place + 'f%d' % n
    make(name, '%d of %s\n' % (n, NAME) * random.randrange(1, 300))
    if len(may[name]) == 1 and may[name][0] is not None and random.randrange(2):
        to = place + 'g%d' % n
        text = may[name][0]
        error, _ = run(os.rename, name, to)
        allow(name, text, None, error)
        allow(to, None, text, error)
    there = sure()
    if len(there) > 60 or there and random.randrange(8) == 0:
        gone = random.choice(there)
        error, _ = run(os.unlink, gone)
        allow(gone, may[gone][0], None, error)
    there = sure()
    if there:
        name = random.choice(there)
        error, fd = run(os.open, name, os.O_RDONLY)
        if not error:
            error, data = run(os.read, fd, 1 << 20)
            check(error or data.decode() == may[name][0], name, 'reads as something else')
            run(os.close, fd)
    if random.randrange(5) == 0:
        append()
    if random.randrange(15) == 0:
        error, names = run(os.listdir, 'shared')
        if not error:
            missing = set(x[7:] for x in sure('shared/')) - set(names)
            check(not missing, 'not listed:', *missing)


n = 0
while not os.path.exists(STOP):
    n += 1
    step(n)
    time.sleep(0.001)
with open(RESULT, 'w') as f:
    json.dump({'may': may, 'lines': lines, 'facts': '%d calls, longest %s %d ms, failed %s' % (calls, longest[1], longest[0] * 1000, failures)}, f)
