package io.etcfs.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.logging.Level;
import java.util.logging.LogManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LogTest {
    private final System.Logger logger = System.getLogger("io.etcfs.test");

    @TempDir
    Path directory;

    @AfterEach
    void forget() {
        LogManager.getLogManager().reset();
    }

    @Test
    void theFileIsMadeWithTheFirstLine() throws Exception {
        Path file = directory.resolve("log");
        Log.open(file, Level.INFO);
        logger.log(System.Logger.Level.DEBUG, "not at this level");
        assertFalse(Files.exists(file), "who logs nothing leaves nothing");
        logger.log(System.Logger.Level.INFO, "something");
        assertEquals(1, Files.readAllLines(file).size());
        assertTrue(Files.readString(file).contains("something"));
    }

    @Test
    void openedAgainItIsThere() throws Exception {
        Path file = directory.resolve("log");
        Log log = Log.open(file, Level.INFO);
        log.reopen();
        assertTrue(Files.exists(file));
        logger.log(System.Logger.Level.INFO, "one");
        Files.move(file, directory.resolve("log.1"));
        log.reopen();
        logger.log(System.Logger.Level.INFO, "two");
        assertEquals(1, Files.readAllLines(file).size());
    }

    @Test
    void whatCannotBeWrittenIsRefusedAtOnce() {
        assertThrows(IOException.class, () -> Log.open(directory, Level.INFO));
        assertTrue(assertThrows(IOException.class, () -> Log.open(directory.resolve("none/log"), Level.INFO)).getMessage().contains("none"));
    }
}
