#!/usr/bin/env python3
"""Makes many small files through one mount, lists them through another, removes them, and watches what grows meanwhile.

usage: many.py [--bytes N] [--per-directory N] [--every SECONDS] FILES ETCD FILESYSTEM MOUNT,NODE MOUNT,NODE

ETCD is one endpoint (http://HOST:PORT). Prints a table with a row for every sample, a plot for each phase, and final figures. Sizes are MiB.
`rss` and `heap` are of the first node, `rss 2` of the second; `db` is etcd's file, `in use` what of it is not free pages."""
import argparse
import base64
import json
import os
import socket
import sys
import threading
import time
import urllib.request

MIB = 1 << 20
COLUMNS = ('phase', 's', 'files', 'files/s', 'rss', 'heap', 'rss 2', 'heap 2', 'db', 'in use', 'tokens', 'tokens 2', 'vnodes', 'vnodes 2', 'cached', 'cached 2')
WIDTHS = (7, 6, 8, 8, 6, 6, 6, 6, 7, 7, 7, 8, 8, 8, 7, 8)


class Node:
    """One daemon, asked through its control socket."""

    def __init__(self, filesystem, mount, node):
        self.mount = mount
        self.path = f'/run/etcfs/{filesystem}-{node}.sock'
        self.pid = self.ask('status')['pid']

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(self.path)
            s.sendall((command + '\n').encode())
            answer = b''
            while not answer.endswith(b'\n'):
                part = s.recv(65536)
                if not part:
                    break
                answer += part
        word, _, text = answer.decode().strip().partition(' ')
        if word != 'ok':
            raise RuntimeError(f'{self.path}: {text}')
        return json.loads(text) if text else None

    def rss(self):
        with open(f'/proc/{self.pid}/status') as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS:'))

    def cpu_s(self):
        with open(f'/proc/{self.pid}/stat') as f:
            fields = f.read().rpartition(') ')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Etcd:
    def __init__(self, endpoint):
        self.endpoint = endpoint.rstrip('/')

    def sizes(self):
        """Bytes of the file, and of it in use."""
        found = {}
        with urllib.request.urlopen(self.endpoint + '/metrics', timeout=30) as r:
            for line in r.read().decode().splitlines():
                if line.startswith('etcd_mvcc_db_total_size_in'):
                    name, value = line.split()
                    found[name] = float(value)
        return found['etcd_mvcc_db_total_size_in_bytes'], found['etcd_mvcc_db_total_size_in_use_in_bytes']

    def post(self, path, body):
        request = urllib.request.Request(self.endpoint + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=120) as r:
            return json.load(r)

    def compact(self):
        """Drops all history."""
        revision = self.post('/v3/kv/range', {'key': base64.b64encode(b'x').decode()})['header']['revision']
        try:
            self.post('/v3/kv/compaction', {'revision': revision, 'physical': True})
        except urllib.error.HTTPError as e:
            if b'compacted' not in e.read():
                raise


class Watcher:
    """Takes a sample every few seconds while a phase runs."""

    def __init__(self, nodes, etcd, every):
        self.nodes, self.etcd, self.every = nodes, etcd, every
        self.done = 0
        self.samples = {}
        print(' '.join(c.rjust(w) for c, w in zip(COLUMNS, WIDTHS)))

    def phase(self, name, work):
        self.done = 0
        start = time.monotonic()
        over = threading.Event()
        rows = self.samples[name] = []

        def sample(last):
            before = rows[-1] if rows else (0, 0)
            at = time.monotonic() - start
            rate = (self.done - before[1]) / max(at - before[0], 1e-9)
            if not (last and rows and at - before[0] < self.every / 2):
                row = (at, self.done, rate, *self.state())
                rows.append(row)
                self.print(name, row)

        def loop():
            while not over.wait(self.every):
                sample(False)

        sampler = threading.Thread(target=loop)
        sampler.start()
        try:
            work(self)
        finally:
            took = time.monotonic() - start
            over.set()
            sampler.join()
        sample(True)
        return took

    def state(self):
        a, b = self.nodes
        s, t = a.ask('status'), b.ask('status')
        size, in_use = self.etcd.sizes()
        return (a.rss() / MIB, s['memory']['heap_used_bytes'] / MIB, b.rss() / MIB, t['memory']['heap_used_bytes'] / MIB, size / MIB, in_use / MIB,
                s['cluster']['tokens_held'], t['cluster']['tokens_held'], s['cluster']['vnodes'], t['cluster']['vnodes'],
                s['cluster'].get('cached_bytes', 0) / MIB, t['cluster'].get('cached_bytes', 0) / MIB)

    @staticmethod
    def print(name, row):
        cells = [name] + [f'{v:.1f}' if i == 0 else f'{v:.0f}' for i, v in enumerate(row)]
        print(' '.join(c.rjust(w) for c, w in zip(cells, WIDTHS)), flush=True)


def plot(title, rows, index, height=8, width=72):
    values = [r[index] for r in rows]
    if len(values) > width:
        values = [max(values[i * len(values) // width:(i + 1) * len(values) // width]) for i in range(width)]
    top = max(max(values), 1e-9)
    print(f'\n{title}, most {top:.0f}')
    for level in range(height, 0, -1):
        print('  |' + ''.join('#' if v >= top * (level - 0.5) / height else ' ' for v in values))
    print('  +' + '-' * len(values))


def steady(rows):
    """Rate of the last fifth against that of the second fifth: the first one warms up."""
    n = len(rows)
    if n < 5:
        return None

    def rate(a, b):
        begin = rows[a - 1] if a > 0 else (0, 0)
        return (rows[b - 1][1] - begin[1]) / (rows[b - 1][0] - begin[0])
    return rate(n - n // 5, n) / rate(n // 5, 2 * (n // 5))


def paths(root, files, per):
    for d in range((files + per - 1) // per):
        yield os.path.join(root, f'd{d:06}'), min(per, files - d * per)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bytes', type=int, default=1)
    p.add_argument('--per-directory', type=int, default=100)
    p.add_argument('--every', type=float, default=5)
    p.add_argument('files', type=int)
    p.add_argument('etcd')
    p.add_argument('filesystem')
    p.add_argument('nodes', nargs=2)
    o = p.parse_args()
    nodes = [Node(o.filesystem, *n.rsplit(',', 1)) for n in o.nodes]
    etcd = Etcd(o.etcd)
    etcd.compact()
    empty = etcd.sizes()[1]
    data = b'x' * o.bytes
    here, there = (os.path.join(n.mount, 'many') for n in nodes)
    os.mkdir(here)
    watch = Watcher(nodes, etcd, o.every)

    def make(w):
        for directory, count in paths(here, o.files, o.per_directory):
            os.mkdir(directory)
            for i in range(count):
                fd = os.open(f'{directory}/f{i:06}', os.O_CREAT | os.O_WRONLY | os.O_EXCL)
                if data:
                    os.write(fd, data)
                os.close(fd)
                w.done += 1
        nodes[0].ask('sync')

    def list_cold(w):
        for directory, count in paths(there, o.files, o.per_directory):
            with os.scandir(directory) as found:
                seen = sum(e.stat(follow_symlinks=False).st_size == len(data) for e in found)
            if seen != count:
                sys.exit(f'{directory}: {seen} files of {count}')
            w.done += seen

    def remove(w):
        for directory, count in paths(here, o.files, o.per_directory):
            for i in range(count):
                os.unlink(f'{directory}/f{i:06}')
                w.done += 1
            os.rmdir(directory)
        os.rmdir(here)
        nodes[0].ask('sync')

    times = {'make': watch.phase('make', make)}
    etcd.compact()
    full = etcd.sizes()[1]
    times['list'] = watch.phase('list', list_cold)
    times['remove'] = watch.phase('remove', remove)
    time.sleep(3)
    etcd.compact()
    left = etcd.sizes()[1]
    end = watch.state()

    for name, rows in watch.samples.items():
        plot(f'{name}: files/s', rows, 2)
    everything = [r for rows in watch.samples.values() for r in rows]
    plot('all phases: RSS of the first node, MiB', everything, 3)
    plot('all phases: heap of the first node, MiB', everything, 4)
    print()
    for name, took in times.items():
        ratio = steady(watch.samples[name])
        print(f'{name}: {o.files} files in {took:.1f} s, {o.files / took:.0f} files/s' + ('' if ratio is None else f'; at the end {ratio:.2f} of the rate at the start'))
    print(f'etcd: {(full - empty) / o.files:.0f} bytes a file; {(left - empty) / MIB:.1f} MiB more in use after the removal than before')
    print(f'most: RSS {max(r[3] for r in everything):.0f} and {max(r[5] for r in everything):.0f} MiB, heap {max(r[4] for r in everything):.0f} and {max(r[6] for r in everything):.0f} MiB')
    print(f'at the end: RSS {end[0]:.0f} and {end[2]:.0f} MiB, {end[6]} and {end[7]} tokens, {end[8]} and {end[9]} vnodes')
    print(f'CPU of the daemons: {nodes[0].cpu_s():.0f} and {nodes[1].cpu_s():.0f} s')


if __name__ == '__main__':
    main()
