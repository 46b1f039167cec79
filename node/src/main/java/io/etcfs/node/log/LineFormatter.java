package io.etcfs.node.log;

import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.logging.Formatter;
import java.util.logging.Level;
import java.util.logging.LogRecord;

/**
 * One line for each event: time (RFC 3339, UTC, ms), level, last two parts of the logger's name, message. A stack trace goes on the same
 * line, its frames separated by {@code " | "}. Line ends inside a message are written as {@code \n}.
 */
final class LineFormatter extends Formatter {
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);

    private final boolean forJournal;

    /** @param forJournal instead of the time, begin with the priority as journald reads it from a stream (sd-daemon(3)) */
    LineFormatter(boolean forJournal) {
        this.forJournal = forJournal;
    }

    @Override
    public String format(LogRecord record) {
        StringBuilder line = new StringBuilder();
        if (forJournal) {
            line.append('<').append(priority(record.getLevel())).append('>');
        } else {
            TIME.formatTo(record.getInstant(), line);
            line.append(' ').append(name(record.getLevel())).append(' ');
        }
        line.append(shortName(record.getLoggerName())).append(' ').append(formatMessage(record));
        Throwable thrown = record.getThrown();
        while (thrown != null) {
            line.append(" | ").append(thrown);
            for (StackTraceElement frame : thrown.getStackTrace()) {
                line.append(" | at ").append(frame);
            }
            thrown = thrown.getCause();
        }
        for (int i = line.indexOf("\n"); i >= 0; i = line.indexOf("\n", i)) {
            line.replace(i, i + 1, "\\n");
        }
        return line.append('\n').toString();
    }

    private static String name(Level level) {
        int value = level.intValue();
        return value >= Level.SEVERE.intValue() ? "ERROR" : value >= Level.WARNING.intValue() ? "WARN " : value >= Level.INFO.intValue() ? "INFO " : value >= Level.FINE.intValue() ? "DEBUG" : "TRACE";
    }

    private static int priority(Level level) {
        int value = level.intValue();
        return value >= Level.SEVERE.intValue() ? 3 : value >= Level.WARNING.intValue() ? 4 : value >= Level.INFO.intValue() ? 6 : 7;
    }

    private static String shortName(String logger) {
        if (logger == null || logger.isEmpty()) {
            return "-";
        }
        int last = logger.lastIndexOf('.');
        return logger.substring(logger.lastIndexOf('.', last - 1) + 1);
    }
}
