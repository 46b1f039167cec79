#!/usr/bin/env python3
"""Times one filesystem through one or more of its mounts and prints one JSON object.

usage: scenarios.py [--only NAME,NAME] [--files N] [--mib N] [--seconds S] LABEL MOUNT [MOUNT...]

Each scenario works in a directory of its own, which is made before the clock starts and removed after it stopped.
fio has to be installed. With ETCFS_BENCH_ETCD=ENDPOINTS the Raft commits of etcd are counted around `unpack`."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

SCENARIOS = {}


def scenario(run):
    SCENARIOS[run.__name__] = run
    return run


def clock(work, *args):
    start = time.perf_counter()
    work(*args)
    return time.perf_counter() - start


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def forget_caches():
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('3')


def fsync_directory(path):
    """sync(2) does not reach a FUSE daemon; fsync of a directory does, and ends all that was done before it."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path, data, flags=0, sync=False):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    try:
        os.write(fd, data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def commits():
    """Raft entries that etcd has committed, or None without an etcd."""
    endpoints = os.environ.get('ETCFS_BENCH_ETCD')
    if not endpoints:
        return None
    with urllib.request.urlopen(endpoints.split(',')[0] + '/metrics', timeout=5) as reply:
        for line in reply.read().decode().splitlines():
            if line.startswith('etcd_server_proposals_committed_total '):
                return int(float(line.split()[1]))
    return None


def fio(path, **options):
    job = {'name': 'job', 'filename': path, 'ioengine': 'psync', 'thread': 1, 'fallocate': 'none', 'size': f'{ARGS.mib}M', **options}
    command = ['fio', '--output-format=json'] + [f'--{key}={value}' for key, value in job.items()]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out[out.index('{'):])['jobs'][0]


def fio_for_a_while(path, mode, **options):
    job = fio(path, rw=mode, bs='4k', time_based=1, runtime=ARGS.seconds, **options)
    return job['read' if mode.endswith('read') else 'write']


class Place:
    """One scenario's directory, seen through every mount."""

    def __init__(self, name):
        self.parts = [os.path.join(mount, ROOT, name) for mount in ARGS.mounts]
        self.here = self.parts[0]
        self.there = self.parts[-1]
        os.makedirs(self.here)

    def file(self, name):
        return os.path.join(self.here, name)

    def filled(self, name='data'):
        run('dd', 'if=/dev/urandom', f'of={self.file(name)}', 'bs=1M', f'count={ARGS.mib}', 'conv=fsync', 'status=none')
        return self.file(name)


# --- many files ------------------------------------------------------------------------------------------------------

def archive(count):
    """A tar file of small files outside of the filesystem under test, the same in each run."""
    path = os.path.join(SCRATCH, 'small-files.tar')
    source = os.path.join(SCRATCH, 'source')
    rng = random.Random(25)
    for n in range(count):
        directory = os.path.join(source, f'dir{n // 100:04d}')
        os.makedirs(directory, exist_ok=True)
        write_file(os.path.join(directory, f'file{n:06d}'), rng.randbytes(2048))
    with tarfile.open(path, 'w') as tar:
        tar.add(source, arcname='.')
    shutil.rmtree(source)
    return path


@scenario
def unpack(place, result):
    """tar x of N files of 2 KiB, 100 a directory, until durable; then find and du, cold and warm; then rm -r."""
    tar = archive(ARGS.files)
    forget_caches()
    before = commits()

    def work():
        run('tar', 'xf', tar, '-C', place.here)
        fsync_directory(place.here)

    seconds = clock(work)
    after = commits()
    result['unpack_files_per_s'] = round(ARGS.files / seconds)
    if before is not None and after is not None:
        result['unpack_commits_per_file'] = round((after - before) / ARGS.files, 3)
    for where, path in [('', place.here)] + ([('_other_node', place.there)] if len(ARGS.mounts) > 1 else []):
        forget_caches()
        result[f'find{where}_cold_s'] = round(clock(run, 'find', path, '-type', 'f'), 3)
        result[f'find{where}_warm_s'] = round(clock(run, 'find', path, '-type', 'f'), 3)
        forget_caches()
        result[f'du{where}_cold_s'] = round(clock(run, 'du', '-s', path), 3)
        result[f'du{where}_warm_s'] = round(clock(run, 'du', '-s', path), 3)

    def remove():
        run('rm', '-r', os.path.join(place.here))
        fsync_directory(os.path.dirname(place.here))

    result['remove_files_per_s'] = round(ARGS.files / clock(remove))


@scenario
def temporary(place, result):
    """Create, write 4 KiB, close, unlink, one file after the other."""
    data, count = os.urandom(4096), 1500

    def work():
        for n in range(count):
            write_file(place.file(f't{n}'), data)
            os.unlink(place.file(f't{n}'))

    result['temporary_files_per_s'] = round(count / clock(work))


@scenario
def durable(place, result):
    """Create, write 4 KiB, fsync, close; 1 and 4 threads."""
    data = os.urandom(4096)
    for threads in (1, 4):
        each = 400 // threads

        def work(t):
            for n in range(each):
                write_file(place.file(f'{threads}-{t}-{n}'), data, sync=True)

        def together():
            workers = [threading.Thread(target=work, args=(t,)) for t in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        result[f'durable_{threads}_files_per_s'] = round(threads * each / clock(together))


@scenario
def missing(place, result):
    """stat of names that don't exist, asked again and again."""
    names = [place.file(f'none{n}') for n in range(200)]

    def sweep():
        for name in names:
            assert not os.path.lexists(name)

    forget_caches()
    result['missing_cold_us'] = round(clock(sweep) / len(names) * 1e6, 1)
    result['missing_warm_us'] = round(clock(lambda: [sweep() for _ in range(50)]) / len(names) / 50 * 1e6, 1)


def on_every_mount(work):
    """work(index, mount's path) in one process a mount, all at once; seconds for all."""
    def together(paths):
        children = []
        for index, path in enumerate(paths):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    work(index, path)
                    status = 0
                except OSError as error:
                    print(error, file=sys.stderr)
                finally:
                    os._exit(status)
            children.append(pid)
        if any([os.waitpid(pid, 0)[1] for pid in children]):
            raise RuntimeError('a worker failed')
    return together


@scenario
def directories(place, result):
    """Create, stat, unlink 400 empty files a mount: each in a directory of its own, then all in one."""
    count = 400

    def cycle(directory, tag):
        for n in range(count):
            os.close(os.open(f'{directory}/{tag}-{n}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        for n in range(count):
            os.stat(f'{directory}/{tag}-{n}')
        for n in range(count):
            os.unlink(f'{directory}/{tag}-{n}')

    for index in range(len(place.parts)):
        os.mkdir(place.file(f'own{index}'))
    total = 3 * count * len(place.parts)
    own = clock(on_every_mount(lambda i, path: cycle(f'{path}/own{i}', i)), place.parts)
    result['own_directory_ops_per_s'] = round(total / own)
    shared = clock(on_every_mount(lambda i, path: cycle(path, i)), place.parts)
    result['shared_directory_ops_per_s'] = round(total / shared)


# --- bytes -----------------------------------------------------------------------------------------------------------

@scenario
def stream(place, result):
    """1 MiB O_DIRECT write of a new file, then read."""
    path = place.file('data')
    result['stream_write_mib_s'] = round(fio(path, rw='write', bs='1M', direct=1, end_fsync=1)['write']['bw'] / 1024)
    forget_caches()
    result['stream_read_mib_s'] = round(fio(path, rw='read', bs='1M', direct=1)['read']['bw'] / 1024)


@scenario
def blocks(place, result):
    """4 KiB random overwrite and read, O_DIRECT, one at a time; then overwrite with O_DSYNC."""
    path = place.filled()
    forget_caches()
    for mode in ('randwrite', 'randread'):
        job = fio_for_a_while(path, mode, direct=1)
        result[f'{mode}_iops'] = round(job['iops'])
        result[f'{mode}_p99_us'] = round(job['clat_ns']['percentile']['99.000000'] / 1000)
    job = fio_for_a_while(path, 'randwrite', sync='dsync')
    result['dsync_iops'] = round(job['iops'])
    result['dsync_p99_us'] = round(job['clat_ns']['percentile']['99.000000'] / 1000)


@scenario
def buffered(place, result):
    """4 KiB buffered sequential write and one fsync; then 4 KiB random reads from the page cache."""
    path, data = place.file('data'), os.urandom(4096)

    def work():
        with open(path, 'wb', 0) as f:
            for _ in range(ARGS.mib * 256):
                f.write(data)
            os.fsync(f.fileno())

    result['buffered_write_mib_s'] = round(ARGS.mib / clock(work))
    run('cat', path)
    result['cached_read_iops'] = round(fio_for_a_while(path, 'randread', invalidate=0)['iops'])


@scenario
def handover(place, result):
    """The first mount writes a file, the last one reads it; then both append a line in turn."""
    if len(ARGS.mounts) < 2:
        return
    place.filled()
    forget_caches()
    start = time.perf_counter()
    with open(os.path.join(place.there, 'data'), 'rb', 0) as f:
        f.read(4096)
        result['handover_first_byte_ms'] = round((time.perf_counter() - start) * 1000, 2)
        start = time.perf_counter()
        while f.read(1 << 20):
            pass
    result['handover_read_mib_s'] = round(ARGS.mib / (time.perf_counter() - start))
    turns = 50

    def work():
        for n in range(turns):
            for path in (place.here, place.there):
                write_file(os.path.join(path, 'log'), b'one line\n', os.O_APPEND)

    result['handover_turn_ms'] = round(clock(work) / turns / 2 * 1000, 2)


def main():
    result = {'label': ARGS.label, 'files': ARGS.files, 'mib': ARGS.mib, 'mounts': len(ARGS.mounts)}
    for name in ARGS.only.split(','):
        try:
            SCENARIOS[name](Place(name), result)
        except (OSError, subprocess.CalledProcessError, RuntimeError, AssertionError) as error:
            result[f'{name}_error'] = f'{type(error).__name__}: {error}'[:200]
        shutil.rmtree(os.path.join(ARGS.mounts[0], ROOT, name), ignore_errors=True)
    os.rmdir(os.path.join(ARGS.mounts[0], ROOT))
    print(json.dumps(result))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(
        description=__doc__.split('\n', maxsplit=1)[0], formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='scenarios:\n' + '\n'.join(f'  {name:12}{work.__doc__}' for name, work in SCENARIOS.items()))
    parser.add_argument('--only', default=','.join(SCENARIOS), help='comma-separated names of scenarios')
    parser.add_argument('--files', type=int, default=5000)
    parser.add_argument('--mib', type=int, default=256)
    parser.add_argument('--seconds', type=int, default=5)
    parser.add_argument('label')
    parser.add_argument('mounts', nargs='+', metavar='MOUNT')
    ARGS = parser.parse_args()
    for unknown in set(ARGS.only.split(',')) - set(SCENARIOS):
        parser.error(f"unknown scenario '{unknown}': {', '.join(SCENARIOS)}")
    ROOT = f'bench-{os.getpid()}'
    with tempfile.TemporaryDirectory() as SCRATCH:
        main()
