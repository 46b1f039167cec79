package io.etcfs.it.recall;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import org.junit.jupiter.api.Test;

/**
 * Replies that are on their way while the other node changes what they say: each LOOKUP and READ is answered {@value Fault#DELAY_MS} ms after it was carried out. Once
 * the change has returned nobody sees the old name or bytes, also not who only looks at what such a reply left in the kernel.
 */
@OnCluster(faults = Fault.DELAY_REPLY)
class DelayedReplyTest {
    @Test
    void noOldNameIsLeftByAReplyOnItsWay(DevCluster cluster) {
        Scene scene = new Scene(cluster, "late-names");
        // Of a file, the kernel forgets the name; of a directory, it keeps the name and asks again.
        for (String i : new String[] {"file", "directory-1", "directory-2", "directory-3"}) {
            scene.alone("os.mkdir(HERE + ARGS[0])\n", "/" + i);
            scene.add("looker", 1, """
                    # From inside, so that it asks for nothing but these names.
                    os.chdir(HERE + ARGS[0])
                    name = 'a'
                    for n in until(9):
                        if refused(lambda: os.stat(name), errno.ENOENT):
                            name = 'b' if name == 'a' else 'a'
                        time.sleep(0.005)
                    """, "/" + i);
            scene.add("changer", 2, """
                    def there(name):
                        return not refused(lambda: os.stat(THERE + ARGS[0] + '/' + name), errno.ENOENT)
                    os.chdir(HERE + ARGS[0])
                    one, other = 'ab'
                    put(one, b'') if 'file' in ARGS[0] else os.mkdir(one)
                    changed = time.monotonic()
                    for n in rounds(30, 15):
                        # The kernel believes names from 2 s after the last recall on, and asks only once then: that answer is to be on its way
                        # when this change comes, 0.3 s after it began, as it looks up both names itself.
                        time.sleep(max(0, changed + 1.78 + 0.1 * random.random() - time.monotonic()))
                        os.rename(one, other)
                        changed = time.monotonic()
                        tick()
                        # By turns also without asking before that answer has come.
                        time.sleep(n % 2 * 0.2)
                        for look in range(2):
                            check(not there(one), 'round', n, 'look', look, 'sees the old name')
                            check(there(other), 'round', n, 'look', look, 'misses the new name')
                        one, other = other, one
                    check(n > 0)
                    """, "/" + i);
        }
        scene.play(30);
    }

    @Test
    void noOldBytesAreLeftByAReplyOnItsWay(DevCluster cluster) {
        Scene scene = new Scene(cluster, "late-bytes");
        scene.alone("put(HERE + '/f', bytes(4 * BLOCK))\n");
        for (int i = 0; i < 2; i++) {
            scene.add("reader", 1, """
                    fd = os.open(HERE + '/f', os.O_RDONLY)
                    for n in until(6):
                        page = random.randrange(4)
                        os.posix_fadvise(fd, page * BLOCK, BLOCK, os.POSIX_FADV_DONTNEED)
                        os.pread(fd, BLOCK, page * BLOCK)
                    """);
        }
        scene.add("changer", 2, """
                fds = [os.open(d + '/f', os.O_RDWR) for d in (HERE, THERE)]
                for n in rounds(1000, 5):
                    page = random.randrange(4)
                    os.pwrite(fds[0], struct.pack('<Q', n) * 512, page * BLOCK)
                    tick()
                    for look in range(2):
                        got = struct.unpack('<Q', os.pread(fds[1], 8, page * BLOCK + 8))[0]
                        tick()
                        check(got == n, 'page', page, 'look', look, 'is of round', got, 'not', n)
                check(n > 1, 'only', n, 'rounds')
                """);
        scene.play(30);
    }
}
