package io.etcfs.node.json;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class JsonTest {
    enum Kind { SUB_SET }

    record Inner(long sizeBytes) {}

    record Outer(String clusterId, Inner inner, List<Inner> all, Kind kind, boolean isUp, Double ratio, Instant at, Optional<String> none) {}

    @Test
    void recordsBecomeObjectsInSnakeCase() {
        Outer outer = new Outer("x", new Inner(1L << 60), List.of(new Inner(1), new Inner(-2)), Kind.SUB_SET, true, 0.5, Instant.ofEpochSecond(1), Optional.empty());
        assertEquals("{\"cluster_id\":\"x\",\"inner\":{\"size_bytes\":1152921504606846976},\"all\":[{\"size_bytes\":1},{\"size_bytes\":-2}],\"kind\":\"sub_set\","
                + "\"is_up\":true,\"ratio\":0.5,\"at\":\"1970-01-01T00:00:01Z\",\"none\":null}", Json.of(outer));
    }

    @Test
    void textIsEscaped() {
        assertEquals("[\"a\\\"b\\\\c\\n\\u0001\\u007fä\",null,null]", Json.of(Arrays.asList("a\"b\\c\n\u0001\u007fä", null, Double.NaN)));
    }

    @Test
    void emptyContainersStayContainers() {
        record Nothing() {}
        assertEquals("{\"a\":[]}", Json.of(Map.of("a", List.of())));
        assertEquals("[{},{}]", Json.of(List.of(Map.of(), new Nothing())));
    }
}
