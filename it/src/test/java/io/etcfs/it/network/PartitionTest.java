package io.etcfs.it.network;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;

/** One of two nodes loses a link while it writes; the other one goes on with its files. What the links are to is the subclass's. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
abstract class PartitionTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** As an iSCSI initiator waits for a target that is away: 120 s. */
    private static final Duration GIVES_UP_WITHIN = Duration.ofSeconds(150);
    /** Overwrites blocks past all caches and appends lines, each durable before it says so in the file ARGS[1]. Ends without a word when its node does. */
    private static final String WRITE = """
            import mmap, random, time
            os.makedirs(HERE, exist_ok=True)
            fd = os.open(HERE + '/overwritten', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
            log = os.open(HERE + '/appended', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            said = os.open(ARGS[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            page = mmap.mmap(-1, 4096)
            n = 0
            try:
                while True:
                    n += 1
                    at = random.randrange(64)
                    page[:] = (b'%s %d' % (ARGS[0].encode(), n)).ljust(4096)
                    os.write(said, b'begin %d %d\\n' % (at, n))
                    os.pwrite(fd, page, at * 4096); os.fsync(fd)
                    os.write(said, b'end %d %d\\n' % (at, n))
                    os.write(log, b'%s %d\\n' % (ARGS[0].encode(), n)); os.fsync(log)
                    os.write(said, b'line %d\\n' % n); tick()
            except OSError as e:
                os.write(said, b'error %d\\n' % e.errno)
            """;
    /** All that the other was told is durable is there; then its first blocks are overwritten and a line is added, and what all of it is now goes to ARGS[2]. */
    private static final String TAKE = """
            fd = os.open(HERE + '/overwritten', os.O_RDWR)
            old = os.pread(fd, 64 * 4096, 0)
            os.pwrite(fd, b'taken'.ljust(4096) * 2, 0); os.fsync(fd)
            log = os.open(HERE + '/appended', os.O_RDWR | os.O_APPEND)
            lines = os.pread(log, 1 << 24, 0)
            os.write(log, b'taken\\n'); os.fsync(log); tick()
            durable, begun, told = {}, {}, []
            for words in map(str.split, open(ARGS[1]).read().split('\\n')[:-1]):
                if words[0] == 'begin': begun[int(words[1])] = words[2]
                if words[0] == 'end': durable[int(words[1])] = words[2]; begun.pop(int(words[1]), None)
                if words[0] == 'line': told.append(words[1])
            check(durable and told, 'it was told nothing')
            for at, n in durable.items():
                got = old[at * 4096:(at + 1) * 4096].rstrip().decode()
                check(got == ARGS[0] + ' ' + n or at in begun and got == ARGS[0] + ' ' + begun[at], at, got, n, begun.get(at))
            have = set(lines.decode().split('\\n'))
            check(all(ARGS[0] + ' ' + n in have for n in told), 'lines are missing')
            put(ARGS[2], b'taken'.ljust(4096) * 2 + old[2 * 4096:] + lines + b'taken\\n')
            """;
    /** The file ARGS[0] is what is there; on a loop device also with the one call carried out that the writer (its account is ARGS[1]) was in. */
    private static final String SAME = """
            got = open(HERE + '/overwritten', 'rb').read() + open(HERE + '/appended', 'rb').read()
            expected = open(ARGS[0], 'rb').read()
            late = []
            if ARGS[2] == 'loop':
                word, *numbers = open(ARGS[1]).read().split('\\n')[-2].split()
                if word == 'begin':
                    at, n = map(int, numbers)
                    late = [expected[:at * 4096] + (b'w %d' % n).ljust(4096) + expected[(at + 1) * 4096:]]
                if word == 'end':
                    late = [expected + b'w %d\\n' % int(numbers[1])]
            check(got in [expected] + late, 'other bytes', len(got), len(expected))
            """;

    private final String device;
    private final Fault[] faults;
    private DevCluster cluster;

    /** @param faults rules that are broken in each daemon */
    PartitionTest(String device, Fault... faults) {
        this.device = device;
        this.faults = faults;
    }

    @BeforeAll
    void up() {
        cluster = DevCluster.up(2, Map.of("DEV_DEVICE", device, "DEV_NETWORK", "namespaces"), faults);
    }

    @AfterAll
    void down() {
        if (cluster != null) {
            cluster.close();
        }
    }

    @AfterEach
    void bothServe() {
        cluster.join(2, "all");
        if (!cluster.isServing(2)) {
            cluster.remount(2);
        }
    }

    /** Takes the links down for longer than a session has; the other one takes over meanwhile. */
    final void isCutOff(String links) throws Exception {
        String name = links + System.nanoTime();
        String said = cluster.scratch().resolve(name).toString();
        String taken = said + ".taken";
        try (Crew writer = new Crew(cluster)) {
            Crew.Child child = writer.add("writer", WRITE, cluster.mount(2).resolve(name), "", "w", said);
            writer.start();
            child.awaitTicks(50, LIMIT);
            cluster.cut(2, links);
            long begin = System.nanoTime();
            run(1, name, TAKE, "w", said, taken);
            System.out.println(device + ", cut off from " + links + ": taken over after " + (System.nanoTime() - begin) / 1_000_000 + " ms");
            // The call that it is in may be carried out when the node is back, if that was not fenced; no other one.
            child.kill();
        }
        cluster.join(2, links);
        Thread.sleep(3_000);
        run(1, name, SAME, taken, said, device);
        if (!cluster.isServing(2)) {
            cluster.remount(2);
        }
        run(2, name, SAME, taken, said, device);
        DevCluster.Result fsck = cluster.tryEtcfsctl("fsck");
        assertEquals(0, fsck.code(), fsck.toString());
    }

    /** It has changed nothing of late, so it goes on as soon as it can, if nobody fenced it, and knows nothing any more of what it had cached. */
    final void isCutOffIdle(String links) throws Exception {
        String name = "idle" + links + System.nanoTime();
        run(2, name, "os.makedirs(HERE)\nput(HERE + '/f', b'old')\nput(HERE + '/gone', b'')\nos.sync()\ncheck(open(HERE + '/f').read() == 'old')\n");
        long pid = cluster.pid(2);
        cluster.cut(2, links);
        run(1, name, "put(HERE + '/f', b'new and longer')\nos.unlink(HERE + '/gone')\nput(HERE + '/made', b'')\nos.sync()\n");
        try (Crew reader = new Crew(cluster)) {
            // What it had is old now: it may wait, or fail, but show that to nobody.
            Crew.Child child = reader.add("reader", "try: check(open(HERE + '/f').read() == 'new and longer', 'old')\nexcept OSError as e: print(e)\n", cluster.mount(2).resolve(name), "");
            reader.start();
            child.awaitEnd(Duration.ofSeconds(2));
            cluster.join(2, links);
            reader.await(LIMIT);
        }
        Thread.sleep(3_000);
        boolean goesOn = cluster.isServing(2) && cluster.pid(2) == pid;
        System.out.println(device + ", cut off from " + links + " while idle: " + (goesOn ? "goes on" : "was fenced"));
        if (!goesOn) {
            cluster.remount(2);
        }
        run(2, name, "check(sorted(os.listdir(HERE)) == ['f', 'made'] and open(HERE + '/f').read() == 'new and longer', os.listdir(HERE), open(HERE + '/f').read())\n");
    }

    /** For less than a session has, thrice: nobody takes over, nothing fails. */
    final void isCutOffShortly(String links) throws Exception {
        isCutOffAndGoesOn(links, 3, 400);
    }

    /** For as long as that, so many times, which ends no session. */
    final void isCutOffAndGoesOn(String links, int times, int ms) throws Exception {
        String name = "shortly" + links + System.nanoTime();
        String said = cluster.scratch().resolve(name).toString();
        long pid = cluster.pid(2);
        try (Crew writer = new Crew(cluster)) {
            Crew.Child child = writer.add("writer", WRITE, cluster.mount(2).resolve(name), "", "w", said);
            writer.start();
            child.awaitTicks(20, LIMIT);
            for (int i = 0; i < times; i++) {
                cluster.cut(2, links);
                Thread.sleep(ms);
                cluster.join(2, links);
                child.awaitTicks(child.ticks() + 20, LIMIT);
            }
            assertTrue(child.isAlive());
        }
        assertEquals(pid, cluster.pid(2));
        assertTrue(cluster.isServing(2), cluster.logTails());
        run(1, name, TAKE, "w", said, said + ".taken");
        run(2, name, SAME, said + ".taken", said, "none");
    }

    /** Who does not reach the device for so long that it gives up ends, is fenced, and the other one takes over. */
    final void isWithoutDeviceForGood() throws Exception {
        String name = "good" + System.nanoTime();
        String said = cluster.scratch().resolve(name).toString();
        try (Crew writer = new Crew(cluster)) {
            Crew.Child child = writer.add("writer", WRITE, cluster.mount(2).resolve(name), "", "w", said);
            writer.start();
            child.awaitTicks(50, LIMIT);
            cluster.cut(2, "storage");
            long ms = cluster.await("it gives up", GIVES_UP_WITHIN, () -> !cluster.isServing(2));
            System.out.println(device + ", without the device: it gave up after " + ms + " ms");
        }
        run(1, name, TAKE, "w", said, said + ".taken");
        cluster.await("the fence", LIMIT, () -> cluster.count("fence_done:n2") == 1);
        cluster.join(2, "storage");
        cluster.remount(2);
        run(2, name, SAME, said + ".taken", said, "none");
    }

    private void run(int node, String name, String program, String... args) {
        List<Object> all = new ArrayList<>(List.of(cluster.mount(node).resolve(name), ""));
        all.addAll(List.of(args));
        Crew.run(cluster, LIMIT, "partition", program, all.toArray());
    }
}
