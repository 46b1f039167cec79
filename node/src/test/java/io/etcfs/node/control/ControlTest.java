package io.etcfs.node.control;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ControlTest {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @TempDir
    private Path directory;

    private static String handle(String command, String argument) throws ControlException {
        return switch (command) {
            case "mount" -> "filesystem=fs\tnode=n1\tdirectory=/mnt/a b\tpid=12\tstate=serving";
            case "echo" -> argument;
            case "fault" -> throw new IllegalStateException("two\nlines");
            default -> throw new ControlException("unknown command '" + command + "'");
        };
    }

    @Test
    void answersARequestPerConnection() throws Exception {
        Path socket = directory.resolve("fs-n1.sock");
        try (ControlServer server = ControlServer.open(socket, ControlTest::handle)) {
            assertEquals("12 34", ControlClient.ask(socket, "echo 12 34", PATIENCE));
            assertEquals("", ControlClient.ask(socket, "echo", PATIENCE));
            assertEquals("unknown command 'x'", assertThrows(ControlException.class, () -> ControlClient.ask(socket, "x", PATIENCE)).getMessage());
            assertEquals("java.lang.IllegalStateException: two lines", assertThrows(ControlException.class, () -> ControlClient.ask(socket, "fault", PATIENCE)).getMessage());
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)));
        }
        assertFalse(Files.exists(socket));
    }

    @Test
    void aClientThatSaysNothingHoldsUpNobody() throws Exception {
        Path socket = directory.resolve("s.sock");
        try (ControlServer server = ControlServer.open(socket, ControlTest::handle); SocketChannel silent = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
            silent.write(ByteBuffer.wrap(new byte[] {'e', 'c'}));
            assertEquals("1", ControlClient.ask(socket, "echo 1", PATIENCE));
        }
    }

    @Test
    void aDaemonThatDoesNotAnswerIsGivenUp() throws Exception {
        Path socket = directory.resolve("s.sock");
        CountDownLatch never = new CountDownLatch(1);
        try (ControlServer server = ControlServer.open(socket, (command, argument) -> {
            try {
                never.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return "";
        })) {
            assertTrue(assertThrows(ControlException.class, () -> ControlClient.ask(socket, "sync", Duration.ofMillis(50))).getMessage().contains("did not answer"));
        } finally {
            never.countDown();
        }
    }

    /** As umount asks how a node leaves: first, and gets the answer when the socket is gone. */
    @Test
    void whatWasAskedBeforeTheEndIsAnsweredAfterIt() throws Exception {
        Path socket = directory.resolve("s.sock");
        CompletableFuture<String> end = new CompletableFuture<>();
        ControlServer server = ControlServer.open(socket, (command, argument) -> command.equals("left") ? end.join() : "");
        try (ControlClient.Question question = ControlClient.begin(socket, "left")) {
            ControlClient.ask(socket, "sync", PATIENCE);
            server.close();
            end.complete("clean");
            server.awaitAnswers(PATIENCE);
            assertEquals("clean", question.answer(PATIENCE));
        }
    }

    @Test
    void whoEndsWithoutAnAnswerIsGone() throws Exception {
        Path socket = directory.resolve("s.sock");
        try (ServerSocketChannel listening = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            listening.bind(UnixDomainSocketAddress.of(socket));
            try (ControlClient.Question question = ControlClient.begin(socket, "left")) {
                listening.accept().close();
                assertThrows(ControlException.Gone.class, () -> question.answer(PATIENCE));
            }
        }
    }

    @Test
    void findsTheDaemonsThatAnswerAndReplacesDeadSockets() throws Exception {
        Path live = directory.resolve("b.sock");
        Files.writeString(directory.resolve("a.sock"), "left over");
        Files.writeString(live, "left over");
        try (ControlServer server = ControlServer.open(live, ControlTest::handle)) {
            assertEquals(List.of(new ControlClient.Mounted(live, "fs", "n1", Path.of("/mnt/a b"), 12)), ControlClient.daemons(directory, PATIENCE));
        }
        assertEquals(List.of(), ControlClient.daemons(directory.resolve("none"), PATIENCE));
    }
}
