package io.etcfs.node.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

class LineFormatterTest {
    private static LogRecord record(Level level, String message) {
        LogRecord record = new LogRecord(level, message);
        record.setLoggerName("io.etcfs.node.daemon.Daemon");
        record.setInstant(Instant.ofEpochSecond(1_764_500_000L, 7_999_999));
        return record;
    }

    @Test
    void aLineHasTimeLevelLoggerAndMessage() {
        assertEquals("2025-11-30T10:53:20.007Z INFO  daemon.Daemon mounted filesystem=a\n", new LineFormatter(false).format(record(Level.INFO, "mounted filesystem=a")));
        assertEquals("2025-11-30T10:53:20.007Z ERROR daemon.Daemon a\\nb\n", new LineFormatter(false).format(record(Level.SEVERE, "a\nb")));
    }

    @Test
    void theJournalGetsThePriorityAndNoTime() {
        assertEquals("<4>daemon.Daemon slow\n", new LineFormatter(true).format(record(Level.WARNING, "slow")));
    }

    @Test
    void aStackTraceStaysOnTheLine() {
        LogRecord record = record(Level.SEVERE, "thread ended");
        record.setThrown(new IllegalStateException("x\ny", new RuntimeException("below")));
        String line = new LineFormatter(false).format(record);
        assertEquals(line.length() - 1, line.indexOf('\n'));
        assertTrue(line.contains("thread ended | java.lang.IllegalStateException: x\\ny | at io.etcfs.node.log.LineFormatterTest"), line);
        assertTrue(line.contains(" | java.lang.RuntimeException: below | at "), line);
    }
}
