package io.etcfs.node.log;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/**
 * The process's log: a file, appended to, or standard error. One for a process. Lines are written as they come, without a buffer, so that what
 * a stopping node said last is there; a line that can't be written (disk full) is dropped.
 */
public final class Log {
    private final Path file;
    private final Logger root = Logger.getLogger("");
    private final Logger own = Logger.getLogger("io.etcfs");
    private final Writer writer;

    private Log(Path file, Writer writer) {
        this.file = file;
        this.writer = writer;
    }

    /**
     * Sends all logging of this process to {@code file}, or to standard error if it is null. The file is made with the first line, or by {@link #reopen}: who logs nothing leaves none.
     *
     * @throws IOException the file could not be written, as far as can be seen without making it
     */
    public static Log open(Path file, Level level) throws IOException {
        boolean forJournal = file == null && System.getenv("JOURNAL_STREAM") != null;
        if (file != null) {
            requireWritable(file);
        }
        Log log = new Log(file, new Writer(new LineFormatter(forJournal), file));
        LogManager.getLogManager().reset();
        log.root.addHandler(log.writer);
        log.setLevel(level);
        return log;
    }

    private static void requireWritable(Path file) throws IOException {
        boolean there = Files.exists(file);
        Path asked = there ? file : file.toAbsolutePath().getParent();
        if (Files.isDirectory(file) || !Files.isWritable(asked)) {
            throw new IOException(Files.isDirectory(file) ? "it is a directory" : !Files.exists(asked) ? "there is no directory " + asked : asked + " is not writable");
        }
    }

    /** Opens the file, or opens it again, after logrotate(8) has moved it. */
    public void reopen() throws IOException {
        writer.replace(open(file));
    }

    private static OutputStream open(Path file) throws IOException {
        return file == null ? System.err : Files.newOutputStream(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Libraries are never more talkative than warnings: their finer levels print every frame. */
    public void setLevel(Level level) {
        own.setLevel(level);
        root.setLevel(level.intValue() > Level.WARNING.intValue() ? level : Level.WARNING);
    }

    /** A level by the name users give it: error, warn, info, debug, trace. */
    public static Optional<Level> levelOf(String name) {
        return Optional.ofNullable(switch (name.toLowerCase(Locale.ROOT)) {
            case "error" -> Level.SEVERE;
            case "warn", "warning" -> Level.WARNING;
            case "info" -> Level.INFO;
            case "debug" -> Level.FINE;
            case "trace" -> Level.FINEST;
            default -> null;
        });
    }

    private static final class Writer extends Handler {
        private final ReentrantLock lock = new ReentrantLock();
        private final Path file;
        private OutputStream out;

        Writer(LineFormatter formatter, Path file) {
            this.file = file;
            setFormatter(formatter);
            setLevel(Level.ALL);
        }

        void replace(OutputStream next) throws IOException {
            OutputStream old;
            lock.lock();
            try {
                old = out;
                out = next;
            } finally {
                lock.unlock();
            }
            if (old != null && old != System.err) {
                old.close();
            }
        }

        @Override
        public void publish(LogRecord record) {
            if (!isLoggable(record)) {
                return;
            }
            byte[] line = getFormatter().format(record).getBytes(StandardCharsets.UTF_8);
            lock.lock();
            try {
                if (out == null) {
                    out = open(file);
                }
                out.write(line);
                out.flush();
            } catch (IOException e) {
                // Nowhere to say it.
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}
