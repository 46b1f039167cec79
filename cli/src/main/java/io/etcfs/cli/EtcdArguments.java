package io.etcfs.cli;

import io.etcfs.etcd.EtcdOptions;
import io.etcfs.node.daemon.EtcdConnection;
import io.etcfs.node.host.Refusal;
import io.etcfs.node.host.UserPath;
import java.nio.file.Path;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The options by which every command finds etcd. */
public final class EtcdArguments {
    @Option(names = "--etcd", paramLabel = "ENDPOINTS", defaultValue = "${env:ETCFS_ETCD}", scope = ScopeType.INHERIT,
            description = "etcd's members, HOST:PORT,... or with http:// or https:// before each. Default: ETCFS_ETCD.")
    private String endpoints;

    @Option(names = "--etcd-ca", paramLabel = "FILE", scope = ScopeType.INHERIT, description = "PEM certificates that sign etcd's.")
    private String caFile;

    @Option(names = "--etcd-cert", paramLabel = "FILE", scope = ScopeType.INHERIT, description = "PEM certificate of this client.")
    private String certFile;

    @Option(names = "--etcd-key", paramLabel = "FILE", scope = ScopeType.INHERIT, description = "Its key: PEM, PKCS #8.")
    private String keyFile;

    @Option(names = "--etcd-user", paramLabel = "USER", scope = ScopeType.INHERIT, description = "User of etcd's own authentication.")
    private String user;

    @Option(names = "--etcd-password-file", paramLabel = "FILE", scope = ScopeType.INHERIT, description = "File whose first line is the user's password.")
    private String passwordFile;

    @Option(names = {"--etcd-allow-old", "--allow-old-etcd"}, scope = ScopeType.INHERIT, description = "Accept members older than 3.5.13, which lose watch events: for tests.")
    private boolean allowOld;

    /** @param usageCode exit code of the refusal, where these options make no sense: the command's for wrong usage */
    public EtcdConnection connection(int usageCode) throws Refusal {
        if (endpoints == null || endpoints.isBlank()) {
            throw new Refusal(usageCode, "no etcd is named: give --etcd HOST:PORT,... or set ETCFS_ETCD");
        }
        try {
            EtcdOptions options = EtcdOptions.ofList(endpoints).withTls(path(caFile), path(certFile), path(keyFile)).withUser(user, path(passwordFile));
            return new EtcdConnection(options, allowOld);
        } catch (IllegalArgumentException e) {
            throw new Refusal(usageCode, e.getMessage() + ": check the --etcd options");
        }
    }

    private static Path path(String text) {
        return text == null ? null : UserPath.of(text);
    }
}
