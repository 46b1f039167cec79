package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * fsx 0.3.2 (crates.io): one file, read and written at random by calls and mappings, cut, grown, with holes and copies of ranges, compared with what it should be.
 * By turns: whenever it is closed it is opened on the other node. {@code -Detcfs.it.fsx.operations} (3000), {@code -Detcfs.it.fsx.seed} (random);
 * {@code -Detcfs.it.fsx.seconds}: on one mount, seed after seed, for that long.
 */
@OnCluster
class FsxTest {
    private static final Duration LIMIT = Duration.ofMinutes(10);
    private static final Pattern EMPTY_FALLOCATE = Pattern.compile("(?i)posix_fallocate.*\\( *0x0 bytes\\)");
    private static final int OPERATIONS = Integer.getInteger("etcfs.it.fsx.operations", 3000);
    private static final long SEED = Long.getLong("etcfs.it.fsx.seed", System.nanoTime() & 0xffffffffL);

    @Test
    void oneMount(DevCluster cluster) throws IOException, InterruptedException {
        run(cluster, Map.of(), 1);
    }

    @Test
    void twoMounts(DevCluster cluster) throws IOException, InterruptedException {
        Outside.program("ETCFS_SUITE_FSX");
        run(cluster, Outside.alternating(cluster), 6);
    }

    @Test
    @EnabledIfSystemProperty(named = "etcfs.it.fsx.seconds", matches = ".+")
    void forSomeTime(DevCluster cluster) throws IOException, InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.getLong("etcfs.it.fsx.seconds"));
        int whole = 0;
        int ended = 0;
        for (long seed = SEED; System.nanoTime() < end; seed++) {
            String said = run(cluster, Map.of(), 1, seed, 10 * OPERATIONS);
            if (said == null) {
                whole++;
            } else {
                // It draws a length of 0 now and then, which is EINVAL everywhere, and takes that for a filesystem that has no fallocate.
                assertTrue(said.contains("does not support posix_fallocate") && EMPTY_FALLOCATE.matcher(said).find(), "seed " + seed + ":\n" + said);
                ended++;
            }
        }
        System.out.println("seeds from " + SEED + " on, " + 10 * OPERATIONS + " operations each: " + whole + " without a difference, " + ended + " ended early");
        assertTrue(whole > ended);
    }

    private static void run(DevCluster cluster, Map<String, String> environment, int closes) throws IOException, InterruptedException {
        String said = run(cluster, environment, closes, SEED, OPERATIONS);
        assertNull(said, "seed " + SEED + ":\n" + said);
    }

    /** Null if there was no difference, else what it said. */
    private static String run(DevCluster cluster, Map<String, String> environment, int closes, long seed, int operations) throws IOException, InterruptedException {
        Path program = Outside.program("ETCFS_SUITE_FSX");
        Path config = Files.writeString(cluster.scratch().resolve("fsx-" + closes + ".toml"), """
                flen = 2097152
                [opsize]
                min = 1
                max = 131072
                [weights]
                close_open = %d
                invalidate = 1
                mapread = 5
                mapwrite = 5
                read = 8
                write = 8
                truncate = 3
                fsync = 0.5
                fdatasync = 0.5
                posix_fallocate = 2
                punch_hole = 3
                sendfile = 2
                posix_fadvise = 1
                copy_file_range = 3
                """.formatted(closes));
        Path file = Outside.directory(cluster, "fsx").resolve("file");
        try (Outside run = Outside.start(cluster, environment, program, "-f", config, "-N", operations, "-S", seed, "-P", cluster.scratch(), file)) {
            String said = run.await(cluster, LIMIT);
            return run.exitCode() == 0 ? null : said;
        }
    }
}
