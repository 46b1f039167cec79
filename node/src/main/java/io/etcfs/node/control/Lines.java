package io.etcfs.node.control;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** One line from or to a socket. */
final class Lines {
    static final int MAX_BYTES = 64 << 10;

    private Lines() {}

    static String read(SocketChannel from) throws IOException {
        ByteBuffer line = ByteBuffer.allocate(MAX_BYTES);
        while (line.hasRemaining()) {
            int start = line.position();
            if (from.read(line) < 0) {
                throw new EOFException("closed before the end of the line");
            }
            for (int i = start; i < line.position(); i++) {
                if (line.get(i) == '\n') {
                    return new String(line.array(), 0, i, StandardCharsets.UTF_8);
                }
            }
        }
        throw new IOException("line longer than " + MAX_BYTES + " bytes");
    }

    static void write(SocketChannel to, String line) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap((line.replace('\n', ' ') + "\n").getBytes(StandardCharsets.UTF_8));
        while (bytes.hasRemaining()) {
            to.write(bytes);
        }
    }
}
