package io.etcfs.fuse.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class NotificationTest {
    private final byte[] bytes = new byte[200];
    private final MemorySegment memory = MemorySegment.ofArray(bytes);

    private void check(String expected, int length) {
        assertEquals(expected.replace(" ", ""), HexFormat.of().formatHex(Arrays.copyOfRange(bytes, 8, 8 + length)));
    }

    @Test
    void inodes() {
        Arrays.fill(bytes, (byte) 0xee);
        check("28000000 02000000 0000000000000000 0807060504030201 ffffffffffffffff 0000000000000000",
                Notification.invalidateAttributes(memory, 8, 0x0102030405060708L));
        check("28000000 02000000 0000000000000000 0807060504030201 1817161514131211 2827262524232221",
                Notification.invalidatePages(memory, 8, 0x0102030405060708L, 0x1112131415161718L, 0x2122232425262728L));
    }

    @Test
    void entries() {
        Arrays.fill(bytes, (byte) 0xee);
        byte[] name = "name".getBytes(StandardCharsets.UTF_8);
        check("25000000 03000000 0000000000000000 0807060504030201 04000000 00000000 6e616d6500",
                Notification.invalidateEntry(memory, 8, 0x0102030405060708L, name, false));
        check("25000000 03000000 0000000000000000 0807060504030201 04000000 01000000 6e616d6500",
                Notification.invalidateEntry(memory, 8, 0x0102030405060708L, name, true));
    }

    @Test
    void prune() {
        Arrays.fill(bytes, (byte) 0xee);
        check("30000000 09000000 0000000000000000 02000000 00000000 0000000000000000 0807060504030201 1817161514131211",
                Notification.prune(memory, 8, new long[] {0x0102030405060708L, 0x1112131415161718L}));
        assertThrows(IllegalArgumentException.class, () -> Notification.prune(memory, 8, new long[Notification.MAX_PRUNED + 1]));
    }

    @Test
    void namesAreBounded() {
        assertThrows(IllegalArgumentException.class, () -> Notification.invalidateEntry(memory, 8, 1, new byte[1025], false));
    }
}
