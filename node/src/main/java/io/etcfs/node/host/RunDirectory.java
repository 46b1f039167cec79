package io.etcfs.node.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.zip.CRC32C;

/**
 * Where a daemon's lock file and control socket are: /run/etcfs, or what ETCFS_RUN_DIR names. One name for each filesystem and node.
 *
 * <p>A socket's path has 107 bytes at most (unix(7)): a long name is cut and gets a checksum.
 */
public record RunDirectory(Path path) {
    private static final int MAX_STEM = 80;

    public static RunDirectory ofThisHost() {
        String configured = System.getenv("ETCFS_RUN_DIR");
        return new RunDirectory(Path.of(configured == null || configured.isEmpty() ? "/run/etcfs" : configured));
    }

    /** Makes it, for its owner only. */
    public void create() throws IOException {
        if (!Files.isDirectory(path)) {
            Files.createDirectories(path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        }
    }

    public Path lockFile(String filesystem, String node) {
        return path.resolve(stem(filesystem, node) + ".lock");
    }

    public Path socket(String filesystem, String node) {
        return path.resolve(stem(filesystem, node) + ".sock");
    }

    /** Whether it can be the socket of a node of that filesystem, by its name alone. */
    public boolean mayBeOf(Path socket, String filesystem) {
        return socket.getFileName().toString().startsWith(filesystem + "-");
    }

    private static String stem(String filesystem, String node) {
        String full = filesystem + "-" + node;
        if (full.length() <= MAX_STEM) {
            return full;
        }
        CRC32C checksum = new CRC32C();
        checksum.update(full.getBytes(StandardCharsets.UTF_8));
        return full.substring(0, MAX_STEM - 9) + "-" + String.format("%08x", checksum.getValue());
    }
}
