#!/usr/bin/env python3
"""How long a file is out of reach whose node died while it was writing it, and whether what the dead node had been told is durable is there.

usage: takeover.py [--runs N] [--how kill,cut] DEV MOUNT,NODE MOUNT,NODE

DEV is the path of ./dev. In each run a program overwrites blocks of a file on the second node and appends to another one, with an fsync each time. Then the node's daemon
(and what watches it) is killed, or all its links are cut, and the first node at once overwrites and appends to the same files, with an fsync. Time runs from the kill to that.
Afterwards the second node is brought back and both have to see the same bytes. Prints a line for each run and one for all of them; ends with 1 if a byte was wrong."""
import argparse
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import time

BLOCK = 4096
BLOCKS = 64


def block(text):
    return (text.encode() + b' ' * BLOCK)[:BLOCK]


def writer(directory, account, run):
    """On the node that will die; `account` says what it has been told is durable: a line `place value` each."""
    fd = os.open(directory + '/overwritten', os.O_RDWR | os.O_DIRECT)
    log = os.open(directory + '/appended', os.O_WRONLY | os.O_APPEND)
    page = mmap.mmap(-1, BLOCK)
    out = os.open(account, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    n = 0
    while True:
        n += 1
        where = random.randrange(BLOCKS)
        page[:] = block(f'{run} {n}')
        os.write(out, f'begin {where} {n}\n'.encode())
        os.pwrite(fd, page, where * BLOCK)
        os.fsync(fd)
        os.write(out, f'end {where} {n}\n'.encode())
        if n % 4 == 0:
            os.write(log, f'{run} {n}\n'.encode())
            os.fsync(log)
            os.write(out, f'appended {n}\n'.encode())


def dev(*words):
    return subprocess.run([args.dev, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


def is_there(mount):
    """Without touching it."""
    with open('/proc/self/mounts') as f:
        return any(line.split()[1] == mount for line in f)


def die(how, pid, name):
    if how == 'cut':
        dev('cut', name)
    else:
        os.kill(pid, signal.SIGKILL)


def come_back(how, mount, name, pid):
    if how == 'cut':
        dev('join', name)
    # A node that was fenced ends by itself; one that was not goes on.
    end = time.monotonic() + 30
    while os.path.exists(f'/proc/{pid}') and time.monotonic() < end:
        try:
            os.listdir(mount)
            if how == 'cut':
                time.sleep(3)
                if os.path.exists(f'/proc/{pid}'):
                    return
        except OSError:
            pass
        time.sleep(0.2)
    dev('mount', name)


def read_account(path):
    durable, begun, appended = {}, {}, []
    with open(path) as f:
        for line in f.read().split('\n')[:-1]:
            word, *numbers = line.split()
            if word == 'begin':
                begun[int(numbers[0])] = int(numbers[1])
            elif word == 'end':
                durable[int(numbers[0])] = int(numbers[1])
                begun.pop(int(numbers[0]), None)
            else:
                appended.append(int(numbers[0]))
    return durable, begun, appended


def one(run, how, first, second, name):
    directory = f'{first}/takeover'
    os.makedirs(directory, exist_ok=True)
    for file in ('overwritten', 'appended'):
        with open(f'{directory}/{file}', 'wb') as f:
            if file == 'overwritten':
                f.write(block('new') * BLOCKS)
            os.fsync(f.fileno())
    pid = int(dev('pid', name))
    account = f'/dev/shm/etcfs-takeover-{os.getpid()}'
    if os.path.exists(account):
        os.unlink(account)
    child = os.fork()
    if child == 0:
        try:
            writer(f'{second}/takeover', account, run)
        except OSError:
            pass
        os._exit(0)
    wrong = []
    try:
        time.sleep(1.5 + random.random())
        begin = time.monotonic()
        die(how, pid, name)
        dead = time.monotonic()
        fd = os.open(f'{directory}/overwritten', os.O_RDWR)
        seen = os.pread(fd, BLOCK * BLOCKS, 0)
        os.pwrite(fd, block(f'survivor {run}') * 2, 0)
        os.fsync(fd)
        took = time.monotonic() - dead
        log = os.open(f'{directory}/appended', os.O_RDWR | os.O_APPEND)
        lines = os.pread(log, 1 << 20, 0).decode().split('\n')[:-1]
        os.write(log, f'survivor {run}\n'.encode())
        os.fsync(log)
        all_took = time.monotonic() - dead
        durable, begun, appended = read_account(account)
        for where, n in durable.items():
            got = seen[where * BLOCK:(where + 1) * BLOCK].rstrip()
            allowed = [f'{run} {n}'.encode()] + ([f'{run} {begun[where]}'.encode()] if where in begun else [])
            if got not in allowed:
                wrong.append(f'block {where} is {got!r}, not {allowed}')
        missing = [n for n in appended if f'{run} {n}' not in lines]
        if missing:
            wrong.append(f'appended lines {missing} are missing')
        expected = seen[2 * BLOCK:]
        os.close(fd)
        os.close(log)
    finally:
        os.kill(child, signal.SIGKILL)
        come_back(how, second, name, pid)
        os.waitpid(child, 0)
        os.unlink(account)
    for mount in (first, second):
        with open(f'{mount}/takeover/overwritten', 'rb') as f:
            if f.read() != block(f'survivor {run}') * 2 + expected:
                wrong.append(f'{mount}: the survivor\'s bytes are not all there')
        with open(f'{mount}/takeover/appended', 'rb') as f:
            if f.read().decode().split('\n')[:-1] != lines + [f'survivor {run}']:
                wrong.append(f'{mount}: the lines are others')
    print(f'{how} {run}: {took:.2f} s, both files {all_took:.2f} s ({dead - begin:.2f} s to do it), {len(durable)} blocks and {len(appended)} lines were durable'
          + ''.join('; ' + w for w in wrong), flush=True)
    return took, all_took, wrong


def main():
    failed = 0
    (first, _), (second, name) = (word.rsplit(',', 1) for word in args.mounts)
    if not is_there(first) or not is_there(second):
        sys.exit('both nodes have to be mounted')
    for how in args.how.split(','):
        results = []
        for run in range(1, args.runs + 1):
            results.append(one(run, how, first, second, name))
            # A node that is back is left alone for as long as a session has.
            time.sleep(5)
        failed += sum(bool(wrong) for _, _, wrong in results)
        for what, i in (('first file', 0), ('both files', 1)):
            times = sorted(r[i] for r in results)
            print(f'{how}, {what}: {len(times)} runs, median {statistics.median(times):.2f} s, worst {times[-1]:.2f} s, least {times[0]:.2f} s', flush=True)
        print(f'{how}: {sum(bool(r[2]) for r in results)} runs with wrong bytes', flush=True)
    sys.exit(1 if failed else 0)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--runs', type=int, default=20)
parser.add_argument('--how', default='kill,cut')
parser.add_argument('dev')
parser.add_argument('mounts', nargs=2, metavar='MOUNT,NODE')
args = parser.parse_args()
if not set(args.how.split(',')) <= {'kill', 'cut'}:
    parser.error(f"--how '{args.how}': kill, cut or both")
main()
