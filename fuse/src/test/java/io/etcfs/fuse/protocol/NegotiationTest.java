package io.etcfs.fuse.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class NegotiationTest {
    /** Body of INIT from 6.18, as read from it. */
    private static final String INIT_6_18 = "07000000 2d000000 00000200 fbffff73 fd050000" + "00".repeat(44);
    private static final String INIT_5_14 = "07000000 22000000 00000200 fbffff33";
    private static final String INIT_6_2 = "07000000 26000000 00000200 fbffff73 0b000000" + "00".repeat(44);

    private static Negotiation negotiate(String body) throws UnsupportedKernelException {
        return negotiate(body, InitFlags.DEFAULT);
    }

    private static Negotiation negotiate(String body, long wanted) throws UnsupportedKernelException {
        Message message = new Message(Opcode.INIT.number(), body);
        return Negotiation.negotiate(InitRequest.decode(message.memory, 0), wanted);
    }

    private static String encode(Negotiation negotiation) {
        byte[] reply = new byte[200];
        java.util.Arrays.fill(reply, (byte) 0xee);
        int length = negotiation.encode(MemorySegment.ofArray(reply), 8, 0x0102030405060708L);
        return HexFormat.of().formatHex(MemorySegment.ofArray(reply).asSlice(8, length).toArray(ValueLayout.JAVA_BYTE));
    }

    @Test
    void decodesBothLengths() {
        assertEquals(new InitRequest(7, 45, 0x20000, 0x5fd73fffffbL), InitRequest.decode(new Message(26, INIT_6_18).memory, 0));
        assertEquals(new InitRequest(7, 34, 0x20000, 0x33fffffbL), InitRequest.decode(new Message(26, INIT_5_14).memory, 0));
        assertEquals(new InitRequest(7, 34, 0, 0), InitRequest.decode(new Message(26, "07000000 22000000").memory, 0));
    }

    @Test
    void linux618() throws Exception {
        Negotiation negotiation = negotiate(INIT_6_18);
        assertEquals(45, negotiation.minor());
        assertEquals(InitFlags.DEFAULT, negotiation.flags());
        assertTrue(negotiation.canExpireEntries());
        assertEquals("50000000 00000000 0807060504030201 07000000 2d000000 00000200 6be47472 ffff febf 00001000 01000000 0001 0000 10000000".replace(" ", "")
                + "00".repeat(28), encode(negotiation));
    }

    @Test
    void linux62HasNoMmapOfDirectFiles() throws Exception {
        Negotiation negotiation = negotiate(INIT_6_2);
        assertEquals(38, negotiation.minor());
        assertEquals(InitFlags.DEFAULT & ~InitFlags.DIRECT_IO_ALLOW_MMAP, negotiation.flags());
        assertTrue(negotiation.canExpireEntries());
    }

    @Test
    void linux514HasNoSecondFlagsWord() throws Exception {
        Negotiation negotiation = negotiate(INIT_5_14);
        assertEquals(34, negotiation.minor());
        assertEquals(InitFlags.DEFAULT & 0xffff_ffffL & ~InitFlags.INIT_EXT, negotiation.flags());
        assertFalse(negotiation.canExpireEntries());
        assertTrue(encode(negotiation).endsWith("00000000" + "00".repeat(28)));
    }

    @Test
    void secondFlagsWordCountsOnlyWithInitExt() throws Exception {
        assertEquals(0, negotiate("07000000 2d000000 00000200 fbffff33 fd050000" + "00".repeat(44)).flags() >>> 32);
        assertEquals(0, negotiate(INIT_6_18, InitFlags.DEFAULT & ~InitFlags.INIT_EXT).flags() >>> 32);
    }

    @Test
    void onlyWhatIsWantedIsTaken() throws Exception {
        assertEquals(InitFlags.ASYNC_READ | InitFlags.POSIX_LOCKS | InitFlags.FLOCK_LOCKS,
                negotiate(INIT_6_18, InitFlags.ASYNC_READ | InitFlags.POSIX_LOCKS | InitFlags.FLOCK_LOCKS).flags());
        for (long never : new long[] {InitFlags.AUTO_INVAL_DATA, InitFlags.WRITEBACK_CACHE, InitFlags.CACHE_SYMLINKS}) {
            assertFalse(negotiate(INIT_6_18).has(never));
        }
    }

    @Test
    void laterVersions() throws Exception {
        Negotiation minor = negotiate(INIT_6_18.replace("2d000000", "ff000000"));
        assertEquals(45, minor.minor());
        assertEquals(InitFlags.DEFAULT, minor.flags());
        Negotiation major = negotiate(INIT_6_18.replace("07000000 2d", "08000000 01"));
        assertTrue(major.newerMajor());
        assertTrue(encode(major).startsWith("50000000000000000807060504030201" + "07000000" + "2d000000"));
    }

    @Test
    void earlierVersionsAreRefused() {
        assertThrows(UnsupportedKernelException.class, () -> negotiate(INIT_5_14.replace("22000000", "21000000")));
        assertThrows(UnsupportedKernelException.class, () -> negotiate(INIT_5_14.replace("07000000", "06000000")));
    }
}
