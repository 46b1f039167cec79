package io.etcfs.core.fs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class AclTest {
    private static final String OWNER_RWX = "01000700ffffffff";
    private static final String OWNER_RW = "01000600ffffffff";
    private static final String USER_1000_RWX = "02000700e8030000";
    private static final String GROUP_RX = "04000500ffffffff";
    private static final String MASK_RWX = "10000700ffffffff";
    private static final String OTHER_R = "20000400ffffffff";
    private static final String LIST = "02000000" + OWNER_RWX + USER_1000_RWX + GROUP_RX + MASK_RWX + OTHER_R;

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    private static Acl acl(String hex) throws FsException {
        return Acl.of(bytes(hex));
    }

    @Test
    void isEncodedAsItWasGiven() throws FsException {
        assertArrayEquals(bytes(LIST), acl(LIST).encode());
        assertFalse(acl(LIST).isMode());
        assertEquals(0774, acl(LIST).permissions());
        assertTrue(acl("02000000" + OWNER_RW + GROUP_RX + OTHER_R).isMode());
        assertEquals(0654, acl("02000000" + OWNER_RW + GROUP_RX + OTHER_R).permissions());
    }

    @Test
    void whatIsNoListIsRefused() {
        for (String wrong : new String[] {"", "020000", "02000000", LIST.substring(2), LIST + "00", "02000000" + OWNER_RWX + GROUP_RX,
            "02000000" + OWNER_RWX + USER_1000_RWX + GROUP_RX + OTHER_R, "02000000" + GROUP_RX + OWNER_RWX + OTHER_R, LIST + OTHER_R,
            "02000000" + OWNER_RWX + OWNER_RWX + GROUP_RX + OTHER_R, "02000000" + "01000800ffffffff" + GROUP_RX + OTHER_R,
            "02000000" + "03000700ffffffff" + GROUP_RX + OTHER_R, "02000000" + OWNER_RWX + "02000700ffffffff" + GROUP_RX + MASK_RWX + OTHER_R}) {
            assertEquals(Errno.EINVAL, assertThrows(FsException.class, () -> acl(wrong), wrong).errno());
        }
        assertEquals(Errno.EOPNOTSUPP, assertThrows(FsException.class, () -> acl("01000000" + OWNER_RWX + GROUP_RX + OTHER_R)).errno());
    }

    @Test
    void chmodChangesTheMask() throws FsException {
        assertArrayEquals(bytes("02000000" + OWNER_RW + USER_1000_RWX + GROUP_RX + "10000000ffffffff" + OTHER_R), acl(LIST).withPermissions(0604).encode());
        assertArrayEquals(bytes("02000000" + OWNER_RW + "04000000ffffffff" + OTHER_R), acl("02000000" + OWNER_RWX + GROUP_RX + OTHER_R).withPermissions(0604).encode());
    }

    @Test
    void aNewEntryGetsWhatBothAllow() throws FsException {
        Acl.Born file = acl(LIST).born(0660);
        assertEquals(0660, file.permissions());
        assertArrayEquals(bytes("02000000" + OWNER_RW + USER_1000_RWX + GROUP_RX + "10000600ffffffff" + "20000000ffffffff"), file.access().encode());
        Acl.Born plain = acl("02000000" + OWNER_RWX + GROUP_RX + OTHER_R).born(0666);
        assertEquals(0644, plain.permissions());
        assertNull(plain.access());
    }
}
