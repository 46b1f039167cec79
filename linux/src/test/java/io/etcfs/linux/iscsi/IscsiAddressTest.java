package io.etcfs.linux.iscsi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class IscsiAddressTest {
    @Test
    void takesAddressTargetAndUnit() {
        assertEquals(Optional.of(new IscsiAddress("10.0.0.7:3260", "iqn.2025-01.org.example:disk", 1)), IscsiAddress.parse("iscsi://10.0.0.7/iqn.2025-01.org.example:disk/1"));
        assertEquals(Optional.of(new IscsiAddress("san:860", "eui.02004567A425678D", 255)), IscsiAddress.parse("iscsi://san:860/eui.02004567A425678D/255"));
        assertEquals(Optional.of(new IscsiAddress("[fd00::7]:3260", "iqn.2025-01.org.example:disk", 0)), IscsiAddress.parse("iscsi://[fd00::7]/iqn.2025-01.org.example:disk/0"));
    }

    @Test
    void refusesWhatIsNoUnit() {
        for (String text : List.of("iscsi://", "iscsi://host", "iscsi://host/iqn.2025-01.a:b", "iscsi://host/iqn.2025-01.a:b/256", "iscsi://host/disk/1", "iscsi://host/iqn.2025-01.a:b/1/2",
                "iscsi://user%pw@host/iqn.2025-01.a:b/1", "iscsi://host/iqn.2025-01.a b/1", "iscsi:///iqn.2025-01.a:b/1")) {
            assertTrue(IscsiAddress.isMeant(text));
            assertEquals(Optional.empty(), IscsiAddress.parse(text), text);
        }
    }

    @Test
    void itsTextIsTakenAgain() {
        IscsiAddress address = IscsiAddress.parse("iscsi://host/iqn.2025-01.a:b/7").orElseThrow();
        assertEquals(Optional.of(address), IscsiAddress.parse(address.toString()));
    }

    /** iSCSI names have no capitals and few signs; nodes that differ in those only must not log each other out. */
    @Test
    void initiatorsOfDifferentNodesDiffer() {
        assertTrue(IscsiDevice.initiatorName("data/n1").matches("iqn\\.2025-01\\.io\\.etcfs:data-n1-[0-9a-f]{8}"), IscsiDevice.initiatorName("data/n1"));
        assertNotEquals(IscsiDevice.initiatorName("data/n1"), IscsiDevice.initiatorName("data/N1"));
        assertNotEquals(IscsiDevice.initiatorName("data/n_1"), IscsiDevice.initiatorName("data/n.1"));
        assertNotEquals(IscsiDevice.initiatorName("a/b-c"), IscsiDevice.initiatorName("a-b/c"));
    }
}
