package io.etcfs.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class NearestTest {
    @Test
    void countsWhatWasMistyped() {
        assertEquals(0, Nearest.distance("a", "a"));
        assertEquals(1, Nearest.distance("nmae", "name"));
        assertEquals(1, Nearest.distance("mout", "mount"));
        assertEquals(2, Nearest.distance("mout", "umount"));
        assertEquals(6, Nearest.distance("", "status"));
    }

    @Test
    void theNearestIsFirstAndWhatIsFarIsLeftOut() {
        List<String> commands = List.of("df", "fsck", "locks", "node", "status", "sync", "tokens");
        assertEquals(List.of("status"), Nearest.to("stat", commands));
        assertEquals(List.of("tokens"), Nearest.to("toekns", commands));
        assertEquals(List.of(), Nearest.to("x", commands));
        assertEquals(List.of(), Nearest.to("quota", commands));
        assertEquals(List.of("--name"), Nearest.to("-Name", List.of("--name", "--device")));
    }
}
