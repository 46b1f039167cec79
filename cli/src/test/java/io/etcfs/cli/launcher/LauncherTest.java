package io.etcfs.cli.launcher;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What bin/etcfs and bin/etcfsctl give to Java. */
@Timeout(60)
class LauncherTest {
    private static final Path SCRIPTS = Path.of("src/main/dist");

    @TempDir
    Path home;

    @BeforeEach
    void install() throws IOException {
        for (String file : new String[] {"bin/etcfs", "bin/etcfsctl", "lib/launcher.sh"}) {
            Files.createDirectories(home.resolve(file).getParent());
            Files.copy(SCRIPTS.resolve(file), home.resolve(file), StandardCopyOption.COPY_ATTRIBUTES);
        }
    }

    private record Result(int code, String out, String err) {}

    private Result run(Map<String, String> environment, String... command) throws IOException, InterruptedException {
        Path err = home.resolve("err");
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(err.toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("ETCFS_") || name.startsWith("JDK_JAVA") || name.startsWith("JAVA_TOOL"));
        builder.environment().putAll(environment);
        Process process = builder.start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(30, TimeUnit.SECONDS));
        return new Result(process.exitValue(), out, Files.readString(err));
    }

    /** A Java that only says how it was called. */
    private String echo() throws IOException {
        Path java = home.resolve("java");
        Files.writeString(java, "#!/usr/bin/env bash\nprintf '%s\\n' \"$@\" \"CLASSPATH=$CLASSPATH\"\n");
        assertTrue(java.toFile().setExecutable(true));
        return java.toString();
    }

    /** The cache holds for one order of the class path only, and directories list their files in any. */
    @Test
    void classPathIsInDefinedOrder() throws Exception {
        for (String jar : new String[] {"b.jar", "a-1.jar", "B.jar", "a.jar"}) {
            Files.createFile(home.resolve("lib/" + jar));
        }
        String expected = Stream.of("B.jar", "a-1.jar", "a.jar", "b.jar").map(jar -> home.resolve("lib/" + jar).toString()).collect(Collectors.joining(":", "CLASSPATH=", ""));
        Map<String, String> environment = Map.of("ETCFS_JAVA", echo(), "CLASSPATH", "/elsewhere", "LANG", "en_US.UTF-8");
        for (String program : new String[] {"etcfs", "etcfsctl"}) {
            assertEquals(expected, run(environment, home.resolve("bin/" + program).toString(), "--version").out.lines().toList().getLast());
        }
    }

    /** What the AWS SDK needs is loaded where it is asked for, after everything else: a cache is good for a class path that goes on. */
    @Test
    void theSdkComesLastAndOnlyForThoseWhoWantIt() throws Exception {
        Files.createFile(home.resolve("lib/b.jar"));
        Files.createDirectory(home.resolve("lib/aws"));
        Files.createFile(home.resolve("lib/aws/a.jar"));
        String daemon = home.resolve("bin/etcfs").toString();
        Map<String, String> environment = Map.of("ETCFS_JAVA", echo());
        String base = "CLASSPATH=" + home.resolve("lib/b.jar");
        for (String[] with : new String[][] {{"--fencer", "ebs"}, {"--fencer=ebs"}}) {
            assertEquals(base + ":" + home.resolve("lib/aws/a.jar"), run(environment, Stream.concat(Stream.of(daemon, "mount", "a", "/mnt", "--foreground"), Stream.of(with)).toArray(String[]::new)).out.lines().toList().getLast());
        }
        for (String[] without : new String[][] {{}, {"--fencer", "pr"}, {"--node", "ebs"}, {"--no-fencer"}}) {
            assertEquals(base, run(environment, Stream.concat(Stream.of(daemon, "mount", "a", "/mnt", "--foreground"), Stream.of(without)).toArray(String[]::new)).out.lines().toList().getLast());
        }
    }

    @Test
    void takesTheCacheIfThereIsOneAndDoesNotTrainFromIt() throws Exception {
        String daemon = home.resolve("bin/etcfs").toString();
        Map<String, String> plain = Map.of("ETCFS_JAVA", echo());
        assertFalse(run(plain, daemon, "mount", "--foreground").out.contains("AOT"));
        Path cache = home.resolve("lib/etcfs.aot");
        Files.createFile(cache);
        assertTrue(run(plain, daemon, "mount", "--foreground").out.lines().anyMatch(("-XX:AOTCache=" + cache)::equals));
        String training = run(Map.of("ETCFS_JAVA", echo(), "ETCFS_AOT_TRAINING", "/tmp/new.aot"), daemon, "mount", "--foreground").out;
        assertTrue(training.lines().anyMatch("-XX:AOTCacheOutput=/tmp/new.aot"::equals), training);
        assertFalse(training.contains("-XX:AOTCache="), training);
    }

    /** What can't even be started is not told apart from what it does otherwise: each command says so by its own code of a failure. */
    @Test
    void withoutJavaTheCodeIsTheCommandsOwn() throws Exception {
        Map<String, String> none = Map.of("ETCFS_JAVA", "/none");
        String[][] expected = {{"32", "etcfs", "mount", "a", "/mnt"}, {"32", "etcfs", "umount", "/mnt"}, {"1", "etcfs", "mkfs", "/dev/x"}, {"3", "etcfsctl", "--name", "a", "status"},
            {"8", "etcfsctl", "fsck"}, {"1", "etcfsctl", "df"}};
        for (String[] words : expected) {
            String[] command = Stream.concat(Stream.of(home.resolve("bin/" + words[1]).toString()), Stream.of(words).skip(2)).toArray(String[]::new);
            Result result = run(none, command);
            assertEquals(Integer.parseInt(words[0]), result.code, String.join(" ", words));
            assertTrue(result.err.contains("ETCFS_JAVA=/none is not a program"), result.err);
        }
    }

    /** Of another Java, of other jars, damaged: the program works, and says nothing of it. */
    @Test
    void cacheThatDoesNotFitIsPassedOverInSilence() throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.CLASS_PATH, Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(entry -> Path.of(entry).toUri().toString()).collect(Collectors.joining(" ")));
        try (OutputStream file = Files.newOutputStream(home.resolve("lib/all.jar")); JarOutputStream jar = new JarOutputStream(file, manifest)) {
            jar.finish();
        }
        Files.write(home.resolve("lib/etcfs.aot"), new byte[10_000]);
        Result result = run(Map.of("ETCFS_JAVA", Path.of(System.getProperty("java.home"), "bin/java").toString()), home.resolve("bin/etcfs").toString(), "--version");
        assertEquals("", result.err);
        assertTrue(result.out.startsWith("EtcFS ") && result.out.lines().count() == 1, result.out);
        assertEquals(0, result.code);
    }
}
