package io.etcfs.it.tree;

import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * One node makes a tree, the other one looks at it. {@code -Detcfs.it.trees=/usr/share,/usr/include} says which trees are copied (with
 * {@code -Detcfs.it.deviceSize=4G}), {@code -Detcfs.it.npm=true} that npm is tried.
 */
@OnCluster
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class TreeTest {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final String COMMANDS = program("commands.py");
    private static final Duration LIMIT = Duration.ofMinutes(40);

    @Test
    void aCopiedTreeIsTheSameOnTheOtherNode(DevCluster cluster) throws Exception {
        String trees = System.getProperty("etcfs.it.trees", "/usr/include/linux,/usr/share/perl,/usr/share/terminfo").replace(',', ' ');
        Scene scene = new Scene(cluster, "copy");
        scene.alone(1, "copy", "sh('cp -a ' + ARGS[0] + ' ' + HERE)\n", trees);
        String compare = """
                for tree in ARGS[0].split():
                    there = HERE + '/' + os.path.basename(tree)
                    sh('diff -r --no-dereference %s %s' % (tree, there))
                    said = sh('rsync -aHAXnci --delete %s/ %s/' % (tree, there))
                    check(said == '', 'rsync would change:', said[:2000])
                    count = 'find . -printf "%%y %%m %%U %%G %%n %%s %%T@ %%l %%p\\\\n" | grep -v "^d" | LC_ALL=C sort | sha256sum'
                    count = count.replace('%%', '%')
                    check(sh(count, tree) == sh(count, there), 'find sees other attributes')
                """;
        scene.alone(2, "compare", compare, trees);
        scene.alone(1, "compare-own", compare, trees);
        scene.alone(2, "remove", "sh('rm -r ' + HERE + '/*')\n");
        scene.alone(1, "gone", "check(os.listdir(HERE) == [], 'left:', os.listdir(HERE))\n");
    }

    @Test
    void aGitRepositoryIsClonedHereAndClean(DevCluster cluster) throws Exception {
        Scene scene = new Scene(cluster, "git");
        Path origin = cluster.scratch().resolve("origin-" + NUMBER.incrementAndGet() + ".git");
        scene.alone(2, "clone", """
                origin = ARGS[0]
                sh('git init -q --bare -b main ' + origin)
                stream = ''
                for c in range(300):
                    stream += 'commit refs/heads/main\\ncommitter T <t@example.org> %d +0000\\ndata 2\\nc\\n\\n' % (1_700_000_000 + c)
                    for f in range(6):
                        text = 'file %d of commit %d\\n' % (f, c) * ((c * 7 + f) % 90)
                        stream += 'M 100%s inline d%d/f%d\\ndata %d\\n%s\\n' % ('755' if f == 3 else '644', c % 17, f, len(text), text)
                subprocess.run(['git', 'fast-import', '--quiet'], cwd=origin, input=stream, text=True, check=True)
                sh('git clone -q --no-local file://%s clone' % origin, HERE)
                sh('git fsck --full --strict', HERE + '/clone')
                """, origin);
        scene.alone(1, "look", """
                here = HERE + '/clone'
                sh('git fsck --full --strict', here)
                check(sh('git status --porcelain', here) == '', 'not clean')
                check(sh('git rev-list --count HEAD', here) == '300\\n', 'commits')
                sh('git checkout -q -b work && for i in 1 2 3 4 5; do echo $i > new$i; git add -A; git -c user.name=t -c user.email=t@example.org commit -q -m $i; done', here)
                """);
        scene.alone(2, "go-on", """
                here = HERE + '/clone'
                check(sh('git status --porcelain', here) == '', 'not clean')
                check(sh('git rev-list --count HEAD', here) == '305\\n', 'commits')
                sh('git gc -q && git checkout -q main && git checkout -q work', here)
                """);
        scene.alone(1, "look-again", """
                here = HERE + '/clone'
                sh('git fsck --full --strict', here)
                check(sh('git status --porcelain', here) == '', 'not clean')
                check(sh('cat new5', here) == '5\\n', 'new5')
                """);
    }

    /** A build with many small files in and out, read by the other node all the time. */
    @Test
    void aProjectIsBuiltWhileTheOtherNodeReadsIt(DevCluster cluster) throws Exception {
        Scene scene = new Scene(cluster, "build");
        Path done = cluster.scratch().resolve("built-" + NUMBER.incrementAndGet());
        String javaHome = System.getProperty("java.home");
        scene.alone(2, "sources", """
                os.makedirs(HERE + '/src/p')
                for i in range(80):
                    put(HERE + '/src/p/C%d.java' % i, ('package p; public class C%d { interface A {} static class B implements A {} public static int get() { Runnable r = () -> { new B(); }; r.run(); return %s; } }\\n'
                            % (i, '1' if i == 0 else 'C%d.get() + 1' % (i - 1))).encode())
                put(HERE + '/src/p/Main.java', b'package p; public class Main { public static void main(String[] a) { System.out.println(C79.get()); } }\\n')
                put(HERE + '/Makefile', b'app.jar: $(wildcard src/p/*.java)\\n\\trm -rf out && mkdir out\\n\\t$(JAVA)/bin/javac -d out $^\\n\\t$(JAVA)/bin/jar --create --file app.jar.part --main-class p.Main -C out .\\n\\tmv app.jar.part app.jar\\n')
                """);
        Crew crew = new Crew(cluster);
        scene.add(crew, 2, "build", """
                try:
                    sh('make -s JAVA=' + ARGS[0], HERE)
                finally:
                    open(ARGS[1], 'w').close()
                """, javaHome, done);
        scene.add(crew, 1, "read", """
                rounds_made = 0
                while not os.path.exists(ARGS[0]):
                    for top, dirs, files in os.walk(HERE):
                        tick()
                        for name in files:
                            try:
                                data = get(os.path.join(top, name))
                            except FileNotFoundError:
                                continue
                            if name.endswith('.java'):
                                check(data.startswith(b'package p;') and data.endswith(b'}\\n'), name, 'reads as', data[:50])
                            if name == 'app.jar':
                                check(data[:2] == b'PK' and data[-22:-18] == b'PK\\5\\6', 'half a jar')
                    rounds_made += 1
                    time.sleep(0.1)
                print(rounds_made, 'rounds')
                """, done);
        crew.await(LIMIT);
        scene.alone(1, "run", """
                check(sh(ARGS[0] + '/bin/java -cp app.jar p.Main', HERE) == '80\\n', 'the program says')
                check(sh(ARGS[0] + '/bin/java -cp out p.Main', HERE) == '80\\n', 'the program says')
                check(len(os.listdir(HERE + '/out/p')) == 80 * 3 + 1, 'classes')
                """, javaHome);
    }

    @Test
    void npmInstallsAndRuns(DevCluster cluster) throws Exception {
        Assumptions.assumeTrue(Boolean.getBoolean("etcfs.it.npm") && Files.isExecutable(Path.of("/usr/bin/npm")), "npm was not asked for");
        Scene scene = new Scene(cluster, "npm");
        scene.alone(2, "install", """
                for i in range(20):
                    os.makedirs(HERE + '/lib%d/src' % i)
                    put(HERE + '/lib%d/package.json' % i, b'{"name": "lib%d", "version": "1.0.0", "main": "src/index.js", "bin": {"lib%d": "src/index.js"}}' % (i, i))
                    for f in range(30):
                        put(HERE + '/lib%d/src/m%d.js' % (i, f), b'module.exports = %d;\\n' % f)
                    put(HERE + '/lib%d/src/index.js' % i, b'#!/usr/bin/env node\\nlet s = 0; for (let f = 0; f < 30; f++) s += require("./m" + f); module.exports = s;\\n')
                    sh('npm pack --silent', HERE + '/lib%d' % i)
                os.mkdir(HERE + '/app')
                put(HERE + '/app/package.json', ('{"name": "app", "version": "1.0.0", "dependencies": {%s}}' % ', '.join('"lib%d": "file:../lib%d/lib%d-1.0.0.tgz"' % (i, i, i) for i in range(20))).encode())
                sh('npm install --offline --no-audit --no-fund --silent', HERE + '/app')
                """);
        scene.alone(1, "run", """
                check(sh("node -e 'let s = 0; for (let i = 0; i < 20; i++) s += require(\\"lib\\" + i); console.log(s)'", HERE + '/app') == '8700\\n', 'the program says')
                sh('npm ls --offline --silent', HERE + '/app')
                """);
        scene.alone(2, "remove", "sh('rm -r node_modules && npm ci --offline --no-audit --no-fund --silent', HERE + '/app')\n");
        scene.alone(1, "run-again", "sh('node -e \"require(\\\\\"lib3\\\\\")\"', HERE + '/app')\n");
    }

    /** A directory of its own, that a node sees as HERE and the other one as THERE. */
    private static final class Scene {
        private final DevCluster cluster;
        private final String directory;

        Scene(DevCluster cluster, String name) {
            this.cluster = cluster;
            this.directory = name + "-" + NUMBER.incrementAndGet();
            alone(1, "begin", "os.mkdir(HERE)\n");
        }

        void add(Crew crew, int node, String name, String program, Object... args) {
            Object[] all = new Object[args.length + 2];
            all[0] = cluster.mount(node).resolve(directory);
            all[1] = cluster.mount(3 - node).resolve(directory);
            System.arraycopy(args, 0, all, 2, args.length);
            crew.add(name, COMMANDS + program, all);
        }

        void alone(int node, String name, String program, Object... args) {
            Crew crew = new Crew(cluster);
            add(crew, node, name, program, args);
            long begin = System.nanoTime();
            crew.await(LIMIT);
            if (!name.equals("begin")) {
                System.out.println(directory + ": " + name + " on node " + node + ": " + (System.nanoTime() - begin) / 1_000_000 + " ms");
            }
        }
    }

    private static String program(String name) {
        try (InputStream in = TreeTest.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
