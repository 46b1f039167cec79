package io.etcfs.core.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RepeatedTest {
    private static final long SECOND_NS = 1_000_000_000L;

    @Test
    void anOutageIsWarnedOfOnceAndThenLessAndLessOften() {
        Repeated repeated = new Repeated();
        List<Long> warned = new ArrayList<>();
        for (long s = 5; s < 20_000; s += 2) {
            if (repeated.level(s * SECOND_NS) == Level.WARNING) {
                warned.add(s - 5);
            }
        }
        assertEquals(List.of(0L, 10L, 30L, 70L, 150L, 310L, 630L, 1270L, 2550L, 5110L, 8710L, 12310L, 15910L, 19510L), warned);
    }
}
