package io.etcfs.it.crash;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A list of calls made from a seed, such that no two prefixes lead to the same tree: each step makes file i with contents that say i, gives it another name,
 * removes an older one and adds a line to a log; sometimes it links, truncates, makes and removes directories. Works in a directory of its own and, with
 * names that begin with its own, in one that others work in too.
 */
final class Script {
    private final Random random;
    private final String own;
    private final List<Call> calls = new ArrayList<>();
    private final List<String> files = new ArrayList<>();
    private final List<Integer> sizes = new ArrayList<>();
    private final List<String> extra = new ArrayList<>();
    private int logSize;
    private int number;

    private Script(long seed, String own) {
        this.random = new Random(seed);
        this.own = own;
    }

    static List<Call> of(long seed, String own, int steps) {
        Script s = new Script(seed, own);
        s.calls.add(new Call.Create(own + "/log"));
        for (int i = 0; i < steps; i++) {
            s.step(i);
        }
        return s.calls;
    }

    private String place(String name) {
        return random.nextInt(10) < 3 ? "shared/" + own + "-" + name : own + "/" + name;
    }

    private int length() {
        return switch (random.nextInt(20)) {
            case 0 -> 0;
            case 1 -> random.nextInt(300_000);
            case 2, 3 -> 4096 * (1 + random.nextInt(8));
            default -> random.nextInt(9_000);
        };
    }

    private void log() {
        int line = 20 + random.nextInt(200);
        calls.add(new Call.Extend(own + "/log", logSize, line, ++number, true));
        logSize += line;
    }

    private void step(int i) {
        String path = place("f" + i);
        calls.add(new Call.Create(path));
        int size = 0;
        for (int part = random.nextInt(3); part >= 0; part--) {
            int length = length();
            if (length > 0) {
                calls.add(new Call.Extend(path, size, length, ++number, random.nextInt(4) == 0));
                size += length;
            }
        }
        if (random.nextInt(8) == 0) {
            int to = size / 2 + random.nextInt(size + 5000);
            if (to != size) {
                calls.add(new Call.Truncate(path, to));
                size = to;
            }
            if (random.nextBoolean()) {
                int length = 1 + random.nextInt(6000);
                calls.add(new Call.Extend(path, size, length, ++number, false));
                size += length;
            }
        }
        if (random.nextInt(10) == 0) {
            calls.add(new Call.Chmod(path, 0600));
        }
        String moved = place("g" + i);
        calls.add(new Call.Rename(path, moved));
        files.add(moved);
        sizes.add(size);
        switch (random.nextInt(12)) {
            case 0 -> {
                String link = place("l" + i);
                calls.add(new Call.Link(moved, link));
                extra.add(link);
            }
            case 1 -> {
                String link = place("s" + i);
                calls.add(new Call.Symlink("to-" + i, link));
                extra.add(link);
            }
            case 2 -> {
                // Over another file.
                int victim = random.nextInt(files.size() - 1 == 0 ? 1 : files.size() - 1);
                if (files.size() > 1) {
                    String to = files.get(victim);
                    files.remove(victim);
                    sizes.remove(victim);
                    calls.add(new Call.Rename(moved, to));
                    files.set(files.size() - 1, to);
                }
            }
            case 3 -> {
                String dir = place("d" + i);
                calls.add(new Call.Mkdir(dir));
                calls.add(new Call.Create(dir + "/in"));
                calls.add(new Call.Extend(dir + "/in", 0, 100, ++number, false));
                String to = place("e" + i);
                calls.add(new Call.Rename(dir, to));
                if (random.nextBoolean()) {
                    // Or the tree would be again what it was.
                    log();
                    calls.add(new Call.Unlink(to + "/in"));
                    calls.add(new Call.Rmdir(to));
                }
            }
            default -> { }
        }
        while (files.size() > 12) {
            int victim = random.nextInt(files.size() - 1);
            calls.add(new Call.Unlink(files.remove(victim)));
            sizes.remove(victim);
        }
        while (extra.size() > 5) {
            calls.add(new Call.Unlink(extra.remove(0)));
        }
        log();
        switch (random.nextInt(40)) {
            case 0 -> calls.add(new Call.Fsync(own + "/log"));
            case 1 -> calls.add(new Call.Fsync(files.get(random.nextInt(files.size()))));
            case 2 -> calls.add(new Call.Fsync(random.nextBoolean() ? own : "shared"));
            default -> { }
        }
    }
}
