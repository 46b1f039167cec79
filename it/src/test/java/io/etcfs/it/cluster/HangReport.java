package io.etcfs.it.cluster;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Who hangs, and where: kernel stacks of the processes and of all threads in uninterruptible sleep, the daemons' Java stacks, tokens and wants in etcd. */
final class HangReport {
    private HangReport() {}

    static String of(DevCluster cluster, Set<Long> stuck) {
        StringBuilder text = new StringBuilder();
        Set<Long> shown = new LinkedHashSet<>();
        text.append("==== stuck processes\n");
        for (long pid : stuck) {
            shown.add(pid);
            process(text, pid, false);
        }
        text.append("==== other threads in uninterruptible sleep\n");
        for (Path p : list(Path.of("/proc"))) {
            String name = p.getFileName().toString();
            if (name.chars().allMatch(Character::isDigit) && !shown.contains(Long.parseLong(name))) {
                process(text, Long.parseLong(name), true);
            }
        }
        cluster.connections().forEach((point, minor) -> text.append("==== ").append(point).append(": requests without an answer: ")
                .append(DevCluster.readString(Path.of("/sys/fs/fuse/connections", Integer.toString(minor), "waiting"))));
        for (Map.Entry<Integer, Long> daemon : cluster.pids().entrySet()) {
            text.append("==== daemon of n").append(daemon.getKey()).append('\n');
            process(text, daemon.getValue(), true);
            text.append(javaStacks(cluster, daemon.getValue()));
        }
        for (String part : List.of("lock:", "want:")) {
            try {
                text.append("==== ").append(part).append('\n').append(cluster.keys(part));
            } catch (AssertionError e) {
                text.append(e.getMessage()).append('\n');
            }
        }
        return text.append(cluster.logTails()).toString();
    }

    private static void process(StringBuilder text, long pid, boolean onlyUninterruptible) {
        for (Path task : list(Path.of("/proc", Long.toString(pid), "task"))) {
            String status = DevCluster.readString(task.resolve("status"));
            String state = status.lines().filter(l -> l.startsWith("State:")).findFirst().orElse("").replace("State:", "").strip();
            if (onlyUninterruptible && !state.startsWith("D")) {
                continue;
            }
            text.append(pid).append('/').append(task.getFileName()).append(' ').append(DevCluster.readString(task.resolve("comm")).strip()).append(" [").append(state).append("] wchan ")
                    .append(DevCluster.readString(task.resolve("wchan"))).append(" syscall ").append(DevCluster.readString(task.resolve("syscall")).strip()).append('\n');
            DevCluster.readString(task.resolve("stack")).lines().forEach(l -> text.append("    ").append(l).append('\n'));
        }
    }

    /** With virtual threads, which only a dump to a file has. */
    private static String javaStacks(DevCluster cluster, long pid) {
        Path dump = cluster.scratch().resolve("threads-" + pid);
        String jcmd = Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
        DevCluster.Result result = DevCluster.run(List.of(jcmd, Long.toString(pid), "Thread.dump_to_file", "-overwrite", dump.toString()), Map.of(), Duration.ofSeconds(8));
        return result.code() == 0 ? DevCluster.readString(dump) : "no Java stacks: " + result.output() + result.error() + "\n";
    }

    static List<Path> list(Path directory) {
        List<Path> all = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
            entries.forEach(all::add);
        } catch (IOException e) {
            // Ended meanwhile.
        }
        return all;
    }
}
