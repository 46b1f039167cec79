# Works on files of its own, some in directories that it shares with the other workers, until a file says stop; whatever happens to the nodes meanwhile. After each
# failure it looks at what is left:
#   the node is gone (killed, or it stopped by itself): a prefix of what was done, and nothing is missing of what fsync was answered for or another node has seen;
#   a call failed and the node is there: all of it, the failed call made or not.
# In the file of blocks, which is overwritten in place, each block is by itself (D4 of the semantics).
import hashlib, json

NAME, SEED, STOP, PAUSE, RESULT, LIMIT_S, *OTHERS = ARGS
OTHERS.insert(0, THERE)
random.seed(int(SEED))
DIRS = ['shared', 'own-' + NAME, 'both']
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.ENODEV)
UNSURE = (errno.EIO, errno.ETIMEDOUT)
BLOCKS = 48
counts = {}


class Lost(Exception):
    """The node is gone."""


class Unsure(Exception):
    """The call failed, and may have been made."""


def count(what):
    counts[what] = counts.get(what, 0) + 1


def call(f, *args, **named):
    """A call on the own node. Others may hold it up for as long as their faults last."""
    idle()
    begin = time.monotonic()
    try:
        return f(*args, **named)
    except OSError as e:
        if e.errno in GONE:
            raise Lost() from e
        if e.errno in UNSURE:
            count(errno.errorcode[e.errno])
            raise Unsure() from e
        raise
    finally:
        took = time.monotonic() - begin
        counts['longest ms'] = max(counts.get('longest ms', 0), int(took * 1000))
        check(took < float(LIMIT_S), f.__name__, 'took', took)
        busy()


class Node:
    """The mount that this worker works on; everything goes by a descriptor of its root, so that a mount made anew is not taken for the old one."""
    root = None

    def open(self):
        end = time.monotonic() + 120
        while True:
            check(time.monotonic() < end, 'the mount does not come back')
            try:
                self.root = call(os.open, HERE, os.O_RDONLY | os.O_DIRECTORY)
                call(os.listdir, self.root)
                return
            except (Lost, Unsure, FileNotFoundError):
                self.close()
                time.sleep(0.1)

    def close(self):
        if self.root is not None:
            shut(self.root)
        self.root = None

    def is_gone(self):
        """Asks until there is an answer: statfs is never answered by the kernel."""
        while True:
            try:
                call(os.statvfs, self.root)
                return False
            except Lost:
                return True
            except Unsure:
                time.sleep(0.2)


node = Node()


class Files:
    """What was done to files that only get longer or shorter: entries since all was known to be durable, and what there is now."""

    def __init__(self):
        self.base, self.now, self.log, self.sure = {}, {}, [], 0
        # The last that happened, for who wants to know why something is wrong.
        self.told = []

    @staticmethod
    def apply(state, entry):
        kind, name, what = entry
        if kind == 'put':
            state[name] = what
        elif kind == 'del':
            state.pop(name, None)
        else:
            state[what] = state.pop(name)

    def done(self, entry):
        self.tell(entry[0], entry[1], entry[2] if entry[0] == 'move' else told(entry[2]))
        self.log.append(entry)
        self.apply(self.now, entry)

    def tell(self, *what):
        self.told = self.told[-60:] + ['%.3f %s' % (time.time() % 1000, ' '.join(str(w) for w in what))]

    def durable(self, why, upto=None):
        self.tell(why, 'durable', 'all' if upto is None else 'up to %d of %d' % (upto, len(self.log)))
        self.sure = max(self.sure, len(self.log) if upto is None else upto)
        if self.sure == len(self.log) or self.sure > 2000:
            for entry in self.log[:self.sure]:
                self.apply(self.base, entry)
            del self.log[:self.sure]
            self.sure = 0

    def last_of(self, file):
        """
        Number of entries up to the last one about this file. Of others in its directory nothing can be said: an inode that was moved belongs to the directory that it was made in,
        and is published with that.
        """
        for k in range(len(self.log), 0, -1):
            kind, name, what = self.log[k - 1]
            if name == file or kind == 'move' and what == file:
                return k
        return 0

    def explain(self, seen, pending, crash):
        """Takes what is there for what was done, or fails."""
        all_ = self.log + ([pending] if pending else [])
        first = self.sure if crash else len(self.log)
        state = dict(self.base)
        for entry in all_[:first]:
            self.apply(state, entry)
        best = None
        for k in range(first, len(all_) + 1):
            if k > first:
                self.apply(state, all_[k - 1])
            wrong = [n for n in state.keys() | seen.keys() if state.get(n) != seen.get(n)]
            partly = k < len(all_) and len(wrong) == 1 and self.is_part(all_[k], state.get(wrong[0]), seen.get(wrong[0]), wrong[0])
            if crash and not partly:
                wrong = [n for n in wrong if not self.is_zeroed(all_[k:], state.get(n), seen.get(n))]
            if not wrong or partly:
                self.taken(seen, crash, all_[:k], None if not wrong else ('put', wrong[0], seen[wrong[0]]))
                return k - len(self.log)
            if best is None or len(wrong) <= best[0]:
                best = len(wrong), k, wrong[:4], [(told(state.get(n)), told(seen.get(n))) for n in wrong[:4]]
        if best[2] and state.get(best[2][0]) is not None and seen.get(best[2][0]) is not None:
            should, is_ = state[best[2][0]], seen[best[2][0]]
            self.tell('they differ from byte', next((i for i in range(min(len(should), len(is_))) if should[i] != is_[i]), min(len(should), len(is_))), 'begin with', should[:20], is_[:20], 'end with', should[-20:], is_[-20:])
        check(False, 'crash' if crash else 'failure', 'of', HERE, 'not explained by', first, 'to', len(all_), 'of', len(all_), 'calls; nearest (wrong, call, names, should and is)', best,
              'calls around', [(e[0], e[1], e[2] if e[0] == 'move' else told(e[2])) for e in all_[max(0, best[1] - 4):best[1] + 4]],
              '\nbefore that:\n' + '\n'.join(self.told))

    @staticmethod
    def is_part(entry, before, seen, name):
        """A write that was on its way may be there up to a point."""
        kind, n, after = entry
        return kind == 'put' and n == name and before is not None and seen is not None and len(before) < len(seen) < len(after) and after.startswith(seen) and seen.startswith(before)

    @staticmethod
    def is_zeroed(later, should, seen):
        """Of a file that was cut and written behind its new end: from there the rest of the block may be zero, though nothing of this is there otherwise."""
        if should is None or seen is None or len(should) != len(seen):
            return False
        differ = next(i for i in range(len(seen)) if seen[i] != should[i])
        end = min((differ // BLOCK + 1) * BLOCK, len(seen))
        cut = any(kind == 'put' and len(what) <= differ and should.startswith(what[:differ]) for kind, name, what in later)
        return cut and not any(seen[differ:end]) and seen[end:] == should[end:]

    def taken(self, seen, crash, log, part):
        if crash:
            self.base, self.now, self.log, self.sure = dict(seen), dict(seen), [], 0
        else:
            self.log = log + ([part] if part else [])
            self.now = dict(seen)


def told(data):
    return None if data is None else '%d bytes %s' % (len(data), hashlib.md5(data).hexdigest()[:8])


class Blocks:
    """A file of blocks that are overwritten in place: of each the versions that may be there after a crash, the last one is there now."""
    path = DIRS[1] + '/blocks'

    def __init__(self):
        self.versions = [[bytes(BLOCK)] for _ in range(BLOCKS)]

    @staticmethod
    def content(number, block):
        head = b'%s %d block %d ' % (NAME.encode(), number, block)
        return (head * (BLOCK // len(head) + 1))[:BLOCK]

    def durable(self):
        self.versions = [[v[-1]] for v in self.versions]

    def explain(self, seen, pending, crash):
        check(len(seen) == BLOCKS * BLOCK, 'the file of blocks has', len(seen), 'bytes')
        for i in range(BLOCKS):
            block = seen[i * BLOCK:(i + 1) * BLOCK]
            allowed = (self.versions[i] if crash else self.versions[i][-1:]) + pending.get(i, [])
            check(block in allowed, 'block', i, 'of', self.path, 'on', HERE, 'begins with', block[:30], 'allowed', [a[:30] for a in allowed], 'crash' if crash else 'failure')
            self.versions[i] = [block] if crash else self.versions[i] + ([block] if block != self.versions[i][-1] else [])


files = Files()
blocks = Blocks()
number = 0
# What the call under way would do, if it fails.
pending = None
pending_blocks = {}


def effect(entry, f, *args, **named):
    global pending
    pending = entry
    result = call(f, *args, **named)
    files.done(entry)
    pending = None
    return result


def append_to(name, old, fd, data):
    """As many of the bytes as write(2) says: Linux sends pages that it has not whole in requests of their own, and one of them may fail."""
    global pending
    pending = ('put', name, old + data)
    n = call(os.pwrite, fd, data, len(old))
    if n < len(data):
        count('short writes')
    files.done(('put', name, old + data[:n]))
    pending = None


def opened(name, flags, mode=0o644):
    return call(os.open, name, flags, mode, dir_fd=node.root)


def shut(fd):
    try:
        call(os.close, fd)
    except (Lost, Unsure):
        # It is closed; what was done by it is looked at elsewhere.
        pass


def any_file():
    return random.choice(sorted(files.now)) if files.now else None


def new_bytes(n):
    word = b'%s %d;' % (NAME.encode(), number)
    return (word * (n // len(word) + 1))[:n]


def make():
    name = '%s/%s-%d' % (random.choice(DIRS), NAME, number)
    fd = effect(('put', name, b''), os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | random.choice([0, 0, 0, os.O_DSYNC]), 0o644, dir_fd=node.root)
    try:
        data = new_bytes(random.choice([random.randrange(1, 3000), random.randrange(1, 60000)]))
        append_to(name, b'', fd, data)
        if random.randrange(4) == 0:
            call(os.fsync, fd)
            files.durable('fsync ' + name)
    finally:
        shut(fd)


def append():
    name = any_file()
    if not name or len(files.now[name]) > 400_000:
        return
    fd = opened(name, os.O_WRONLY | random.choice([0, os.O_APPEND]))
    try:
        old = files.now[name]
        data = new_bytes(random.choice([random.randrange(1, 3000), random.randrange(1, 60000)]))
        append_to(name, old, fd, data)
        if random.randrange(5) == 0:
            call(os.fsync, fd)
            files.durable('fsync ' + name)
    finally:
        shut(fd)


def cut():
    name = any_file()
    if not name or not files.now[name]:
        return
    fd = opened(name, os.O_WRONLY)
    try:
        size = random.randrange(len(files.now[name]))
        effect(('put', name, files.now[name][:size]), os.ftruncate, fd, size)
    finally:
        shut(fd)


def move():
    name = any_file()
    if name:
        to = random.choice([random.choice(DIRS) + '/%s-%d' % (NAME, number), any_file()])
        if to != name:
            effect(('move', name, to), os.rename, name, to, src_dir_fd=node.root, dst_dir_fd=node.root)


def remove():
    name = any_file()
    if name:
        effect(('del', name, None), os.unlink, name, dir_fd=node.root)


def overwrite():
    """Some blocks in place, buffered or at once."""
    global pending_blocks
    how = random.choice([0, 0, os.O_DIRECT, os.O_DIRECT | os.O_DSYNC])
    fd = opened(Blocks.path, os.O_RDWR | how)
    try:
        for _ in range(random.randrange(1, 4)):
            first = random.randrange(BLOCKS)
            n = min(random.choice([1, 1, 2, 8]), BLOCKS - first)
            new = [Blocks.content(number, first + i) for i in range(n)]
            room = mmap.mmap(-1, n * BLOCK)
            room.write(b''.join(new))
            pending_blocks = {first + i: [new[i]] for i in range(n)}
            check(call(os.pwritev, fd, [room], first * BLOCK) == n * BLOCK, 'short write')
            for i in range(n):
                blocks.versions[first + i].append(new[i])
                if how & os.O_DSYNC:
                    # The bytes are durable; times and names need not be.
                    del blocks.versions[first + i][:-1]
            pending_blocks = {}
        if random.randrange(3) == 0:
            call(os.fsync, fd)
            files.durable('fsync of the blocks')
            blocks.durable()
    finally:
        shut(fd)


def read_whole(root, name, f=call):
    fd = f(os.open, name, os.O_RDONLY, dir_fd=root)
    try:
        return f(os.pread, fd, 2 << 20, 0)
    finally:
        shut(fd)


def read():
    name = any_file()
    if name:
        data = read_whole(node.root, name)
        check(data == files.now[name], 'read of', name, 'on its own node', HERE, 'is', told(data), 'should be', told(files.now[name]))


def sync_directory():
    fd = opened(random.choice(DIRS), os.O_RDONLY | os.O_DIRECTORY)
    try:
        call(os.fsync, fd)
        files.durable('fsync of a directory')
    finally:
        shut(fd)


def ask_other():
    """Another node sees the same; and what it has seen is there whatever becomes of this one."""
    where = random.choice(OTHERS)
    name = any_file()
    if not name:
        return
    try:
        root = call(os.open, where, os.O_RDONLY | os.O_DIRECTORY)
    except (Lost, Unsure, FileNotFoundError):
        return
    try:
        try:
            call(os.statvfs, root)
            seen = None
            for _ in range(3):
                # By the size that the kernel knew a read may be let pass.
                seen = read_whole(root, name)
                if seen == files.now[name]:
                    break
                call(os.stat, name, dir_fd=root)
        except (Lost, Unsure):
            return
        check(seen == files.now[name], 'read of', name, 'on', where, 'is', told(seen), 'should be', told(files.now[name]))
        files.durable('seen by ' + where + ': ' + name, files.last_of(name))
        count('asked')
    finally:
        shut(root)


def look(crash):
    """All that is there of this worker's files on its own node."""
    seen = {}
    for d in DIRS:
        fd = opened(d, os.O_RDONLY | os.O_DIRECTORY)
        try:
            names = call(os.listdir, fd)
        finally:
            shut(fd)
        for n in names:
            if n.startswith(NAME + '-'):
                seen[d + '/' + n] = read_whole(node.root, d + '/' + n)
                tick()
    return seen, read_whole(node.root, Blocks.path)


def settle(crash):
    global pending, pending_blocks
    while True:
        try:
            if crash and node.root is not None and node.is_gone():
                node.close()
            if node.root is None:
                crash = True
                node.open()
            seen, seen_blocks = look(crash)
            break
        except Lost:
            crash = True
            node.close()
        except Unsure:
            time.sleep(0.2)
            crash = crash or node.is_gone()
    extra = files.explain(seen, pending, crash)
    if crash:
        counts['lost calls'] = counts.get('lost calls', 0) + max(0, -extra)
    blocks.explain(seen_blocks, pending_blocks, crash)
    pending, pending_blocks = None, {}
    count('crashes' if crash else 'failures')


def leave():
    """The driver wants the mount for itself: after a clean leave everything is there."""
    node.close()
    put(PAUSE + '.done', b'')
    idle()
    while os.path.exists(PAUSE):
        time.sleep(0.05)
    busy()
    os.unlink(PAUSE + '.done')
    node.open()
    files.durable('left')
    blocks.durable()
    seen, seen_blocks = look(False)
    files.explain(seen, None, False)
    blocks.explain(seen_blocks, {}, False)
    files.durable('leave')
    blocks.durable()
    count('leaves')


TABLE = [(make, 10), (append, 12), (cut, 3), (move, 5), (remove, 3), (overwrite, 8), (read, 10), (sync_directory, 1), (ask_other, 5)]
node.open()
os.mkdir(DIRS[1], dir_fd=node.root)
fd = opened(Blocks.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
call(os.pwrite, fd, bytes(BLOCKS * BLOCK), 0)
call(os.fsync, fd)
os.close(fd)
while True:
    try:
        if os.path.exists(PAUSE):
            leave()
        if os.path.exists(STOP):
            seen, seen_blocks = look(False)
            break
        number += 1
        tick()
        if len(files.now) > 60:
            remove()
        random.choices([t for t, _ in TABLE], [w for _, w in TABLE])[0]()
        time.sleep(0.002)
    except Lost:
        node.close()
        settle(True)
    except Unsure:
        settle(node.is_gone())
files.explain(seen, None, False)
blocks.explain(seen_blocks, {}, False)
node.close()
with open(RESULT, 'w') as f:
    json.dump({'files': {n: [len(d), hashlib.sha256(d).hexdigest()] for n, d in files.now.items()}, 'blocks': hashlib.sha256(b''.join(v[-1] for v in blocks.versions)).hexdigest(),
               'facts': '%d steps, %s' % (number, ' '.join('%s %d' % c for c in sorted(counts.items())))}, f)
