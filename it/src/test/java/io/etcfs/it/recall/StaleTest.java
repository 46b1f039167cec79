package io.etcfs.it.recall;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import org.junit.jupiter.api.Test;

/**
 * What one node's kernel remembers is gone once a change on the other node has returned. 300 rounds of bytes, 150 of names (four changes each) and of attributes, in
 * six directories each at a time, by turns from either node.
 */
@OnCluster
class StaleTest {
    private static final int WIDTH = 6;
    private static final int ROUNDS = 50;

    /** Bytes: three rounds of writing for one of looking at the same page, so that pages are cached while the other node wants them. */
    static void newBytes(Scene scene, int rounds) {
        for (int i = 0; i < WIDTH; i++) {
            scene.add("bytes", 1 + i % 2, """
                    os.mkdir(HERE + '/bytes' + ARGS[1])
                    put(HERE + '/bytes' + ARGS[1] + '/f', bytes(3 * BLOCK))
                    fds = [os.open(d + '/bytes' + ARGS[1] + '/f', os.O_RDWR) for d in (HERE, THERE)]
                    maps = [mmap.mmap(fd, 3 * BLOCK, prot=mmap.PROT_READ) for fd in fds]
                    for n in rounds(int(ARGS[0])):
                        for fd in fds:
                            os.pread(fd, 3 * BLOCK, 0)
                            tick()
                        turn = n % 5 == 0
                        value = bytes([n % 255 + 1])
                        at, length = random.choice([(0, 10), (BLOCK - 5, 10), (BLOCK, BLOCK), (0, 3 * BLOCK), (2 * BLOCK + 1, 99)])
                        check(os.pwrite(fds[turn], value * length, at) == length)
                        tick()
                        got = maps[not turn][at:at + length] if n % 3 == 0 else os.pread(fds[not turn], length, at)
                        check(got == value * length, 'round', n, 'old bytes', got[:10], 'not', value)
                    """, rounds, i);
        }
    }

    static void namesAndMissingNames(Scene scene, int rounds) {
        for (int i = 0; i < WIDTH; i++) {
            scene.add("names", 1 + i % 2, """
                    os.mkdir(HERE + '/names' + ARGS[1])
                    here, there = HERE + '/names' + ARGS[1] + '/', THERE + '/names' + ARGS[1] + '/'
                    def missing(path):
                        return refused(lambda: os.stat(path), errno.ENOENT) == errno.ENOENT
                    for n in rounds(int(ARGS[0])):
                        if n % 2:
                            here, there = there, here
                        check(missing(there + 'a') and missing(there + 'b') and missing(here + 'b'), 'round', n, 'a removed name is there')
                        put(here + 'a', b'%d' % n)
                        check(not missing(there + 'a'), 'round', n, 'a missing name is remembered')
                        check(os.listdir(there) == ['a'], 'round', n, 'listing')
                        tick()
                        os.rename(here + 'a', here + 'b')
                        tick()
                        check(missing(there + 'a'), 'round', n, 'a moved name is remembered')
                        check(get(there + 'b') == b'%d' % n, 'round', n, 'another file')
                        os.unlink(there + 'b')
                        tick()
                        check(missing(here + 'b'), 'round', n, 'a removed name is remembered')
                        check(os.listdir(here) == [], 'round', n, 'listing')
                    """, rounds / 2, i);
        }
    }

    static void attributes(Scene scene, int rounds) {
        for (int i = 0; i < WIDTH; i++) {
            scene.add("attributes", 1 + i % 2, """
                    os.mkdir(HERE + '/attributes' + ARGS[1])
                    put(HERE + '/attributes' + ARGS[1] + '/f', b'')
                    here, there = [d + '/attributes' + ARGS[1] + '/f' for d in (HERE, THERE)]
                    for n in rounds(int(ARGS[0])):
                        if n % 4 == 0:
                            here, there = there, here
                        os.stat(there)
                        tick()
                        kind = n % 5
                        if kind == 0:
                            os.chmod(here, 0o600 | n % 64)
                        elif kind == 1:
                            os.truncate(here, n * 7)
                        elif kind == 2:
                            os.utime(here, ns=(n, n * 1000))
                        elif kind == 3:
                            put(here, bytes(n))
                        else:
                            os.chown(here, n, n + 1)
                        tick()
                        # The other node first, so that it is asked before anything else could have told it.
                        seen, own = os.stat(there), os.stat(here)
                        check([getattr(seen, k) for k in dir(seen) if k.startswith('st_') and k not in ('st_dev', 'st_atime', 'st_atime_ns')]
                              == [getattr(own, k) for k in dir(own) if k.startswith('st_') and k not in ('st_dev', 'st_atime', 'st_atime_ns')], 'round', n, seen, 'is not', own)
                        check([seen.st_mode & 0o777 == 0o600 | n % 64, seen.st_size == n * 7, seen.st_mtime_ns == n * 1000, seen.st_size == n, (seen.st_uid, seen.st_gid) == (n, n + 1)][kind],
                              'round', n, 'old attributes', seen)
                    """, rounds / 2, i);
        }
    }

    @Test
    void whatTheOtherNodeChangedIsSeenAtOnce(DevCluster cluster) {
        Scene scene = new Scene(cluster, "stale");
        newBytes(scene, ROUNDS);
        namesAndMissingNames(scene, ROUNDS);
        attributes(scene, ROUNDS);
        scene.play(120);
    }
}
