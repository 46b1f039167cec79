package io.etcfs.core.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.label.HistoryMarks.Mark;
import io.etcfs.core.record.proto.Super;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class HistoryMarksTest {
    private static final Super SUPER = Super.newBuilder().setFilesystemUuid(Label.bytesOf(new UUID(1, 2))).build();
    private final ArrayDevice device = new ArrayDevice(1 << 20);

    private Set<Mark> read() throws Exception {
        return new HashSet<>(HistoryMarks.read(device, SUPER));
    }

    @Test
    void twoBlocksByTurns() throws Exception {
        assertEquals(Set.of(), read());
        HistoryMarks marks = new HistoryMarks(device, SUPER, "n1");
        marks.write(100, 90);
        assertEquals(Set.of(new Mark("n1", 100, 90)), read());
        marks.write(200, 150);
        assertEquals(Set.of(new Mark("n1", 100, 90), new Mark("n1", 200, 150)), read());
        marks.write(300, 250);
        assertEquals(Set.of(new Mark("n1", 300, 250), new Mark("n1", 200, 150)), read());
    }

    @Test
    void anyNumberOfNodesWithinTheReservedBlocks() throws Exception {
        for (int i = 0; i < 200; i++) {
            HistoryMarks marks = new HistoryMarks(device, SUPER, "node-" + i);
            marks.write(i, i);
            marks.write(i, i);
        }
        assertEquals(15, HistoryMarks.read(device, SUPER).size());
        byte[] all = device.bytes;
        for (int i = 0; i < BlockDevice.BLOCK_BYTES; i++) {
            assertEquals(0, all[i]);
            assertEquals(0, all[16 * BlockDevice.BLOCK_BYTES + i]);
        }
    }

    @Test
    void aTornOneOrAnothersIsNone() {
        byte[] uuid = new byte[16];
        byte[] whole = HistoryMarks.encode(new Mark("n1", 5, 4), uuid);
        assertEquals(new Mark("n1", 5, 4), HistoryMarks.decode(whole, uuid));
        for (int at : List.of(0, 10, 24, 32, 41, 43, 2000, 4095)) {
            byte[] torn = whole.clone();
            torn[at]++;
            assertNull(HistoryMarks.decode(torn, uuid), "byte " + at);
        }
        byte[] other = uuid.clone();
        other[15] = 1;
        assertNull(HistoryMarks.decode(whole, other));
    }
}
