package io.etcfs.testkit.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Where {@code etcd} and {@code etcdctl} are: in PATH if they are new enough, else in the user's cache, built there if need be. */
record EtcdBinaries(Path etcd, Path etcdctl) {
    private static final String PINNED = "3.6.16";
    private static final Pattern VERSION = Pattern.compile("etcd Version: 3\\.(\\d+)\\.(\\d+)");

    /** @throws IllegalStateException there are none and none can be built */
    static EtcdBinaries find() throws IOException, InterruptedException {
        EtcdBinaries inPath = inPath();
        if (inPath != null) {
            return inPath;
        }
        String cacheHome = System.getenv("XDG_CACHE_HOME");
        Path cache = (cacheHome == null || cacheHome.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cacheHome))
            .resolve("etcfs").resolve("etcd-" + PINNED);
        EtcdBinaries cached = new EtcdBinaries(cache.resolve("etcd"), cache.resolve("etcdctl"));
        if (!cached.exist()) {
            build(cache);
        }
        return cached;
    }

    private boolean exist() {
        return Files.isExecutable(etcd) && Files.isExecutable(etcdctl);
    }

    private static EtcdBinaries inPath() throws IOException, InterruptedException {
        for (String directory : System.getenv().getOrDefault("PATH", "").split(":")) {
            EtcdBinaries found = new EtcdBinaries(Path.of(directory, "etcd"), Path.of(directory, "etcdctl"));
            if (!directory.isEmpty() && found.exist() && found.isNewEnough()) {
                return found;
            }
        }
        return null;
    }

    private boolean isNewEnough() throws IOException, InterruptedException {
        Process process = new ProcessBuilder(etcd.toString(), "--version").redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        Matcher matcher = VERSION.matcher(output);
        if (!matcher.find()) {
            return false;
        }
        int minor = Integer.parseInt(matcher.group(1));
        return minor > 5 || (minor == 5 && Integer.parseInt(matcher.group(2)) >= 13);
    }

    private static void build(Path cache) throws IOException, InterruptedException {
        Path script = null;
        for (Path directory = Path.of("").toAbsolutePath(); directory != null && script == null; directory = directory.getParent()) {
            Path candidate = directory.resolve("tools/etcd/build.sh");
            script = Files.isExecutable(candidate) ? candidate : null;
        }
        if (script == null) {
            throw new IllegalStateException("these tests need etcd 3.5.13 or newer and etcdctl in PATH or in " + cache);
        }
        Process process = new ProcessBuilder(script.toString(), cache.toString()).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        if (!process.waitFor(10, TimeUnit.MINUTES) || process.exitValue() != 0) {
            throw new IllegalStateException("these tests need etcd 3.5.13 or newer and etcdctl in PATH or in " + cache + "; building them failed: " + output);
        }
    }
}
