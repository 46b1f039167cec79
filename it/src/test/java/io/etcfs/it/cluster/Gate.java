package io.etcfs.it.cluster;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Stands between a node and etcd as a network does: what is on its way can be held up, in one direction or both, and then goes on late, or is lost with its
 * connections. Nobody is told while it is held up.
 */
public final class Gate implements AutoCloseable {
    /** What all keys of filesystems begin with: beats of leases and what belongs to HTTP/2 alone have none. */
    private static final String KEYS = "etcfs/";

    /** What does not get through. */
    public enum Held { NOTHING, REQUESTS, ANSWERS, ALL }

    private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final InetSocketAddress etcd;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private Held held = Held.NOTHING;
    private String begin = "";
    private int counted;
    private int last = Integer.MAX_VALUE;
    private Runnable atEnd = () -> {};

    public Gate(String host, int port) throws IOException {
        etcd = new InetSocketAddress(host, port);
        Thread.ofVirtual().start(this::serve);
    }

    public String endpoint() {
        return "http://127.0.0.1:" + server.getLocalPort();
    }

    public void hold(Held what) {
        lock.lock();
        try {
            held = what;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** What was held up arrives now, or never. */
    public void letGo(boolean lost) {
        if (lost) {
            sockets.forEach(Gate::reset);
        }
        hold(Held.NOTHING);
    }

    /**
     * From the first message of the node that has this text in it on, so many with keys of a filesystem arrive. The next one, and all after it, do not: that runs first, once, on the thread that has the
     * message.
     *
     * @param from empty for any with keys
     */
    public void endAfter(String from, int messages, Runnable what) {
        lock.lock();
        try {
            begin = from;
            counted = 0;
            last = messages;
            atEnd = what;
        } finally {
            lock.unlock();
        }
    }

    /** Ends {@link #endAfter}; whether all messages have arrived. */
    public boolean goOn() {
        lock.lock();
        try {
            boolean all = counted <= last;
            last = Integer.MAX_VALUE;
            return all;
        } finally {
            lock.unlock();
        }
    }

    private boolean passes(byte[] message, int length) {
        lock.lock();
        try {
            if (last == Integer.MAX_VALUE || counted > last) {
                return counted <= last;
            }
            String text = new String(message, 0, length, StandardCharsets.ISO_8859_1);
            if (!text.contains(KEYS) || counted == 0 && !text.contains(begin)) {
                return true;
            }
            counted++;
            if (counted > last) {
                atEnd.run();
            }
            return counted <= last;
        } finally {
            lock.unlock();
        }
    }

    private void serve() {
        while (!server.isClosed()) {
            try {
                Socket node = server.accept();
                Socket member = new Socket();
                sockets.add(node);
                sockets.add(member);
                Thread.ofVirtual().start(() -> connect(node, member));
            } catch (IOException e) {
                // Closed, or a connection that ended at once.
                continue;
            }
        }
    }

    private void connect(Socket node, Socket member) {
        try {
            awaitPassage(Held.REQUESTS);
            member.connect(etcd, 2_000);
            node.setTcpNoDelay(true);
            member.setTcpNoDelay(true);
            Thread.ofVirtual().start(() -> carry(node, member, Held.REQUESTS));
            carry(member, node, Held.ANSWERS);
        } catch (IOException e) {
            end(node, member);
        }
    }

    private void carry(Socket from, Socket to, Held direction) {
        byte[] buffer = new byte[64 << 10];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                awaitPassage(direction);
                if (direction == Held.REQUESTS && !passes(buffer, n)) {
                    return;
                }
                out.write(buffer, 0, n);
            }
        } catch (IOException e) {
            // One side has ended; so does the other.
        } finally {
            end(from, to);
        }
    }

    private void awaitPassage(Held direction) {
        lock.lock();
        try {
            while (held == direction || held == Held.ALL) {
                changed.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }

    private void end(Socket one, Socket other) {
        for (Socket s : new Socket[] {one, other}) {
            sockets.remove(s);
            reset(s);
        }
    }

    private static void reset(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (IOException e) {
            // It is closed.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        letGo(true);
    }
}
