package io.etcfs.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.etcfs.cli.ctl.Ctl;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** Exit codes and what goes to which stream. */
class CommandLineTest {
    /** Nobody listens on port 1. */
    private static final String[] NO_ETCD = {"--etcd", "127.0.0.1:1"};

    @TempDir
    private Path directory;

    record Ended(int exitCode, String out, String err) {}

    private static Ended run(Object program, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = Program.commandLine(program).setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int exitCode = line.execute(arguments);
        return new Ended(exitCode, out.toString(), err.toString());
    }

    private static Ended etcfs(String... arguments) {
        return run(new Etcfs(), arguments);
    }

    private static void assertOneLine(int exitCode, String start, String part, Ended ended) {
        assertEquals(exitCode, ended.exitCode(), ended.toString());
        assertEquals("", ended.out());
        assertEquals(ended.err().length() - 1, ended.err().indexOf('\n'), ended.err());
        assertTrue(ended.err().startsWith(start) && ended.err().contains(part), ended.err());
    }

    @Test
    void helpAndVersionGoToStandardOutput() {
        for (String[] arguments : new String[][] {{"--help"}, {"mkfs", "--help"}, {"mount", "--help"}, {"umount", "-h"}, {"version"}, {"--version"}, {"mount", "--version"}}) {
            Ended ended = etcfs(arguments);
            assertEquals(0, ended.exitCode());
            assertEquals("", ended.err());
            assertTrue(!ended.out().isEmpty());
        }
        Ended ended = run(new Ctl(), "status", "--help");
        assertEquals(0, ended.exitCode());
        assertTrue(ended.out().contains("3   down: etcd does not answer"), ended.out());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "2 | etcfs: |",
        "2 | etcfs: | format",
        "2 | etcfs mkfs: | mkfs",
        "2 | etcfs mkfs: | mkfs /dev/x --name a --arena-size many",
        "2 | etcfs mkfs: | mkfs /dev/x --name a --forc",
        "1 | etcfs mount: | mount",
        "1 | etcfs mount: | mount a /mnt",
        "1 | etcfs mount: | mount a /mnt --device /dev/x --mystery",
        "1 | etcfs umount: | umount",
    })
    void wrongUsageIsOneLine(int exitCode, String start, String arguments) {
        assertOneLine(exitCode, start, "--help'", etcfs(arguments == null ? new String[0] : arguments.split(" ")));
    }

    @Test
    void mkfsNamesTheBadInput() throws Exception {
        Path small = directory.resolve("small");
        Files.write(small, new byte[1 << 20]);
        assertOneLine(2, "etcfs mkfs: ", "--etcd", etcfs("mkfs", small.toString(), "--name", "a", "--etcd", ""));
        assertOneLine(2, "etcfs mkfs: ", "not host:port", etcfs("mkfs", small.toString(), "--name", "a", "--etcd", "nohost"));
        assertOneLine(2, "etcfs mkfs: ", "--name 'a b'", etcfs("mkfs", small.toString(), "--name", "a b", NO_ETCD[0], NO_ETCD[1]));
        for (String address : new String[] {"iscsi://10.0.0.7", "iscsi:/foo", "iscsi:foo", "ISCSI://10.0.0.7/iqn.2025-01.org.example:disk/1"}) {
            assertOneLine(2, "etcfs mkfs: ", "'" + address + "' is not usable: the form is iscsi://ADDRESS[:PORT]/TARGET/LUN", etcfs("mkfs", address, "--name", "a", NO_ETCD[0], NO_ETCD[1]));
        }
        assertOneLine(2, "etcfs mkfs: ", "--arena-size 5M is not usable: a multiple of 16M", etcfs("mkfs", small.toString(), "--name", "a", "--arena-size", "5M", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mkfs: ", "etcd does not answer", etcfs("mkfs", sparse().toString(), "--name", "a", "--arena-size", "16m", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mkfs: ", "/none does not exist", etcfs("mkfs", directory + "/none", "--name", "a", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mkfs: ", "neither a block device", etcfs("mkfs", directory.toString(), "--name", "a", NO_ETCD[0], NO_ETCD[1]));
    }

    private Path sparse() throws Exception {
        Path image = directory.resolve("sparse");
        try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
            file.setLength(64 << 20);
        }
        return image;
    }

    /** What was meant, where that can be guessed, and where to look. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "2 | etcfs: there is no command 'mout' (did you mean 'mount' or 'umount'?); see 'etcfs --help' | mout a /mnt",
        "2 | etcfs: there is no command 'fsck'; see 'etcfs --help' | fsck",
        "2 | etcfs mkfs: there is no option '--nmae' (did you mean '--name'?); see 'etcfs mkfs --help' | mkfs /dev/x --nmae a",
        "2 | etcfs mkfs: there is no option '--nmae' (did you mean '--name'?); see 'etcfs mkfs --help' | mkfs /dev/x --nmae=a",
        "2 | etcfs mkfs: there is no option '-name' (did you mean '--name'?); see 'etcfs mkfs --help' | mkfs /dev/x --etcd h:1 -name a",
        "2 | etcfs mkfs: there is no option '--zebra'; see 'etcfs mkfs --help' | mkfs /dev/x --name a --zebra",
        "2 | etcfs mkfs: 'b' is one argument too many; see 'etcfs mkfs --help' | mkfs /dev/x b --name a",
        "1 | etcfs mount: there is no option '--fence' (did you mean '--fencer'?); see 'etcfs mount --help' | mount a /mnt --device /dev/x --fence",
        "1 | etcfs umount: there is no option '-f'; see 'etcfs umount --help' | umount -f /mnt",
    })
    void misspeltWordsAreNamed(int exitCode, String line, String arguments) {
        assertOneLine(exitCode, line, "", etcfs(arguments.split(" ")));
    }

    @Test
    void sizesAndNumbersSayWhatIsTaken() {
        for (String[] size : new String[][] {{"mkfs", "/dev/x", "--name", "a", "--arena-size", "5Q"}, {"mount", "a", "/mnt", "--device", "/dev/x", "--cache-size", "5Q"}}) {
            Ended ended = etcfs(size);
            assertOneLine(size[0].equals("mkfs") ? 2 : 1, "etcfs " + size[0] + ": Invalid value for option '" + size[size.length - 2] + "'", "'5Q' is not a size: a number of bytes, or a number with K, M, G or T", ended);
        }
        assertOneLine(2, "etcfsctl sync: Invalid value for option '--timeout'", "'x' is not a whole number", run(new Ctl(), "sync", "--name", "a", "--timeout", "x"));
        assertOneLine(1, "etcfs mount: Invalid value for option '--hang-limit'", "'1m' is not a whole number", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--hang-limit", "1m"));
    }

    /** 1 says that it is degraded. */
    @Test
    void wrongUsageOfStatusIsNeverDegraded() {
        for (String[] arguments : new String[][] {{"statu"}, {"status", "--bogus"}, {"status", "--name", "a b", "--etcd", "127.0.0.1:1"}, {"status", "--name", "a", "--etcd", "nohost"}, {"status", "--name", "a", "--etcd", ""},
            {"status", "--name", "a", "--etcd", "https://127.0.0.1:1", "--etcd-ca", "/none"}, {"status", "--etcd", "127.0.0.1:1"}, {"status", "--name", "a", "-o", "xml"}}) {
            assertOneLine(2, "etcfsctl", "", run(new Ctl(), arguments));
        }
        String help = run(new Ctl(), "status", "--help").out();
        for (String word : new String[] {"0   healthy", "1   degraded", "2   usage", "up", "suspended", "joining", "departed", "vanished", "fenced", "lost", "GENERATION", "SESSION", "LEASE", "BATCH", "--all"}) {
            assertTrue(help.contains(word), word);
        }
    }

    /** Nothing of it reaches a terminal. */
    @Test
    void controlCharactersAreNotPrinted() {
        assertOneLine(1, "etcfs mount: ", "filesystem name 'a?[2Jb'", etcfs("mount", "a\u001b[2Jb", "/mnt", "--device", "/dev/x", "--no-fencer", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "'x y?'", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "-o", "x\ny\u0007", NO_ETCD[0], NO_ETCD[1]));
    }

    @Test
    void theTargetThatCannotBeReachedIsNamed() {
        String missing = "iscsi://127.0.0.1:1/iqn.2025-01.org.example:disk/1";
        assertOneLine(1, "etcfs mkfs: cannot open " + missing + ": 127.0.0.1:1 can't be reached (Connection refused): check", "", etcfs("mkfs", missing, "--name", "a", NO_ETCD[0], NO_ETCD[1]));
    }

    @Test
    void mountNamesTheBadInput() {
        assertOneLine(1, "etcfs mount: ", "--no-fencer", etcfs("mount", "a", "/mnt", "--device", "/dev/x", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "iscsi://ADDRESS", etcfs("mount", "a", "/mnt", "--device", "iscsi://10.0.0.7/1", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--node 'a/b'", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--node", "a/b", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "filesystem name '-'", etcfs("mount", "--device", "/dev/x", "--no-fencer", NO_ETCD[0], NO_ETCD[1], "--", "-", "/mnt"));
        assertOneLine(1, "etcfs mount: ", "--log-level 'loud'", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--log-level", "loud", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "'bogus'", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "-o", "_netdev,nofail,ro,bogus", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--cache-size 1M is not usable: from 16M to 64G", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--cache-size", "1M", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--cache-size 1T is not usable", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--cache-size", "1t", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--fencer 'stonith' is none of auto, ebs, none, pr", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--fencer", "stonith", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "is no EBS volume", etcfs("mount", "a", "/mnt", "--device", "iscsi://10.0.0.7/iqn.2025-01.org.example:disk/1", "--fencer", "ebs", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--ebs-volume is for", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--ebs-volume", "vol-01234567", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "give one of them", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--fencer", "pr", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--hang-limit 4", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--hang-limit", "4", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--transport 'pigeon'", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--transport", "pigeon", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfs mount: ", "--etcd", etcfs("mount", "a", "/mnt", "--device", "/dev/x", "--no-fencer", "--etcd", ""));
    }

    @Test
    void declareDeadNamesTheBadInput() {
        assertOneLine(2, "etcfsctl node: ", "a command is missing", run(new Ctl(), "node"));
        assertOneLine(2, "etcfsctl node declare-dead: ", "NODE", run(new Ctl(), "node", "declare-dead", "--name", "a"));
        assertOneLine(2, "etcfsctl node: ", "--name", run(new Ctl(), "node", "declare-dead", "n1"));
        assertOneLine(2, "etcfsctl node declare-dead: ", "NODE 'a/b' is not usable", run(new Ctl(), "node", "declare-dead", "a/b", "--name", "a", NO_ETCD[0], NO_ETCD[1]));
        assertOneLine(1, "etcfsctl node declare-dead: ", "etcd does not answer", run(new Ctl(), "node", "declare-dead", "n1", "-y", "--name", "a", NO_ETCD[0], NO_ETCD[1]));
    }

    @Test
    void umountOfNoMountIs32() {
        assertOneLine(32, "etcfs umount: ", "not mounted", etcfs("umount", directory.toString()));
        assertOneLine(32, "etcfs umount: ", "does not exist", etcfs("umount", directory + "/none/x"));
        assertOneLine(32, "etcfs umount: ", "not EtcFS", etcfs("umount", "/proc"));
    }

    @Test
    void ctlOptionsStandBeforeOrAfterTheCommand() {
        assertOneLine(2, "etcfsctl: ", "--name=NAME", run(new Ctl(), "--etcd", "127.0.0.1:1", "df"));
        assertOneLine(2, "etcfsctl: ", "command is missing", run(new Ctl(), "--name", "a"));
        assertOneLine(2, "etcfsctl", "output", run(new Ctl(), "-o", "xml", "df"));
        for (String[] arguments : new String[][] {{"--etcd", "127.0.0.1:1", "--name", "a", "-o", "json", "status"}, {"status", "--etcd", "127.0.0.1:1", "--name", "a", "-o", "json"}}) {
            Ended ended = run(new Ctl(), arguments);
            assertEquals(3, ended.exitCode());
            assertTrue(ended.out().startsWith("{\"schema\":1,\"health\":\"down\",\"problems\":[\"etcd does not answer"), ended.out());
        }
        assertOneLine(1, "etcfsctl df: ", "etcd does not answer", run(new Ctl(), "--etcd", "127.0.0.1:1", "--name", "a", "df"));
    }

    @Test
    void fsckHasTheExitCodesOfFsck() {
        Ended help = run(new Ctl(), "fsck", "--help");
        assertEquals(0, help.exitCode());
        assertTrue(help.out().contains("damage was found, and left as it is"), help.out());
        assertOneLine(8, "etcfsctl fsck: ", "etcd does not answer", run(new Ctl(), "--etcd", "127.0.0.1:1", "--name", "a", "fsck"));
        assertOneLine(16, "etcfsctl fsck: ", "--name=NAME", run(new Ctl(), "--etcd", "127.0.0.1:1", "fsck"));
        assertOneLine(16, "etcfsctl fsck: ", "a b", run(new Ctl(), "fsck", "--etcd", "127.0.0.1:1", "--name", "a b"));
        assertOneLine(16, "etcfsctl fsck: ", "--etcd", run(new Ctl(), "fsck", "--etcd", "", "--name", "a"));
        assertOneLine(16, "etcfsctl fsck: ", "--repair", run(new Ctl(), "fsck", "--repair", "--etcd", "127.0.0.1:1", "--name", "a"));
    }

    @Test
    void syncWithoutADaemonFails() {
        assertOneLine(1, "etcfsctl sync: ", "no daemon of filesystem 'none-of-these'", run(new Ctl(), "--name", "none-of-these", "sync"));
    }
}
