#!/usr/bin/env python3
"""One directory of many names, one sparse file, one file of many extents: what they take on the mount that made them and, cold, on another.

usage: large.py [--names N] [--sparse-gib N] [--extents N] [--only names,sparse,extents] ETCD FILESYSTEM MOUNT,NODE MOUNT,NODE

Prints one line for each step: seconds, and the heap and RSS of both daemons after it, MiB."""
import argparse
import os
import time

import many

BLOCK = 4096


class Steps:
    def __init__(self, nodes):
        self.nodes = nodes
        print(f"{'':44} {'s':>9} {'':>14} {'heap':>6} {'rss':>6} {'heap 2':>6} {'rss 2':>6}")

    def step(self, what, work, per=None):
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        rate = f'{per / took:.0f} /s' if per else ''
        sizes = []
        for n in self.nodes:
            sizes += [f"{n.ask('status')['memory']['heap_used_bytes'] / many.MIB:.0f}".rjust(6), f'{n.rss() / many.MIB:.0f}'.rjust(6)]
        print(f'{what:44} {took:9.4f} {rate:>14} ' + ' '.join(sizes) + (f'  {result}' if result is not None else ''), flush=True)
        return result


def first_page(path):
    with os.scandir(path) as entries:
        return next(entries).name is None or None


def names(o, s):
    here, there = (os.path.join(n.mount, 'large') for n in s.nodes)
    os.mkdir(here)
    n = o.names

    def create(begin, end):
        for i in range(begin, end):
            os.close(os.open(f'{here}/f{i:07}', os.O_CREAT | os.O_WRONLY | os.O_EXCL))

    def stat(path, begin, end):
        for i in range(begin, end):
            os.stat(f'{path}/f{i:07}')

    def missing(path, begin, end):
        for i in range(begin, end):
            if os.path.exists(f'{path}/absent{i}'):
                raise SystemExit('a name that is not there was found')

    def count(path):
        with os.scandir(path) as entries:
            return sum(1 for _ in entries)

    part = max(1, n // 10)
    s.step('create the first tenth', lambda: create(0, part), part)
    s.step('create up to nine tenths', lambda: create(part, n - part), n - 2 * part)
    s.step('create the last tenth', lambda: create(n - part, n), part)
    s.step('publish', lambda: s.nodes[0].ask('sync'))
    s.step('first page of a listing', lambda: first_page(here))
    s.step('list all', lambda: count(here), n)
    s.step('1,000 missing names', lambda: missing(here, 0, 1000), 1000)
    s.step('stat 1,000 names', lambda: stat(here, n // 2, n // 2 + 1000), 1000)
    s.step('other mount, cold: stat of one name', lambda: stat(there, 0, 1))
    s.step('other mount: first page', lambda: first_page(there))
    s.step('other mount: list all', lambda: count(there), n)
    s.step('other mount: stat 1,000 names', lambda: stat(there, 1000, 2000), 1000)
    s.step('back, one name created', lambda: create(n, n + 1))
    s.step('1,000 more', lambda: create(n + 1, n + 1001), 1000)

    def remove():
        for name in os.listdir(here):
            os.unlink(f'{here}/{name}')
        os.rmdir(here)
        s.nodes[0].ask('sync')
    s.step('remove all', remove, n)


def map_of(path):
    """Number of data pieces, by SEEK_DATA and SEEK_HOLE."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size, at, pieces = os.fstat(fd).st_size, 0, 0
        while at < size:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(fd, at, os.SEEK_HOLE)
            pieces += 1
        return pieces
    finally:
        os.close(fd)


def sparse(o, s):
    here, there = (os.path.join(n.mount, 'sparse') for n in s.nodes)
    size = o.sparse_gib << 30
    stride = 3 << 20
    count = size // stride

    def write():
        fd = os.open(here, os.O_CREAT | os.O_RDWR | os.O_EXCL)
        os.ftruncate(fd, size)
        for i in range(count):
            os.pwrite(fd, i.to_bytes(8, 'little') * 512, i * stride)
        os.fsync(fd)
        os.close(fd)

    def read(path):
        fd = os.open(path, os.O_RDONLY)
        for i in range(0, count, 7):
            if os.pread(fd, BLOCK, i * stride) != i.to_bytes(8, 'little') * 512 or any(os.pread(fd, BLOCK, i * stride + BLOCK)):
                raise SystemExit(f'{path}: wrong bytes at {i * stride}')
        os.close(fd)

    s.step(f'{o.sparse_gib} GiB, a block every 3 MiB: write', write, count)
    s.step('du', lambda: os.stat(here).st_blocks * 512 // BLOCK)
    s.step('pieces by SEEK_DATA and SEEK_HOLE', lambda: map_of(here), count)
    s.step('other mount, cold: open and 4 KiB', lambda: os.close(open_and_read(there)))
    s.step('other mount: every 7th block', lambda: read(there), 2 * (count // 7))
    s.step('other mount: pieces', lambda: map_of(there), count)
    s.step('truncate to half', lambda: os.truncate(here, size // 2))
    s.step('du', lambda: os.stat(here).st_blocks * 512 // BLOCK)
    s.step('remove, published', lambda: (os.unlink(here), s.nodes[0].ask('sync'))[1])


def open_and_read(path):
    fd = os.open(path, os.O_RDONLY)
    os.pread(fd, BLOCK, 0)
    return fd


def extents(o, s):
    here, there = (os.path.join(n.mount, 'extents') for n in s.nodes)
    n = o.extents
    data = [bytes([i]) * BLOCK for i in range(256)]

    def write():
        fd = os.open(here, os.O_CREAT | os.O_WRONLY | os.O_EXCL)
        for i in range(n):
            os.pwrite(fd, data[i % 251], 2 * i * BLOCK)
        os.fsync(fd)
        os.close(fd)

    def overwrite(step):
        fd = os.open(here, os.O_WRONLY)
        for i in range(0, n, step):
            os.pwrite(fd, data[i % 251], 2 * i * BLOCK)
        os.fsync(fd)
        os.close(fd)

    def scattered():
        fd = os.open(here, os.O_WRONLY)
        for k in range(1000):
            os.pwrite(fd, data[255], 2 * (k * 7919 % n) * BLOCK + BLOCK)
        os.fsync(fd)
        os.close(fd)

    def read(path):
        fd = os.open(path, os.O_RDONLY)
        for at in range(0, n, 128):
            piece = os.pread(fd, 256 * BLOCK, 2 * at * BLOCK)
            for i in range(at, min(n, at + 128)):
                if piece[2 * (i - at) * BLOCK] != i % 251 and piece[2 * (i - at) * BLOCK:][:BLOCK] != data[i % 251]:
                    raise SystemExit(f'{path}: wrong bytes in block {2 * i}')
        os.close(fd)

    s.step(f'{n} extents: write every second block', write, n)
    s.step('read', lambda: read(here), n)
    s.step('overwrite every 10th', lambda: overwrite(10), n // 10)
    s.step('other mount, cold: open and 4 KiB', lambda: os.close(open_and_read(there)))
    s.step('other mount: read', lambda: read(there), n)
    s.step('1,000 scattered holes filled', scattered, 1000)
    s.step('pieces by SEEK_DATA and SEEK_HOLE', lambda: map_of(here), n)
    s.step('truncate to half', lambda: os.truncate(here, n * BLOCK))
    s.step('remove, published', lambda: (os.unlink(here), s.nodes[0].ask('sync'))[1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--names', type=int, default=200_000)
    p.add_argument('--sparse-gib', type=int, default=100)
    p.add_argument('--extents', type=int, default=100_000)
    p.add_argument('--only', default='names,sparse,extents')
    p.add_argument('etcd')
    p.add_argument('filesystem')
    p.add_argument('nodes', nargs=2)
    o = p.parse_args()
    s = Steps([many.Node(o.filesystem, *n.rsplit(',', 1)) for n in o.nodes])
    for name in o.only.split(','):
        {'names': names, 'sparse': sparse, 'extents': extents}[name](o, s)


if __name__ == '__main__':
    main()
