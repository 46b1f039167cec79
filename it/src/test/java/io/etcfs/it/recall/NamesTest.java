package io.etcfs.it.recall;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import org.junit.jupiter.api.Test;

/** Two nodes change names in the same directories, with the kernel's locks of these directories in between. */
@OnCluster
class NamesTest {
    @Test
    void bothNodesListAndCreateInOneDirectory(DevCluster cluster) {
        Scene scene = new Scene(cluster, "create");
        for (int node = 1; node <= 2; node++) {
            for (int i = 0; i < 2; i++) {
                scene.add("creator", node, """
                        me = ARGS[0]
                        mine = set()
                        for n in until(4):
                            seen = set(x for x in os.listdir(HERE) if x.startswith(me))
                            check(seen == mine, 'own names missing', mine - seen, 'or removed ones there', seen - mine)
                            tick()
                            name = me + str(n)
                            check(refused(lambda: os.stat(HERE + '/' + name), errno.ENOENT), 'there before it was made')
                            put(HERE + '/' + name, name.encode())
                            mine.add(name)
                            if n % 3 == 2:
                                gone = random.choice(sorted(mine))
                                os.unlink(HERE + '/' + gone)
                                mine.remove(gone)
                        check(n > 3, 'only', n, 'rounds')
                        print('creates', n)
                        put(HERE + '/.' + me, '\\n'.join(sorted(mine)).encode())
                        """, "n" + node + "-" + i + "-");
            }
        }
        scene.play(20);
        scene.alone("""
                expected = set()
                for list in [x for x in os.listdir(HERE) if x.startswith('.')]:
                    expected |= set(get(HERE + '/' + list).decode().split('\\n'))
                for d in HERE, THERE:
                    there = set(x for x in os.listdir(d) if not x.startswith('.'))
                    check(there == expected, d, 'lost', expected - there, 'too many', there - expected)
                    for name in there:
                        check(get(d + '/' + name) == name.encode(), d, name, 'has other bytes')
                """);
    }

    @Test
    void onlyOneNodeMakesANameThatBothWant(DevCluster cluster) {
        Scene scene = new Scene(cluster, "exclusive");
        for (int node = 1; node <= 2; node++) {
            scene.add("racer", node, """
                    won = []
                    for n in rounds(40, 4):
                        name = HERE + '/' + str(n)
                        if n % 2 == 0:
                            lost = refused(lambda: os.mkdir(name), errno.EEXIST)
                        else:
                            lost = refused(lambda: os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR)), errno.EEXIST)
                        if not lost:
                            won.append(n)
                        os.stat(name)
                    put(HERE + '/won-' + ARGS[0], ' '.join([str(n)] + [str(w) for w in won]).encode())
                    """, node);
        }
        scene.play(20);
        scene.alone("""
                a, b = [[int(x) for x in get(HERE + '/won-' + k).split()] for k in '12']
                for n in range(min(a[0], b[0])):
                    check((n in a[1:]) != (n in b[1:]), n, 'was made by both or by neither')
                """);
    }

    @Test
    void filesMoveBetweenTwoDirectoriesFromBothNodes(DevCluster cluster) {
        Scene scene = new Scene(cluster, "files");
        scene.alone("""
                os.mkdir(HERE + '/a')
                os.mkdir(HERE + '/b')
                for i in range(16):
                    put(HERE + '/' + 'ab'[i % 2] + '/f' + str(i), b'file %d' % i)
                """);
        for (int node = 1; node <= 2; node++) {
            scene.add("mover", node, """
                    random.seed(ARGS[0])
                    moved = 0
                    for n in until(4):
                        f, g = random.sample(range(16), 2)
                        one, other = random.sample('ab', 2)
                        path = HERE + '/%s/f%d'
                        # RENAME_NOREPLACE, and RENAME_EXCHANGE of names that are then not their file's any more.
                        args = (path % (one, f), path % (other, f), 1) if n % 4 else (path % (one, f), path % (other, g), 2)
                        if libc.renameat2(-100, args[0].encode(), -100, args[1].encode(), args[2]) == 0:
                            moved += 1
                        else:
                            check(ctypes.get_errno() in (errno.ENOENT, errno.EEXIST), 'rename', args, os.strerror(ctypes.get_errno()))
                        if n % 8 == 0:
                            os.listdir(HERE + '/' + one)
                    check(moved > 3, 'only', moved, 'moves')
                    """, node);
        }
        scene.play(20);
        scene.alone("""
                for d in HERE, THERE:
                    found = [d + '/' + x + '/' + f for x in 'ab' for f in os.listdir(d + '/' + x)]
                    check(sorted(os.path.basename(f) for f in found) == sorted('f%d' % i for i in range(16)), 'names', found)
                    check(sorted(get(f) for f in found) == sorted(b'file %d' % i for i in range(16)), 'contents')
                    for f in found:
                        check(os.stat(f).st_nlink == 1, f, 'nlink')
                """);
    }

    @Test
    void directoriesMoveToOtherParentsFromBothNodesAndStayATree(DevCluster cluster) {
        Scene scene = new Scene(cluster, "tree");
        scene.alone("""
                for i in range(8):
                    os.mkdir(HERE + '/d%d' % i)
                    put(HERE + '/d%d/file%d' % (i, i), b'x')
                """);
        for (int node = 1; node <= 2; node++) {
            scene.add("mover", node, """
                    random.seed(ARGS[0])
                    # A directory, by going down at random.
                    def somewhere(deeper):
                        at = HERE
                        while True:
                            names = [x for x in os.listdir(at) if x.startswith('d')]
                            tick()
                            if not names or random.random() > deeper:
                                return at
                            at += '/' + random.choice(names)
                    moved = 0
                    for n in until(4):
                        try:
                            what, to = somewhere(0.8), somewhere(0.5)
                        except FileNotFoundError:
                            continue
                        target = to + '/' + os.path.basename(what)
                        if what in (HERE, target):
                            continue
                        # EINVAL: into itself; ENOENT, ENOTEMPTY, EEXIST: the other node was there first.
                        if not refused(lambda: os.rename(what, target), errno.EINVAL, errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                            moved += 1
                    print('moves', moved, 'of', n)
                    check(moved > 0, 'no moves')
                    """, node);
        }
        scene.play(25);
        scene.alone("""
                shapes = []
                for d in HERE, THERE:
                    shape = []
                    for top, names, files in os.walk(d):
                        tick()
                        check(os.stat(top).st_nlink == 2 + len(names), top, 'has nlink', os.stat(top).st_nlink, 'and', len(names), 'directories')
                        up = os.stat(top + '/..').st_ino
                        check(top == d or up == os.stat(os.path.dirname(top)).st_ino, top, 'has another parent')
                        shape.append((os.path.relpath(top, d), sorted(names), files))
                    directories = [n for s in shape for n in s[1]]
                    check(sorted(directories) == ['d%d' % i for i in range(8)], d, 'has', sorted(directories))
                    for where, names, files in shape:
                        check(where == '.' or files == ['file' + where[-1]], where, files)
                    shapes.append(sorted(shape))
                check(shapes[0] == shapes[1], 'the nodes see different trees', shapes)
                """);
    }

    @Test
    void aMountInADirectoryStaysWhileTheOtherNodeChangesNamesAround(DevCluster cluster) {
        Scene scene = new Scene(cluster, "inside");
        scene.alone("""
                for name in 'mnt', 'bind', 'cwd', 'source':
                    os.mkdir(HERE + '/' + name)
                put(HERE + '/source/file', b'bound')
                os.mkdir(HERE + '/cwd/deep')
                """);
        // In a mount namespace of its own, so that nothing of it stays.
        scene.addThrough(java.util.List.of("unshare", "--mount", "--propagation", "private"), "resident", 1, """
                os.listdir(HERE)
                subprocess.run(['mount', '-t', 'tmpfs', 'none', HERE + '/mnt'], check=True)
                subprocess.run(['mount', '--bind', HERE + '/source', HERE + '/bind'], check=True)
                put(HERE + '/mnt/local', b'here')
                os.chdir(HERE + '/cwd/deep')
                outer = os.stat(HERE).st_dev
                put(HERE + '/started', b'')
                for n in until(4):
                    check(os.getcwd() == HERE + '/cwd/deep', 'cwd is', os.getcwd())
                    check(os.stat(HERE + '/mnt').st_dev != outer, 'tmpfs is gone')
                    check(get(HERE + '/mnt/local') == b'here', 'tmpfs has other files')
                    check(get(HERE + '/bind/file') == b'bound', 'bind mount is gone')
                    check(sum(HERE in line for line in open('/proc/self/mountinfo')) == 2, 'mounts', open('/proc/self/mountinfo').read())
                    time.sleep(0.01)
                """);
        scene.add("neighbour", 2, """
                while not os.path.exists(HERE + '/started'):
                    tick()
                    time.sleep(0.02)
                for n in until(3):
                    name = HERE + '/x%d' % n
                    os.mkdir(name)
                    put(HERE + '/cwd/y%d' % n, b'')
                    os.rename(name, name + '-')
                    os.rmdir(name + '-')
                    os.utime(HERE + '/mnt')
                    os.chmod(HERE + '/cwd/deep', 0o700 + n % 8)
                    os.unlink(HERE + '/cwd/y%d' % n)
                """);
        scene.play(25);
    }
}
