package io.etcfs.it.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.linux.iscsi.IscsiAddress;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** tgtd of one's own, with one unit over a file. */
final class TgtTarget implements AutoCloseable {
    static final String NAME = "iqn.2025-01.io.etcfs:test";

    private final Path directory;
    private final Path backing;
    private final int port;
    private Process process;

    /** @param backing the unit's contents */
    TgtTarget(Path directory, Path backing) throws IOException, InterruptedException {
        this.directory = directory;
        this.backing = backing;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        start();
    }

    /** It has forgotten everything but the unit's contents, whose size it asks for now. */
    void restart() throws IOException, InterruptedException {
        close();
        start();
    }

    private void start() throws IOException, InterruptedException {
        process = new ProcessBuilder("tgtd", "-f", "-C", control(), "--iscsi", "portal=127.0.0.1:" + port).redirectErrorStream(true)
                .redirectOutput(directory.resolve("tgtd.log").toFile()).start();
        for (int i = 0; admin("--op", "show", "--mode", "sys") != 0; i++) {
            assertEquals(true, i < 100 && process.isAlive(), "tgtd does not start: " + Files.readString(directory.resolve("tgtd.log")));
            Thread.sleep(100);
        }
        assertEquals(0, admin("--op", "new", "--mode", "target", "--tid", "1", "-T", NAME));
        assertEquals(0, admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", backing.toString()), Files.readString(directory.resolve("tgtd.log")));
        assertEquals(0, admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"));
    }

    static Path image(Path directory, long bytes) throws IOException {
        Path image = directory.resolve("unit.img");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(bytes);
        }
        return image;
    }

    /** The number of tgtd's control socket: 15 bits. */
    private String control() {
        return Integer.toString(port & 0x7fff);
    }

    /** How many sessions there are of initiators whose names have that part. */
    long sessions(String part) throws IOException, InterruptedException {
        Files.deleteIfExists(directory.resolve("tgtadm.log"));
        assertEquals(0, admin("--op", "show", "--mode", "target"));
        return Files.readString(directory.resolve("tgtadm.log")).lines().filter(l -> l.contains("Initiator: ") && l.contains(part)).count();
    }

    int port() {
        return port;
    }

    static IscsiAddress address(int port) {
        return IscsiAddress.parse("iscsi://127.0.0.1:" + port + "/" + NAME + "/1").orElseThrow();
    }

    private int admin(String... words) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("tgtadm", "-C", control(), "--lld", "iscsi"));
        command.addAll(List.of(words));
        Process p = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("tgtadm.log").toFile())).start();
        return p.waitFor(10, TimeUnit.SECONDS) ? p.exitValue() : -1;
    }

    @Override
    public void close() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }
}
