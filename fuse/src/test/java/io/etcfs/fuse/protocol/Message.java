package io.etcfs.fuse.protocol;

import io.etcfs.core.fs.Call;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;

/** A request from literal bytes, as on a little-endian machine, and the bytes of its reply. */
final class Message {
    private static final int REPLY_AT = 8192 - Exchange.OUT_HEADER_BYTES;
    static final int CAPACITY = 4096 + Exchange.READ_SLACK_BYTES;

    final MemorySegment memory = Arena.ofAuto().allocate(8192 + CAPACITY, 4096);
    final Exchange exchange = new Exchange(memory);

    /** {@code body}: hex with blanks, 'text' and \0. The header has unique 0102030405060708, node 1112.., uid 2122.., gid 3132.., pid 4142... */
    Message(int opcode, String body) {
        byte[] bytes = bytes("0807060504030201 1817161514131211 24232221 34333231 44434241 0000 0000" + body);
        Wire.u32(memory, 0, 8 + bytes.length);
        Wire.u32(memory, 4, opcode);
        Wire.bytes(memory, 8, bytes);
        // What is behind the request, or where the reply goes, is never zero by chance.
        memory.asSlice(8 + bytes.length).fill((byte) 0xee);
        exchange.pointAt(0, REPLY_AT, CAPACITY);
    }

    static byte[] bytes(String text) {
        StringBuilder hex = new StringBuilder();
        boolean quoted = false;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '\'') {
                quoted = !quoted;
            } else if (quoted) {
                hex.append(HexFormat.of().toHexDigits((byte) c));
            } else if (c != ' ') {
                hex.append(c);
            }
        }
        return HexFormat.of().parseHex(hex);
    }

    /** Hands it to a dispatcher of {@code operations}; returns the reply in hex, "" for none. */
    String dispatch(RecordedOperations operations) {
        return dispatch(operations, true);
    }

    String dispatch(RecordedOperations operations, boolean mayWait) {
        return dispatch(operations, mayWait, InitFlags.DEFAULT);
    }

    String dispatch(RecordedOperations operations, boolean mayWait, long flags) {
        Negotiation negotiation = new Negotiation(45, flags, 0, 0, 0, 0, 0, 1, false);
        new Dispatcher(operations.operations(), negotiation).dispatch(exchange, new Call(exchange.unique(), exchange.uid(), exchange.gid(), exchange.pid(),
                mayWait, Call.Interruption.NEVER));
        return reply();
    }

    String reply() {
        String first = HexFormat.of().formatHex(memory.asSlice(REPLY_AT, exchange.replyBytes()).toArray(ValueLayout.JAVA_BYTE));
        return exchange.data() == null ? first : first + HexFormat.of().formatHex(exchange.data().toArray(ValueLayout.JAVA_BYTE));
    }
}
