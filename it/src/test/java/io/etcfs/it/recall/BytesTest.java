package io.etcfs.it.recall;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import org.junit.jupiter.api.Test;

/** Two nodes read and write the same files, with the kernel's page locks in between. */
@OnCluster
class BytesTest {
    @Test
    void aReaderSeesWholeOldOrNewBlocksWhileTheOtherNodeOverwrites(DevCluster cluster) {
        Scene scene = new Scene(cluster, "blocks");
        scene.alone("put(HERE + '/f', bytes(8 << 20))\n");
        scene.add("writer", 1, """
                fd = os.open(HERE + '/f', os.O_RDWR)
                for n in until(4):
                    version = n + 1
                    size = random.choice([1, 4, 16, 64])
                    first = random.randrange(0, 2048 - size)
                    data = b''.join(struct.pack('<QQ', version, b) * 256 for b in range(first, first + size))
                    check(os.pwrite(fd, data, first * BLOCK) == len(data))
                    if n % 16 == 0:
                        time.sleep(0.02)
                check(n > 20, 'only', n, 'writes')
                """);
        for (int node = 1; node <= 2; node++) {
            scene.add("reader", node, """
                    fd = os.open(HERE + '/f', os.O_RDONLY)
                    seen = [0] * 2048
                    for n in until(4):
                        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                        for at in range(0, 2048, 256):
                            data = os.pread(fd, 1 << 20, at * BLOCK)
                            tick()
                            check(len(data) == 1 << 20, 'short read')
                            for b in range(at, at + 256):
                                block = data[(b - at) * BLOCK:(b - at + 1) * BLOCK]
                                version, number = struct.unpack_from('<QQ', block)
                                check(number == b or version == 0, 'block', b, 'is block', number)
                                if ARGS[0] == '1':
                                    # On the writer's own node a read can meet a page that is just being written, as on any local filesystem, and
                                    # the page can be dropped and read again before the write has got through.
                                    continue
                                check(block == block[:16] * 256, 'block', b, 'is of more than one version')
                                check(version >= seen[b], 'block', b, 'went back from version', seen[b], 'to', version)
                                seen[b] = version
                    """, node);
        }
        scene.play(25);
    }

    @Test
    void eachByteIsWhatItsOnlyWriterWroteLastThoughBothNodesWriteInTheSamePages(DevCluster cluster) {
        Scene scene = new Scene(cluster, "partial");
        scene.alone("put(HERE + '/f', bytes(8 * BLOCK))\n");
        for (int node = 1; node <= 2; node++) {
            scene.add("writer", node, """
                    # 100 byte stripes by turns: in one page, and over the border between two.
                    me = int(ARGS[0])
                    fd = os.open(HERE + '/f', os.O_RDWR)
                    mine = [k for k in range(8 * BLOCK // 100) if k % 2 == me - 1]
                    last = {k: 0 for k in mine}
                    for n in until(4):
                        k = random.choice(mine)
                        last[k] = n % 255 + 1
                        check(os.pwrite(fd, bytes([last[k]]) * 100, k * 100) == 100)
                        tick()
                        j = random.choice(mine)
                        got = os.pread(fd, 100, j * 100)
                        check(got == bytes([last[j]]) * 100, 'own stripe', j, 'is', got, 'not', last[j])
                    check(n > 10, 'only', n, 'writes')
                    put(HERE + '/last' + ARGS[0], repr(last).encode())
                    """, node);
        }
        scene.play(25);
        scene.alone("""
                last = {**eval(get(HERE + '/last1')), **eval(get(HERE + '/last2'))}
                for d in HERE, THERE:
                    data = get(d + '/f')
                    check(len(data) == 8 * BLOCK)
                    for k, value in last.items():
                        check(data[k * 100:k * 100 + 100] == bytes([value]) * 100, d, 'stripe', k, 'of node', 1 + k % 2, 'is', data[k * 100:k * 100 + 100], 'not', value)
                """);
    }

    @Test
    void bothNodesTruncateWithDirtyMappedPages(DevCluster cluster) {
        Scene scene = new Scene(cluster, "truncate");
        scene.alone("put(HERE + '/f', bytes(64 * BLOCK))\n");
        for (int node = 1; node <= 2; node++) {
            scene.add("truncater", node, """
                    me = int(ARGS[0])
                    fd = os.open(HERE + '/f', os.O_RDWR)
                    # Pages 0 to 7 are always inside.
                    shared = mmap.mmap(fd, 8 * BLOCK)
                    for n in until(4):
                        value = n % 255 + 1
                        for page in range(me - 1, 8, 2):
                            shared[page * BLOCK:page * BLOCK + 64] = bytes([value]) * 64
                            tick()
                        interrupted = refused(lambda: os.ftruncate(fd, random.randrange(16 * BLOCK, 64 * BLOCK)), errno.EINTR)
                        if n % 4 == 0:
                            shared.flush()
                    shared.flush()
                    tick()
                    check(n > 3, 'only', n, 'rounds')
                    put(HERE + '/last' + ARGS[0], bytes([value]))
                    """, node);
        }
        scene.play(30);
        scene.alone("""
                last = get(HERE + '/last1') + get(HERE + '/last2')
                for d in HERE, THERE:
                    data = get(d + '/f')
                    check(len(data) == os.stat(d + '/f').st_size >= 16 * BLOCK, 'size')
                    for page in range(8):
                        got = data[page * BLOCK:page * BLOCK + 64]
                        check(got == bytes([last[page % 2]]) * 64, d, 'page', page, 'is', got, 'not', last[page % 2])
                """);
    }

    @Test
    void pagesOfTwoDirtySharedMappingsSurvive(DevCluster cluster) {
        Scene scene = new Scene(cluster, "mappings");
        scene.alone("put(HERE + '/f', bytes(16 * BLOCK))\n");
        for (int node = 1; node <= 2; node++) {
            scene.add("mapper", node, """
                    me = int(ARGS[0])
                    fd = os.open(HERE + '/f', os.O_RDWR)
                    shared = mmap.mmap(fd, 16 * BLOCK)
                    last = {}
                    for n in until(4):
                        page = random.randrange(me - 1, 16, 2)
                        last[page] = n % 255 + 1
                        shared[page * BLOCK:(page + 1) * BLOCK] = bytes([last[page]]) * BLOCK
                        tick()
                        for p, value in last.items():
                            check(shared[p * BLOCK + 7] == value == shared[p * BLOCK + 4000], 'own page', p, 'is', shared[p * BLOCK + 7], 'not', value)
                            tick()
                        if n % 5 == 0:
                            shared.flush()
                    shared.flush()
                    tick()
                    check(n > 10, 'only', n, 'rounds')
                    put(HERE + '/last' + ARGS[0], repr(last).encode())
                    """, node);
        }
        scene.play(30);
        scene.alone("""
                last = {**eval(get(HERE + '/last1')), **eval(get(HERE + '/last2'))}
                for d in HERE, THERE:
                    data = get(d + '/f')
                    for page, value in last.items():
                        check(data[page * BLOCK:(page + 1) * BLOCK] == bytes([value]) * BLOCK, d, 'page', page, 'is', data[page * BLOCK], 'not', value)
                """);
    }

    @Test
    void theLastWriterWinsAPageThatBothNodesMap(DevCluster cluster) {
        Scene scene = new Scene(cluster, "lastwriter");
        scene.alone("""
                put(HERE + '/f', bytes(BLOCK))
                maps = []
                for d in HERE, THERE:
                    fd = os.open(d + '/f', os.O_RDWR)
                    maps.append(mmap.mmap(fd, BLOCK))
                for n in rounds(40, 4):
                    writer, other = maps[n % 2], maps[1 - n % 2]
                    writer[:] = bytes([n + 1]) * BLOCK
                    tick()
                    writer.flush()
                    tick()
                    check(other[:] == bytes([n + 1]) * BLOCK, 'the other mapping has', other[0], other[4000], 'after', n + 1, 'was synced')
                """);
    }

    @Test
    void moreReadersThanTheKernelSendsInTheBackground(DevCluster cluster) {
        Scene scene = new Scene(cluster, "readers");
        scene.alone("""
                for d in range(4):
                    os.mkdir(HERE + '/d%d' % d)
                    for f in range(4):
                        put(HERE + '/d%d/f%d' % (d, f), b''.join(struct.pack('<QQ', 0, b) * 256 for b in range(64)))
                """);
        scene.add("readers", 1, """
                def work(i):
                    random.seed(i)
                    fds = [os.open(HERE + '/d%d/f%d' % (d, i // 4 % 4), os.O_RDONLY) for d in range(4)]
                    tick()
                    for n in until(4):
                        fd = fds[(i + n) % 4]
                        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                        first = random.randrange(0, 48)
                        data = os.pread(fd, 16 * BLOCK, first * BLOCK)
                        check(len(data) == 16 * BLOCK)
                        for k in range(16):
                            block = data[k * BLOCK:(k + 1) * BLOCK]
                            check(block == block[:16] * 256, 'block is of two versions')
                            check(struct.unpack_from('<Q', block, 8)[0] == first + k, 'block is another one')
                forked(200, work)
                """);
        scene.add("writer", 2, """
                fds = [os.open(HERE + '/d%d/f%d' % (d, f), os.O_RDWR) for d in range(4) for f in range(4)]
                for n in until(4):
                    b = n * 7 % 64
                    os.pwrite(fds[n % 16], struct.pack('<QQ', n, b) * 256, b * BLOCK)
                check(n > 3, 'only', n, 'writes')
                """);
        scene.play(40);
    }

    @Test
    void readersThatNeverPauseDoNotKeepAWriterOfTheOtherNodeOut(DevCluster cluster) {
        Scene scene = new Scene(cluster, "crowd");
        scene.add("readers", 1, """
                # The other one looks for a name here all the time, so that each piece needs the token again.
                fd = os.open(HERE + '/f', os.O_WRONLY | os.O_CREAT, 0o644)
                for n in rounds(128):
                    os.pwrite(fd, bytes(1 << 16), n << 16)
                os.close(fd)
                def work(i):
                    fd = os.open(HERE + '/f', os.O_RDONLY)
                    for n in until(8):
                        at = random.randrange(0, 127) << 16
                        os.posix_fadvise(fd, at, 65536, os.POSIX_FADV_DONTNEED)
                        os.pread(fd, 65536, at)
                put(HERE + '/started', b'')
                forked(64, work)
                """);
        scene.add("writer", 2, """
                while not os.path.exists(HERE + '/started'):
                    tick()
                    time.sleep(0.05)
                fd = os.open(HERE + '/f', os.O_RDWR)
                for n in rounds(4):
                    time.sleep(0.3)
                    start = time.monotonic()
                    os.pwrite(fd, bytes(BLOCK), 9 * BLOCK)
                    took = time.monotonic() - start
                    check(took < 4, 'a write took', took, 's')
                """);
        scene.play(50);
    }

    /** Each of them holds a page that the kernel has locked, and waits for the token that the other node wants as well. */
    @Test
    void manyPartialWritesThatWaitDoNotHoldUpTheTokenTheyWaitFor(DevCluster cluster) {
        Scene scene = new Scene(cluster, "waiting");
        scene.add("writers", 1, """
                for i in range(60):
                    put(HERE + '/%d' % i, bytes(16 << 10))
                def work(i):
                    fd = os.open(HERE + '/%d' % i, os.O_RDWR)
                    for n in until(5):
                        os.pwrite(fd, bytes(100), random.randrange(0, 16000))
                    tick()
                put(HERE + '/started', b'')
                forked(60, work)
                """);
        scene.add("other", 2, """
                while not os.path.exists(HERE + '/started'):
                    tick()
                    time.sleep(0.05)
                fds = [os.open(HERE + '/%d' % i, os.O_RDWR) for i in range(4)]
                for n in until(4):
                    fd = random.choice(fds)
                    os.pread(fd, 100, 0)
                    tick()
                    os.pwrite(fd, bytes(100), random.randrange(0, 16000))
                """);
        scene.play(40);
    }

    @Test
    void appendsOfBothNodesAreNeitherLostNorTorn(DevCluster cluster) {
        Scene scene = new Scene(cluster, "append");
        scene.alone("put(HERE + '/f', b'')\n");
        for (int node = 1; node <= 2; node++) {
            for (int i = 0; i < 2; i++) {
                scene.add("appender", node, """
                        me = ARGS[0]
                        fd = os.open(HERE + '/f', os.O_WRONLY | os.O_APPEND)
                        for n in until(4):
                            line = (me + ' %d ' % n).ljust(random.choice([40, 300, 5000]), me) + '\\n'
                            check(os.write(fd, line.encode()) == len(line))
                        put(HERE + '/count' + me, b'%d' % (n + 1))
                        """, (char) ('a' + 2 * (node - 1) + i));
            }
        }
        scene.play(20);
        scene.alone("""
                expected = {x: int(get(HERE + '/count' + x)) for x in 'abcd'}
                for d in HERE, THERE:
                    data = get(d + '/f')
                    check(data.endswith(b'\\n'))
                    next = dict.fromkeys('abcd', 0)
                    for line in data.decode().split('\\n')[:-1]:
                        who, number, rest = line.split(' ', 2)
                        check(int(number) == next[who], d, who, 'has line', number, 'after', next[who] - 1)
                        check(set(rest) == {who} and len(line) in (40, 300, 5000), d, 'torn line', line[:60], len(line))
                        next[who] += 1
                    check(next == expected, d, 'lines', next, 'of', expected)
                """);
    }

    @Test
    void aReaderThatFollowsAGrowingFileSeesOnlyWhatWasWritten(DevCluster cluster) {
        Scene scene = new Scene(cluster, "tail");
        scene.alone("put(HERE + '/f', b'')\nput(HERE + '/g', b'')\n");
        String pattern = "def at(i):\n    return bytes((k * 31 + k // 251) % 255 + 1 for k in range(i, i + 700))\n";
        scene.add("writer", 1, pattern + """
                end = 0
                files = [os.open(HERE + '/f', os.O_WRONLY), os.open(HERE + '/g', os.O_WRONLY | os.O_APPEND)]
                for n in until(4):
                    data = at(end)[:random.randrange(1, 700)]
                    for fd in files:
                        check((os.pwrite(fd, data, end) if fd == files[0] else os.write(fd, data)) == len(data))
                        tick()
                    end += len(data)
                    time.sleep(0.001)
                """);
        for (String file : new String[] {"f", "g"}) {
            scene.add("follower", 2, pattern + """
                    fd = os.open(HERE + '/' + ARGS[0], os.O_RDONLY)
                    end = 0
                    grown = 0
                    for n in until(5):
                        size = os.fstat(fd).st_size
                        tick()
                        check(size >= end, 'size went back from', end, 'to', size)
                        grown += size > end
                        data = os.pread(fd, 700, end)
                        if end + 700 <= size:
                            check(len(data) == 700, 'only', len(data), 'bytes below the size')
                        check(data == at(end)[:len(data)], 'wrong bytes at', end, data[:20], 'not', at(end)[:20])
                        end += len(data)
                    check(grown > 3, 'it grew only', grown, 'times')
                    """, file);
        }
        scene.play(25);
    }
}
