package io.etcfs.cli.mkfs;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** What blkid(8) of util-linux finds on a device: it knows many more signatures than this program. */
final class Blkid {
    private static final int FOUND = 0;
    private static final int AMBIVALENT = 8;
    private static final long LIMIT_SECONDS = 20;

    private Blkid() {}

    /** A phrase with its article; empty if it finds nothing, or there is no blkid. */
    static Optional<String> find(Path device) {
        try {
            Process process = new ProcessBuilder("blkid", "-p", "-o", "export", "--", device.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
            process.getOutputStream().close();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return Optional.empty();
            }
            return describe(process.exitValue(), new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }

    static Optional<String> describe(int exitCode, String output) {
        if (exitCode == AMBIVALENT) {
            return Optional.of("traces of several filesystems");
        }
        if (exitCode != FOUND) {
            return Optional.empty();
        }
        Optional<String> type = value(output, "TYPE=");
        Optional<String> table = value(output, "PTTYPE=");
        return type.map(name -> "a signature of type " + name).or(() -> table.map(name -> "a partition table of type " + name));
    }

    private static Optional<String> value(String output, String key) {
        return output.lines().filter(line -> line.startsWith(key)).map(line -> line.substring(key.length())).findFirst();
    }
}
