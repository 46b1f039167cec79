package io.etcfs.it.outage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.it.cluster.DevCluster;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A node that was cut off with unpublished changes in a directory that another one has had since stops itself. Its mount stays, and fails every call. */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
class StoppedNodeTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    /** Makes files until one fails. */
    private static final String WRITE = "import os, sys\nn = 0\nwhile True:\n    with open('%s/s%d' % (sys.argv[1], n), 'wb') as f:\n        f.write(b'x' * 3000)\n    n += 1\n";
    /** Tells the errno of making a file in a directory. */
    private static final String LOOK = "import os, sys\ntry:\n    os.close(os.open(sys.argv[1] + '/after', os.O_CREAT | os.O_EXCL | os.O_WRONLY))\n    print(0)\nexcept OSError as e:\n    print(e.errno)\n";

    private static String python(String program, Path argument) throws IOException, InterruptedException {
        Process process = new ProcessBuilder("python3", "-c", program, argument.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        assertTrue(process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS), "it hangs");
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII).strip();
    }

    @Test
    void itsMountStaysAndFailsEveryCall() throws Exception {
        try (DevCluster cluster = DevCluster.up(2)) {
            Path directory = cluster.mount(1).resolve("d");
            Files.createDirectory(directory);
            Process writer = new ProcessBuilder("python3", "-c", WRITE, directory.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
            Thread.sleep(1_500);
            cluster.pause(1);
            DevCluster.Result sync = cluster.tryEtcfsctl("sync");
            assertTrue(sync.code() == 1 && sync.toString().contains("does not answer: what it has accepted may not be published"), sync.toString());
            DevCluster.Result umount = DevCluster.run(List.of(cluster.root().resolve("cli/target/dist/bin/etcfs").toString(), "umount", cluster.mount(1).toString()), Map.of(), LIMIT);
            assertTrue(umount.code() == 32 && umount.error().contains("does not answer, and what it has accepted may not be published"), umount.toString());
            Files.writeString(cluster.mount(2).resolve("d/other"), "other");
            Thread.sleep(3_000);
            cluster.resume(1);
            cluster.await("it stops", LIMIT, () -> !cluster.isServing(1));
            assertTrue(cluster.logOf(1).contains("was taken by another node while this one was cut off"), cluster.logTails());
            assertTrue(writer.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS));
            String errno = python(LOOK, cluster.mount(1));
            assertTrue(List.of("107", "103", "125").contains(errno), "errno " + errno + "\n" + cluster.logTails());
            assertTrue(!cluster.logOf(1).contains("leaving"), cluster.logTails());
            cluster.remount(1);
            assertEquals("other", Files.readString(directory.resolve("other")));
            assertEquals(0, cluster.tryEtcfsctl("fsck").code());
        }
    }
}
