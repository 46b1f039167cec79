#!/usr/bin/env python3
"""What nodes that join and leave cost those that stay.

usage: membership.py [--cycles N] [--rate MIB] [--seconds S] DEV MOUNT,NODE MOUNT,NODE MOUNT,NODE

DEV is the path of ./dev. On each node a program writes files of its own, MIB a second in pieces of 256 KiB with an fsync each MiB, and another makes, renames and removes small files.
First nobody comes or goes for S seconds; then the last node leaves and joins again N times, under its own load in between. For those that stay: the longest that one call took,
and the bytes that were written, in both phases. Pieces that are late are made up for as fast as possible, so a lost rate means that the time was really lost. The node that comes
and goes is started with nice 5, as its processors would be others'. At the end arenas and free space have to be as before; ends with 1 if they are not."""
import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

PIECE = 256 << 10


def dev(*words, nice=False):
    done = subprocess.run((['nice', '-n', '5'] if nice else []) + [args.dev, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f'{words}: {done.stderr}')
    return done.stdout


def stream(mount, rate, stop, results):
    """(time when it ended, how long it took, bytes) of each call."""
    calls = []
    n = 0
    data = os.urandom(PIECE)
    begin = time.monotonic()
    fd = None
    while not stop.is_set():
        due = begin + n * PIECE / (rate << 20)
        now = time.monotonic()
        if now < due:
            time.sleep(due - now)
        if n % 64 == 0:
            if fd is not None:
                os.close(fd)
            fd = os.open(f'{mount}/stream', os.O_WRONLY | os.O_CREAT, 0o644)
        at = time.monotonic()
        os.pwrite(fd, data, n % 256 * PIECE)
        if n % 4 == 3:
            os.fsync(fd)
        end = time.monotonic()
        calls.append((end, end - at, PIECE))
        n += 1
    os.close(fd)
    results.put(('stream', calls))


def names(mount, stop, results):
    calls = []
    n = 0
    while not stop.is_set():
        at = time.monotonic()
        path = f'{mount}/name{n % 50}'
        # Empty, so that the free blocks at the end don't depend on where it is.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
        os.rename(path, path + '.new')
        os.unlink(path + '.new')
        end = time.monotonic()
        calls.append((end, end - at, 0))
        n += 1
        time.sleep(0.01)
    results.put(('names', calls))


class Load:
    def __init__(self, mount, rate):
        os.makedirs(mount, exist_ok=True)
        self.stop = multiprocessing.Event()
        self.results = multiprocessing.Queue()
        self.children = [multiprocessing.Process(daemon=True, target=stream, args=(mount, rate, self.stop, self.results)),
                         multiprocessing.Process(daemon=True, target=names, args=(mount, self.stop, self.results))]
        for c in self.children:
            c.start()

    def end(self):
        self.stop.set()
        found = dict(self.results.get() for _ in self.children)
        for c in self.children:
            c.join()
        return found


def space(mount):
    """Once freed blocks are back, which takes the background some time."""
    last = None
    for _ in range(60):
        os.sync()
        now = os.statvfs(mount).f_bfree
        if now == last:
            return now
        last = now
        time.sleep(1)
    return last


def arenas():
    keys = dev('etcd', 'ctl', 'get', '--prefix', '--keys-only', 'etcfs/').split()
    return sorted(k.rpartition('/')[2].rpartition(':')[2] for k in keys if '/arena:' in k or '/free_arena:' in k)


def facts(calls, begin, end):
    inside = [c for c in calls if begin <= c[0] < end]
    return max(c[1] for c in inside), sum(c[2] for c in inside) / (end - begin) / (1 << 20), len(inside)


def main():
    mounts, nodes = zip(*(word.rsplit(',', 1) for word in args.mounts))
    stay = [f'{m}/stays-{n}' for m, n in zip(mounts[:-1], nodes[:-1])]
    goes, name = f'{mounts[-1]}/goes', nodes[-1]
    # All they will ever have: what was allocated once is freed at the end.
    loads = [Load(m, args.rate) for m in stay]
    guest = Load(goes, args.rate)
    time.sleep(5)
    calm = time.monotonic()
    time.sleep(args.seconds)
    guest.end()
    free, had = space(mounts[0]), arenas()
    begin = time.monotonic()
    leaves, joins = [], []
    for _ in range(args.cycles):
        at = time.monotonic()
        dev('umount', name, nice=True)
        leaves.append(time.monotonic() - at)
        time.sleep(0.5)
        at = time.monotonic()
        dev('mount', name, nice=True)
        joins.append(time.monotonic() - at)
        guest = Load(goes, args.rate)
        time.sleep(1.5)
        guest.end()
    end = time.monotonic()
    results = [load.end() for load in loads]
    for kind in 'stream', 'names':
        for node, result in zip(nodes, results):
            before = facts(result[kind], calm, calm + args.seconds)
            after = facts(result[kind], begin, end)
            rate = f', {before[1]:.2f} MiB/s before, {after[1]:.2f} meanwhile ({after[1] / before[1] - 1:+.1%})' if kind == 'stream' else ''
            print(f'{node} {kind}: longest call {before[0] * 1000:.0f} ms before, {after[0] * 1000:.0f} ms meanwhile{rate}; {after[2]} calls')
            slow = sorted((c[1] for c in result[kind] if begin <= c[0] < end), reverse=True)[:5]
            print(f'  slowest: {", ".join(f"{s * 1000:.0f}" for s in slow)} ms')
    for what, times in ('leave', leaves), ('join', joins):
        print(f'{what}: {len(times)} times, median {statistics.median(times):.2f} s, worst {max(times):.2f} s')
    fences = dev('etcd', 'ctl', 'get', '--prefix', '--keys-only', 'etcfs/').count('/fence_')
    now_free, now = space(mounts[0]), arenas()
    print(f'free blocks {free} before, {now_free} after; arenas {len(had)} before, {len(now)} after; {fences} records of fences')
    bad = now_free != free or now != had or fences
    sys.exit(1 if bad else 0)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--cycles', type=int, default=20)
parser.add_argument('--rate', type=int, default=10)
parser.add_argument('--seconds', type=int, default=30)
parser.add_argument('dev')
parser.add_argument('mounts', nargs=3, metavar='MOUNT,NODE')
args = parser.parse_args()
main()
