package io.etcfs.node.control;

import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** Asks daemons of this host. */
public final class ControlClient {
    private ControlClient() {}

    /** What a daemon says of itself. */
    public record Mounted(Path socket, String filesystem, String node, Path directory, long pid) {}

    /**
     * Sends one request and waits for the answer's text.
     *
     * @throws ControlException no daemon listens there, it did not answer in time, or it answered with an error
     */
    public static String ask(Path socket, String request, Duration timeout) throws ControlException {
        try (Question question = begin(socket, request)) {
            return question.answer(timeout);
        }
    }

    /** Sends one request. The daemon takes it before any that is sent later. */
    public static Question begin(Path socket, String request) throws ControlException {
        try {
            return new Question(socket, request, SocketChannel.open(UnixDomainSocketAddress.of(socket)));
        } catch (IOException e) {
            throw new ControlException("cannot ask the daemon at " + socket + ": " + e.getMessage());
        }
    }

    /** A request that was sent. */
    public static final class Question implements AutoCloseable {
        private final Path socket;
        private final String request;
        private final SocketChannel connection;
        private final CompletableFuture<String> answer = new CompletableFuture<>();

        private Question(Path socket, String request, SocketChannel connection) {
            this.socket = socket;
            this.request = request;
            this.connection = connection;
            Thread.ofVirtual().start(() -> {
                try {
                    Lines.write(connection, request);
                    answer.complete(Lines.read(connection));
                } catch (IOException e) {
                    answer.completeExceptionally(e);
                }
            });
        }

        /** @throws ControlException the daemon did not answer in time, or at all, or with an error */
        public String answer(Duration timeout) throws ControlException {
            try {
                String line = answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
                if (line.startsWith("ok")) {
                    return line.substring(2).strip();
                }
                throw new ControlException(line.startsWith("error ") ? line.substring(6) : "the daemon at " + socket + " answered: " + line);
            } catch (TimeoutException e) {
                throw new ControlException.Silent("the daemon at " + socket + " did not answer '" + request + "' within " + timeout.toMillis() + " ms");
            } catch (ExecutionException e) {
                throw new ControlException.Gone("cannot ask the daemon at " + socket + ": " + e.getCause().getMessage());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new ControlException("interrupted");
            }
        }

        @Override
        public void close() {
            try {
                connection.close();
            } catch (IOException e) {
                // Nothing more is wanted of it.
            }
        }
    }

    /** All daemons of this host that answer, in the order of their sockets' names. */
    public static List<Mounted> daemons(Path runDirectory, Duration timeout) {
        return daemons(runDirectory, timeout, silent -> {});
    }

    /** @param silent told the sockets of those that are there and do not answer in time: they are stopped, or hang */
    public static List<Mounted> daemons(Path runDirectory, Duration timeout, Consumer<Path> silent) {
        List<Path> sockets = new ArrayList<>();
        try (DirectoryStream<Path> found = Files.newDirectoryStream(runDirectory, "*.sock")) {
            found.forEach(sockets::add);
        } catch (IOException e) {
            return List.of();
        }
        sockets.sort(null);
        List<Mounted> daemons = new ArrayList<>();
        for (Path socket : sockets) {
            try {
                Map<String, String> said = fields(ask(socket, "mount", timeout));
                daemons.add(new Mounted(socket, said.get("filesystem"), said.get("node"), Path.of(said.get("directory")), Long.parseLong(said.get("pid"))));
            } catch (ControlException.Silent e) {
                silent.accept(socket);
            } catch (ControlException | RuntimeException e) {
                // A socket that nobody serves any more, or another version's.
                continue;
            }
        }
        return daemons;
    }

    private static Map<String, String> fields(String text) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (String field : text.split("\t")) {
            int equals = field.indexOf('=');
            if (equals > 0) {
                fields.put(field.substring(0, equals), field.substring(equals + 1));
            }
        }
        return fields;
    }
}
