package io.etcfs.linux.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CpuListsTest {
    @Test
    void rangesAndSingleNumbers() {
        assertEquals("{0}", CpuLists.parse("0\n").toString());
        assertEquals("{0, 1, 2, 3, 8, 10, 11}", CpuLists.parse("0-3,8,10-11\n").toString());
        assertEquals("{}", CpuLists.parse("\n").toString());
    }

    @Test
    void whatIsOnlineIsPossible() throws Exception {
        var missing = CpuLists.online();
        assertTrue(missing.cardinality() >= 1);
        missing.andNot(CpuLists.possible());
        assertTrue(missing.isEmpty());
    }
}
