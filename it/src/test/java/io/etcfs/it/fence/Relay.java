package io.etcfs.it.fence;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** A way to a server that a test can cut: connections end and are refused, or stay and carry nothing. */
final class Relay implements AutoCloseable {
    private enum State { OPEN, SILENT, CUT }

    private final ServerSocket server;
    private final InetSocketAddress target;
    private final List<Socket> sockets = new ArrayList<>();
    private State state = State.OPEN;

    Relay(int targetPort) throws IOException {
        server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
        target = new InetSocketAddress(InetAddress.getLoopbackAddress(), targetPort);
        Thread.ofVirtual().start(this::accept);
    }

    int port() {
        return server.getLocalPort();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = server.accept();
                Socket upstream = new Socket();
                synchronized (this) {
                    if (state == State.CUT) {
                        client.close();
                        continue;
                    }
                    upstream.connect(target);
                    client.setTcpNoDelay(true);
                    upstream.setTcpNoDelay(true);
                    sockets.addAll(List.of(client, upstream));
                }
                Thread.ofPlatform().daemon().start(() -> carry(client, upstream));
                Thread.ofPlatform().daemon().start(() -> carry(upstream, client));
            }
        } catch (IOException e) {
            // Closed.
        }
    }

    private void carry(Socket from, Socket to) {
        byte[] buffer = new byte[1 << 16];
        try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
            for (int n; (n = in.read(buffer)) >= 0; ) {
                awaitNotSilent();
                out.write(buffer, 0, n);
            }
        } catch (IOException e) {
            // Cut, or one side has ended.
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void awaitNotSilent() throws InterruptedException {
        while (state == State.SILENT) {
            wait();
        }
    }

    /** What is on its way and all that follows stays here. */
    synchronized void silence() {
        state = State.SILENT;
    }

    /** All connections end, and none is accepted. */
    synchronized void cut() throws IOException {
        state = State.CUT;
        for (Socket s : sockets) {
            s.close();
        }
        sockets.clear();
        notifyAll();
    }

    /** Carries again, also what was held back. */
    synchronized void open() {
        state = State.OPEN;
        notifyAll();
    }

    @Override
    public void close() throws IOException {
        server.close();
        cut();
    }
}
