package io.etcfs.it.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

class TapTest {
    @Test
    void failuresAreTold() {
        Tap tap = Tap.of("1..4\nok 1\nnot ok 2 - tried 'unlink a', expected 0, got ENOENT\nnot ok 3 # TODO later\nok 4\n");
        assertEquals(Map.of(2, "not ok 2 - tried 'unlink a', expected 0, got ENOENT"), tap.failed());
        assertEquals(3, tap.held());
        assertTrue(tap.complete());
    }

    @Test
    void whatIsCutShortIsNotComplete() {
        assertFalse(Tap.of("1..3\nok 1\nok 2\n").complete());
        assertFalse(Tap.of("ok 1\n").complete());
        assertFalse(Tap.of("1..0\n").complete());
        assertFalse(Tap.of("").complete());
    }
}
