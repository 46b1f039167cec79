package io.etcfs.it.limits;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A directory that has more names than a node may cache, on two nodes by turns. */
@Timeout(600)
class LargeDirectoryTest {
    private static final int NAMES = 30_000;
    private static DevCluster cluster;

    @BeforeAll
    static void up() {
        cluster = DevCluster.up(2, Map.of("DEV_MOUNT_ARGS", "--cache-size 16M"));
    }

    @AfterAll
    static void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    /** Positions of a listing stay good, what stays is listed once and in the same order, and both nodes see each other's changes at once. */
    @Test
    void bothNodesListChangeAndRemoveOneThatDoesNotFit() throws Exception {
        Crew.run(cluster, Duration.ofSeconds(540), "large", """
                class Dirent(ctypes.Structure):
                    _fields_ = [('ino', ctypes.c_uint64), ('off', ctypes.c_int64), ('len', ctypes.c_uint16), ('type', ctypes.c_uint8), ('name', ctypes.c_char * 256)]
                libc.opendir.restype = ctypes.c_void_p
                libc.readdir.restype = ctypes.POINTER(Dirent)
                libc.readdir.argtypes = libc.telldir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
                libc.telldir.restype = ctypes.c_long
                libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]

                class Listing:
                    def __init__(self, path):
                        self.dir = libc.opendir(path.encode())
                        check(self.dir, 'no listing of', path)
                    def next(self):
                        e = libc.readdir(self.dir)
                        return e.contents.name.decode() if e else None
                    def tell(self):
                        return libc.telldir(self.dir)
                    def seek(self, at):
                        libc.seekdir(self.dir, at)
                    def some(self, n):
                        names = []
                        while len(names) < n:
                            name = self.next()
                            tick()
                            if name is None:
                                break
                            if name not in ('.', '..'):
                                names.append(name)
                        return names
                    def close(self):
                        libc.closedir(self.dir)

                def make(path):
                    tick()
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))

                N = int(ARGS[0])
                here, there = HERE + '/large', THERE + '/large'
                os.mkdir(here)
                for i in range(N):
                    make(here + '/f%d' % i)
                stays = set('f%d' % i for i in range(N) if i % 10)
                names = set('f%d' % i for i in range(N))
                goes = iter(['f%d' % i for i in range(0, N, 10)])

                for i in range(0, N, 701):
                    tick()
                    check(os.stat(there + '/f%d' % i).st_nlink == 1, 'lost', i)
                    check(refused(lambda: os.stat(there + '/absent%d' % i), errno.ENOENT), 'found', i)
                    check(refused(lambda: make(there + '/f%d' % i), errno.EEXIST), 'made twice', i)

                made = 0
                def change():
                    global made
                    for side, other in (here, there), (there, here):
                        for k in range(8):
                            gone, new = next(goes), 'n%d' % made
                            made += 1
                            os.unlink(side + '/' + gone)
                            make(side + '/' + new)
                            names.discard(gone)
                            names.add(new)
                        check(refused(lambda: os.stat(other + '/' + gone), errno.ENOENT), gone, 'is still there')
                        check(os.path.exists(other + '/' + new), new, 'is not there yet')

                reference = Listing(there)
                order = [x for x in reference.some(10 * N) if x in stays]
                reference.close()
                check(len(order) == len(set(order)) == len(stays), 'lists', len(order), 'of', len(stays))
                for side in there, here:
                    listing = Listing(side)
                    seen = []
                    while True:
                        at = listing.tell()
                        first = listing.some(200)
                        after = listing.tell()
                        change()
                        listing.seek(at)
                        again = [x for x in listing.some(100) if x in stays]
                        check(again == [x for x in first if x in stays][:len(again)], side, 'another order at', at, first[:5], again[:5])
                        listing.seek(after)
                        more = listing.some(2800)
                        seen += first + more
                        if not more:
                            break
                    listing.close()
                    check(len(seen) == len(set(seen)), side, 'twice:', len(seen) - len(set(seen)))
                    check([x for x in seen if x in stays] == order, side, 'lacks', len(stays - set(seen)))
                for side in here, there:
                    listed = set(Listing(side).some(10 * N))
                    check(listed == names, side, 'lacks', len(names - listed), 'has too many', len(listed - names))
                links = 0
                with os.scandir(there) as entries:
                    for e in entries:
                        tick()
                        links += e.stat().st_nlink
                check(links == len(names), 'attributes')
                check(refused(lambda: os.rmdir(here), errno.ENOTEMPTY), 'removed')
                for i, name in enumerate(sorted(names)):
                    tick()
                    os.unlink((here if i // 3000 % 2 else there) + '/' + name)
                check(os.listdir(here) == os.listdir(there) == [], 'left over')
                os.rmdir(there)
                check(not os.path.exists(here), 'still there')
                """, cluster.mount(1), cluster.mount(2), NAMES);
    }
}
