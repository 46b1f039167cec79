package io.etcfs.node.control;

import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Serves the control socket. One request for each connection: a line {@code COMMAND [ARGUMENT]}, answered by a line {@code ok [TEXT]} or
 * {@code error TEXT}. UTF-8; a line has at most {@link Lines#MAX_BYTES} bytes.
 *
 * <table>
 * <caption>commands</caption>
 * <tr><td>{@code status}</td><td>the node's state and counters, as JSON</td></tr>
 * <tr><td>{@code mount}</td><td>what is mounted where, as {@code KEY=VALUE} separated by tabs</td></tr>
 * <tr><td>{@code sync [MS]}</td><td>pushes the pipeline and answers when all that was acknowledged before is published</td></tr>
 * <tr><td>{@code log-level LEVEL}</td><td>changes the log level</td></tr>
 * <tr><td>{@code left}</td><td>answers when the node has left, after the mount has ended: {@code clean}, or {@code unclean} if it counts as vanished</td></tr>
 * <tr><td>{@code stop}</td><td>as SIGTERM; answers at once</td></tr>
 * </table>
 */
public final class ControlServer implements AutoCloseable {
    private static final Logger LOG = System.getLogger(ControlServer.class.getName());

    /** Carries out one request. May block. Called on a virtual thread of its own. */
    public interface Handler {
        /**
         * @param argument empty if there is none
         * @return the answer's text: one line
         * @throws ControlException the request is answered {@code error}
         */
        String handle(String command, String argument) throws ControlException;
    }

    private final Path path;
    private final ServerSocketChannel listening;
    private final Handler handler;
    /** One for each connection that was accepted. */
    private final Set<Thread> requests = ConcurrentHashMap.newKeySet();

    private ControlServer(Path path, ServerSocketChannel listening, Handler handler) {
        this.path = path;
        this.listening = listening;
        this.handler = handler;
    }

    /**
     * Replaces what lies at {@code path}: the caller holds the lock that makes it the only daemon of that name. Only the socket's owner may
     * connect.
     */
    public static ControlServer open(Path path, Handler handler) throws IOException {
        Files.deleteIfExists(path);
        ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            listening.bind(UnixDomainSocketAddress.of(path));
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
        } catch (IOException e) {
            listening.close();
            throw e;
        }
        ControlServer server = new ControlServer(path, listening, handler);
        Thread.ofVirtual().name("control").start(server::acceptAll);
        return server;
    }

    private void acceptAll() {
        while (true) {
            try {
                SocketChannel connection = listening.accept();
                Thread request = Thread.ofVirtual().name("control-request").unstarted(() -> {
                    serve(connection);
                    requests.remove(Thread.currentThread());
                });
                requests.add(request);
                request.start();
            } catch (ClosedChannelException e) {
                return;
            } catch (IOException e) {
                LOG.log(Level.WARNING, "control socket stopped: " + e.getMessage());
                return;
            }
        }
    }

    private void serve(SocketChannel connection) {
        try (connection) {
            String request = Lines.read(connection);
            int space = request.indexOf(' ');
            String command = space < 0 ? request : request.substring(0, space);
            String argument = space < 0 ? "" : request.substring(space + 1).strip();
            String answer;
            try {
                answer = "ok " + handler.handle(command, argument);
            } catch (ControlException e) {
                answer = "error " + e.getMessage();
            } catch (RuntimeException e) {
                LOG.log(Level.ERROR, "control request " + command, e);
                answer = "error " + e;
            }
            Lines.write(connection, answer);
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "control connection: " + e.getMessage());
        }
    }

    /** Waits until what was accepted is answered. For who is about to end. */
    public void awaitAnswers(Duration limit) throws InterruptedException {
        long until = System.nanoTime() + limit.toNanos();
        for (Thread request : requests) {
            if (!request.join(Duration.ofNanos(Math.max(1, until - System.nanoTime())))) {
                return;
            }
        }
    }

    /** Stops accepting and removes the socket. What was accepted goes on. */
    @Override
    public void close() {
        try {
            listening.close();
            Files.deleteIfExists(path);
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "closing the control socket: " + e.getMessage());
        }
    }
}
