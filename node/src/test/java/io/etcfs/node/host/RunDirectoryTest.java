package io.etcfs.node.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class RunDirectoryTest {
    private final RunDirectory directory = new RunDirectory(Path.of("/run/etcfs"));

    @Test
    void filesAreNamedAfterFilesystemAndNode() {
        assertEquals(Path.of("/run/etcfs/data-n1.lock"), directory.lockFile("data", "n1"));
        assertEquals(Path.of("/run/etcfs/data-n1.sock"), directory.socket("data", "n1"));
    }

    @Test
    void aSocketOfTheLongestNamesCanBeBound() {
        String longest = "a".repeat(63);
        Path socket = directory.socket(longest, longest);
        assertTrue(socket.toString().length() <= 107, socket.toString());
        assertNotEquals(socket, directory.socket(longest, "a".repeat(62) + "b"));
    }
}
