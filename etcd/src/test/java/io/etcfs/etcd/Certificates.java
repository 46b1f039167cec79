package io.etcfs.etcd;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Certificates for tests, made with openssl: two authorities; a server and a client certificate of the first. */
final class Certificates {
    private Certificates() {}

    static void make(Path directory) throws IOException, InterruptedException {
        for (String ca : List.of("ca", "otherca")) {
            openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + ca,
                "-keyout", ca + ".key", "-out", ca + ".pem");
        }
        Files.writeString(directory.resolve("extensions"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
        for (String name : List.of("server", "client")) {
            openssl(directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", name + ".key", "-out", name + ".csr");
            openssl(directory, "x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "extensions", "-out", name + ".pem");
        }
    }

    private static void openssl(Path directory, String... args) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("openssl"));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IOException("openssl " + String.join(" ", args) + ": " + output);
        }
    }
}
