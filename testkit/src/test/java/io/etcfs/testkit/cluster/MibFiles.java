package io.etcfs.testkit.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Files of 1 MiB whose contents follow from their paths. */
final class MibFiles {
    private static final int MIB = 1 << 20;

    private MibFiles() {}

    static byte[] content(String path) {
        byte[] bytes = new byte[MIB];
        new Random(path.hashCode()).nextBytes(bytes);
        return bytes;
    }

    /** Writes files until there is no room; returns the paths of those that are whole. */
    static List<String> fill(TestClient by, String directory) throws FsException {
        List<String> names = new ArrayList<>();
        while (true) {
            String path = directory + "/f" + names.size();
            try {
                by.write(path, 0, content(path), 0);
            } catch (FsException e) {
                assertEquals(Errno.ENOSPC, e.errno());
            }
            if (by.stat(path).size() < MIB) {
                by.unlink(path);
                return names;
            }
            names.add(path);
        }
    }

    static void check(TestClient by, List<String> paths) throws FsException {
        for (String path : paths) {
            assertArrayEquals(content(path), by.read(path), path);
        }
    }
}
