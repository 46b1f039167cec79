package io.etcfs.etcd;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;

/**
 * How to reach etcd. Checked when built: a wrong input is an {@link IllegalArgumentException} of one line that names it. {@code toString} tells no secret.
 *
 * @param endpoints    of the cluster's members; the first is preferred as long as it answers
 * @param caFile       PEM certificates that sign the members' own, or null for the machine's
 * @param certFile     PEM certificate of this client, or null
 * @param keyFile      its key, PEM, PKCS #8; given exactly if {@code certFile} is
 * @param user         of etcd's own authentication, or null
 * @param passwordFile its first line is the user's password; read again at each login. Given exactly if {@code user} is
 */
public record EtcdOptions(List<String> endpoints, Path caFile, Path certFile, Path keyFile, String user, Path passwordFile) {
    public EtcdOptions {
        endpoints = List.copyOf(endpoints);
        if (endpoints.isEmpty()) {
            throw new IllegalArgumentException("no etcd endpoint is given");
        }
        List<Endpoint> parsed = parse(endpoints, caFile != null || certFile != null);
        if (new LinkedHashSet<>(parsed).size() < parsed.size()) {
            throw new IllegalArgumentException("an etcd endpoint is given twice in " + String.join(",", endpoints));
        }
        boolean tls = parsed.getFirst().tls();
        if (parsed.stream().anyMatch(endpoint -> endpoint.tls() != tls)) {
            throw new IllegalArgumentException("etcd endpoints are partly https, partly http: " + String.join(",", endpoints));
        }
        if (!tls && (caFile != null || certFile != null)) {
            throw new IllegalArgumentException("an etcd CA or client certificate is given, but the endpoints are http");
        }
        if ((certFile == null) != (keyFile == null)) {
            throw new IllegalArgumentException("etcd client certificate and key are given only together");
        }
        if ((user == null) != (passwordFile == null)) {
            throw new IllegalArgumentException("etcd user and password file are given only together");
        }
        if (user != null && user.isEmpty()) {
            throw new IllegalArgumentException("etcd user is empty");
        }
        requireReadable("etcd CA file", caFile);
        requireReadable("etcd client certificate", certFile);
        requireReadable("etcd client key", keyFile);
        requireReadable("etcd password file", passwordFile);
    }

    public static EtcdOptions of(String... endpoints) {
        return new EtcdOptions(List.of(endpoints), null, null, null, null, null);
    }

    /** From a comma-separated list, as on a command line. */
    public static EtcdOptions ofList(String endpoints) {
        List<String> list = new ArrayList<>();
        for (String endpoint : endpoints.split(",")) {
            if (!endpoint.isBlank()) {
                list.add(endpoint.strip());
            }
        }
        return new EtcdOptions(list, null, null, null, null, null);
    }

    public EtcdOptions withTls(Path caFile, Path certFile, Path keyFile) {
        return new EtcdOptions(endpoints, caFile, certFile, keyFile, user, passwordFile);
    }

    public EtcdOptions withUser(String user, Path passwordFile) {
        return new EtcdOptions(endpoints, caFile, certFile, keyFile, user, passwordFile);
    }

    List<Endpoint> parsed() {
        return parse(endpoints, caFile != null || certFile != null);
    }

    String password() throws IOException {
        try (var lines = Files.lines(passwordFile)) {
            return lines.findFirst().orElse("");
        }
    }

    private static List<Endpoint> parse(List<String> endpoints, boolean tlsByDefault) {
        return endpoints.stream().map(endpoint -> Endpoint.parse(endpoint, tlsByDefault)).toList();
    }

    private static void requireReadable(String what, Path file) {
        if (file != null && !Files.isReadable(file)) {
            throw new IllegalArgumentException(what + " " + file + " can't be read");
        }
    }
}
