package io.etcfs.it.exercise;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.Crew;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * The bytes of files are what a model in memory says, whatever is done to them and through whichever mount. {@code -Detcfs.it.exercise.seconds=8} for each of the
 * runs, {@code -Detcfs.it.exercise.seed} (random). On a local filesystem first: there it must find nothing.
 */
@OnCluster
class ExerciseTest {
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final int SECONDS = Integer.getInteger("etcfs.it.exercise.seconds", 8);
    private static final long SEED = Long.getLong("etcfs.it.exercise.seed", System.nanoTime() & 0xffffff);
    /** The checks at the end read all files, and the machine may be busy. */
    private static final int LIMIT_S = 3 * SECONDS + 120;

    @Test
    void aLocalFilesystemAgrees(DevCluster cluster) throws Exception {
        Path local = Files.createDirectory(cluster.scratch().resolve("exercise-" + NUMBER.incrementAndGet()));
        run(cluster, SEED, Integer.toString(SECONDS), List.of(local));
    }

    @Test
    void oneMountAgrees(DevCluster cluster) throws Exception {
        run(cluster, SEED, Integer.toString(SECONDS), List.of(directory(cluster, 1)));
    }

    @Test
    void twoMountsAgree(DevCluster cluster) throws Exception {
        run(cluster, SEED, Integer.toString(SECONDS), both(cluster));
    }

    /** They share batches, tokens and arenas, and no file. */
    @Test
    void threeInOneDirectoryAgree(DevCluster cluster) throws Exception {
        List<Path> both = both(cluster);
        try (Exerciser first = Exerciser.start(SEED, Integer.toString(SECONDS), both);
                Exerciser second = Exerciser.start(SEED + 1, Integer.toString(SECONDS), List.of(both.get(0)));
                Exerciser third = Exerciser.start(SEED + 2, Integer.toString(SECONDS), List.of(both.get(1)))) {
            for (Exerciser e : List.of(first, second, third)) {
                System.out.print(e.await(cluster, LIMIT_S));
            }
        }
    }

    /** {@code -Detcfs.planted=.*}: it can fail. */
    @Test
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void pagesKeptAfterARecallAreSeen() throws Exception {
        isSeen(Fault.CACHE_KEPT_AFTER_RECALL, 2);
    }

    @Test
    @EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
    void bytesThatComeBackAreSeen() throws Exception {
        isSeen(Fault.VALID_NOT_LOWERED, 1);
    }

    private static void isSeen(Fault fault, int mounts) throws Exception {
        try (DevCluster cluster = DevCluster.up(2, fault)) {
            List<Path> roots = both(cluster).subList(0, mounts);
            AssertionError seen = assertThrows(AssertionError.class, () -> run(cluster, SEED, "3000ops", roots));
            cluster.markBroken();
            System.out.println("PLANTED " + fault + ": " + seen.getMessage().lines().limit(3).reduce("", (a, b) -> a + b + "\n"));
            assertTrue(seen.getMessage().startsWith("DIFFERENCE"), seen.getMessage());
        }
    }

    private static void run(DevCluster cluster, long seed, String enough, List<Path> directories) throws IOException, InterruptedException {
        try (Exerciser exerciser = Exerciser.start(seed, enough, directories)) {
            System.out.print(exerciser.await(cluster, LIMIT_S));
        }
    }

    private static List<Path> both(DevCluster cluster) {
        Path one = directory(cluster, 1);
        return List.of(one, cluster.mount(2).resolve(one.getFileName()));
    }

    private static Path directory(DevCluster cluster, int node) {
        Path made = cluster.mount(node).resolve("exercise-" + NUMBER.incrementAndGet());
        Crew.run(cluster, Duration.ofSeconds(20), "begin", "os.mkdir(HERE)\n", made, made);
        return made;
    }
}
