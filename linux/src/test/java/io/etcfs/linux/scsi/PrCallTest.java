package io.etcfs.linux.scsi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteOrder;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** What goes to the kernel, byte by byte. Numbers and offsets are those that a C compiler makes of linux/pr.h. */
class PrCallTest {
    private static void assertCall(long request, String bytes, PrCall call) {
        assertEquals(Long.toHexString(request), Long.toHexString(call.request()), call.name());
        assertEquals(ByteOrder.LITTLE_ENDIAN, ByteOrder.nativeOrder(), "the bytes below are written so");
        assertEquals(bytes.replace(" ", ""), HexFormat.of().formatHex(call.argument()), call.name());
    }

    @Test
    void callsAreEncoded() {
        assertCall(0x401870c8L, "8877665544332211 0201000000000000 00000000 00000000", PrCall.register(0x1122334455667788L, 0x102));
        assertCall(0x401070c9L, "0201000000000000 03000000 00000000", PrCall.reserve(0x102));
        assertCall(0x401870ccL, "0201000000000000 8877665544332211 03000000 00000000", PrCall.preemptAndAbort(0x102, 0x1122334455667788L));
        assertCall(0x401070cdL, "0201000000000000 00000000 00000000", PrCall.clear(0x102));
    }

    @Test
    void answersAreToldApart() {
        assertEquals(PrStatus.DONE, PrStatus.of(0));
        assertEquals(PrStatus.CONFLICT, PrStatus.of(0x18), "pr_status, and what SCSI said before");
        assertEquals(PrStatus.CONFLICT, PrStatus.of(0x0800_0018), "with a driver byte");
        assertEquals(PrStatus.CONFLICT, PrStatus.of(0x83), "NVMe before Linux 6.4");
        assertEquals(PrStatus.CONFLICT, PrStatus.of(0x4083), "with do-not-retry");
        assertEquals(PrStatus.CONFLICT, PrStatus.of(-52));
        assertEquals(PrStatus.FAILED, PrStatus.of(0x02), "PR_STS_IOERR, a check condition");
        assertEquals(PrStatus.FAILED, PrStatus.of(-5));
        assertEquals(PrStatus.FAILED, PrStatus.of(-22));
        assertEquals(PrStatus.LOST, PrStatus.of(0x10000));
        assertEquals(PrStatus.LOST, PrStatus.of(0xe0000));
        assertEquals(PrStatus.LOST, PrStatus.of(0xf0000));
        assertEquals(PrStatus.UNSUPPORTED, PrStatus.of(-25));
        assertEquals(PrStatus.UNSUPPORTED, PrStatus.of(-95));
        assertEquals(PrStatus.FORBIDDEN, PrStatus.of(-1));
    }
}
