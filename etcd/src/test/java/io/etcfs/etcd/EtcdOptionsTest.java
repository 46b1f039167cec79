package io.etcfs.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.core.store.StoreStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EtcdOptionsTest {
    @Test
    void endpointsHaveAHostAndAPort() {
        assertEquals(new Endpoint("h", 1, false), Endpoint.parse("h:1", false));
        assertEquals(new Endpoint("h", 1, true), Endpoint.parse("h:1", true));
        assertEquals(new Endpoint("h", 65535, true), Endpoint.parse("https://h:65535/", false));
        assertEquals(new Endpoint("::1", 2379, false), Endpoint.parse("http://[::1]:2379", true));
        for (String bad : List.of("", "h", "h:", ":1", "h:0", "h:65536", "::1:2379", "ftp://h:1", "h:1/path", "h:1,g:1")) {
            String message = assertThrows(IllegalArgumentException.class, () -> EtcdOptions.of(bad)).getMessage();
            assertTrue(message.contains("'" + bad + "'"), message);
        }
        assertEquals(List.of("a:1", "b:2"), EtcdOptions.ofList("a:1, b:2,").endpoints());
    }

    @Test
    void inputsThatDoNotFitTogetherAreNamed(@TempDir Path directory) throws Exception {
        Path file = Files.writeString(directory.resolve("file"), "pass\nword");
        assertRefused("no etcd endpoint", () -> EtcdOptions.ofList(" , "));
        assertRefused("given twice", () -> EtcdOptions.of("h:1", "http://h:1"));
        assertRefused("partly https", () -> EtcdOptions.of("https://h:1", "http://g:1"));
        assertRefused("but the endpoints are http", () -> EtcdOptions.of("http://h:1").withTls(file, null, null));
        assertRefused("certificate and key", () -> EtcdOptions.of("h:1").withTls(null, file, null));
        assertRefused("user and password file", () -> EtcdOptions.of("h:1").withUser("u", null));
        assertRefused("user is empty", () -> EtcdOptions.of("h:1").withUser("", file));
        assertRefused("etcd CA file " + directory.resolve("none"), () -> EtcdOptions.of("h:1").withTls(directory.resolve("none"), null, null));
        assertRefused("etcd CA file " + file, () -> TestStores.open(EtcdOptions.of("h:1").withTls(file, null, null)).close());
        assertEquals("pass", EtcdOptions.of("h:1").withUser("u", file).password());
    }

    @Test
    void versionsAreCompared() {
        assertEquals(new EtcdVersion(3, 5, 13), EtcdVersion.parse("3.5.13"));
        assertEquals(new EtcdVersion(3, 6, 0), EtcdVersion.parse("3.6.0-rc.1"));
        assertThrows(IllegalArgumentException.class, () -> EtcdVersion.parse("3.6"));
        StoreStatus status = new StoreStatus(1, 1, 0, 0, 0, false, List.of(
            new StoreStatus.Member("a:1", "3.5.12", 1, false, 0, 0, null),
            new StoreStatus.Member("b:1", "3.6.1", 2, true, 0, 0, null),
            new StoreStatus.Member("c:1", null, 0, false, 0, 0, "no answer in time")));
        assertEquals(List.of("etcd member a:1 is version 3.5.12, at least 3.5.13 is needed"), EtcdVersion.MINIMUM.complaints(status));
        assertThrows(IllegalStateException.class, () -> EtcdVersion.requireAtLeast(3, 5, 13, status));
        EtcdVersion.requireAtLeast(3, 5, 12, status);
    }

    private static void assertRefused(String part, Runnable making) {
        String message = assertThrows(IllegalArgumentException.class, making::run).getMessage();
        assertTrue(message.contains(part), message);
        assertTrue(message.lines().count() == 1, message);
    }
}
