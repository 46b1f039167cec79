package io.etcfs.it.crash;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Names, links, modes and bytes: as a script leads to them, or as {@code dump.py} saw them. */
final class Tree {
    enum Type { FILE, DIRECTORY, SYMLINK }

    static final class Inode {
        final Type type;
        final Set<String> paths = new TreeSet<>();
        int mode;
        int nlink;
        byte[] bytes = {};

        Inode(Type type, int mode) {
            this.type = type;
            this.mode = mode;
        }

        private boolean sameBut(Inode o) {
            return type == o.type && mode == o.mode && nlink == o.nlink && paths.equals(o.paths);
        }

        @Override
        public String toString() {
            return type + " " + Integer.toOctalString(mode) + " nlink " + nlink + " size " + bytes.length + " " + paths;
        }
    }

    private final TreeMap<String, Inode> entries = new TreeMap<>();

    /** What a crash may leave of a script: the calls that are in it, {@code partly} if also some bytes of the next. */
    record Match(int calls, boolean partly) {}

    /** A dump: a line for each entry (type, mode, inode, nlink, bytes in the blob, path), and the blob with all the bytes. */
    static Tree read(Path list, Path blob) {
        try {
            Tree tree = new Tree();
            byte[] all = Files.readAllBytes(blob);
            int at = 0;
            Map<String, Inode> byNumber = new TreeMap<>();
            for (String line : Files.readAllLines(list, StandardCharsets.UTF_8)) {
                String[] w = line.split(" ", 6);
                Inode node = byNumber.computeIfAbsent(w[2], n -> new Inode(Type.valueOf(w[0]), Integer.parseInt(w[1])));
                node.nlink = Integer.parseInt(w[3]);
                int length = Integer.parseInt(w[4]);
                byte[] bytes = Arrays.copyOfRange(all, at, at + length);
                at += length;
                if (!node.paths.isEmpty() && !Arrays.equals(bytes, node.bytes)) {
                    throw new AssertionError(w[5] + " and " + node.paths + " are one file with different bytes");
                }
                node.bytes = bytes;
                node.paths.add(w[5]);
                if (tree.entries.put(w[5], node) != null) {
                    throw new AssertionError(w[5] + " is listed twice");
                }
            }
            return tree;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Tree start(String own) {
        Tree tree = new Tree();
        tree.add(own, new Inode(Type.DIRECTORY, 0755)).nlink = 2;
        return tree;
    }

    private Inode add(String path, Inode node) {
        if (entries.put(path, node) != null) {
            throw new IllegalStateException(path + " is there");
        }
        node.paths.add(path);
        node.nlink++;
        return node;
    }

    private Inode get(String path) {
        Inode node = entries.get(path);
        if (node == null) {
            throw new IllegalStateException(path + " is not there");
        }
        return node;
    }

    private Inode remove(String path) {
        Inode node = entries.remove(path);
        if (node == null) {
            throw new IllegalStateException(path + " is not there");
        }
        node.paths.remove(path);
        node.nlink--;
        return node;
    }

    private void parentLinks(String path, int change, Set<String> touched) {
        String parent = path.substring(0, path.lastIndexOf('/'));
        Inode node = entries.get(parent);
        // The shared directory is not part of the tree: others work there.
        if (node != null) {
            node.nlink += change;
            touched.add(parent);
        }
    }

    /** Changes the tree as the call does; the paths whose entry is now another. */
    Set<String> apply(Call call) {
        Set<String> touched = new HashSet<>();
        switch (call) {
            case Call.Mkdir c -> {
                add(c.path(), new Inode(Type.DIRECTORY, 0755)).nlink = 2;
                touched.add(c.path());
                parentLinks(c.path(), 1, touched);
            }
            case Call.Create c -> touched.addAll(add(c.path(), new Inode(Type.FILE, 0644)).paths);
            case Call.Extend c -> {
                Inode node = get(c.path());
                if (node.bytes.length != c.at()) {
                    throw new IllegalStateException(c + " at size " + node.bytes.length);
                }
                node.bytes = Call.extended(node.bytes, c);
                touched.addAll(node.paths);
            }
            case Call.Truncate c -> {
                Inode node = get(c.path());
                node.bytes = Arrays.copyOf(node.bytes, c.size());
                touched.addAll(node.paths);
            }
            case Call.Chmod c -> {
                get(c.path()).mode = c.mode();
                touched.addAll(get(c.path()).paths);
            }
            case Call.Link c -> {
                Inode node = get(c.from());
                touched.addAll(add(c.to(), node).paths);
            }
            case Call.Symlink c -> {
                Inode node = new Inode(Type.SYMLINK, 0777);
                node.bytes = c.target().getBytes(StandardCharsets.UTF_8);
                touched.addAll(add(c.path(), node).paths);
            }
            case Call.Unlink c -> {
                touched.addAll(remove(c.path()).paths);
                touched.add(c.path());
            }
            case Call.Rmdir c -> {
                remove(c.path());
                touched.add(c.path());
                parentLinks(c.path(), -1, touched);
            }
            case Call.Rename c -> rename(c, touched);
            case Call.Fsync _ -> { }
        }
        return touched;
    }

    private void rename(Call.Rename c, Set<String> touched) {
        if (entries.containsKey(c.to())) {
            touched.addAll(remove(c.to()).paths);
        }
        Inode node = get(c.from());
        if (node.type == Type.DIRECTORY) {
            for (String inside : List.copyOf(entries.subMap(c.from() + "/", c.from() + "0").keySet())) {
                Inode child = remove(inside);
                String to = c.to() + inside.substring(c.from().length());
                add(to, child);
                touched.addAll(child.paths);
                touched.add(inside);
            }
            parentLinks(c.from(), -1, touched);
            parentLinks(c.to(), 1, touched);
        }
        remove(c.from());
        add(c.to(), node);
        touched.addAll(node.paths);
        touched.add(c.from());
    }

    private boolean agrees(Tree seen, String path) {
        Inode a = entries.get(path);
        Inode b = seen.entries.get(path);
        return a == null || b == null ? a == b : a.sameBut(b) && Arrays.equals(a.bytes, b.bytes);
    }

    /** All prefixes of the script that lead to what was seen, calls without an effect left out. */
    static List<Match> explain(List<Call> script, String own, Tree seen) {
        List<Match> found = new ArrayList<>();
        Tree tree = start(own);
        Set<String> wrong = new TreeSet<>();
        for (String path : seen.entries.keySet()) {
            if (!tree.agrees(seen, path)) {
                wrong.add(path);
            }
        }
        tree.entries.keySet().stream().filter(p -> !tree.agrees(seen, p)).forEach(wrong::add);
        if (wrong.isEmpty()) {
            found.add(new Match(0, false));
        }
        for (int i = 0; i < script.size(); i++) {
            if (script.get(i) instanceof Call.Extend e && tree.hasPartOf(seen, e, wrong)) {
                found.add(new Match(i, true));
            }
            Set<String> touched = tree.apply(script.get(i));
            for (String path : touched) {
                if (tree.agrees(seen, path)) {
                    wrong.remove(path);
                } else {
                    wrong.add(path);
                }
            }
            if (wrong.isEmpty() && !touched.isEmpty()) {
                found.add(new Match(i + 1, false));
            }
        }
        // What a later truncate leaves of a write may look like a part of it.
        if (found.stream().anyMatch(m -> !m.partly())) {
            found.removeIf(Match::partly);
        }
        return found;
    }

    /** True if what was seen is this tree with the first of the bytes that are being added: fewer, and the size says so. */
    private boolean hasPartOf(Tree seen, Call.Extend call, Collection<String> wrong) {
        Inode node = get(call.path());
        Inode other = seen.entries.get(call.path());
        return other != null && node.sameBut(other) && other.bytes.length > call.at() && other.bytes.length < call.at() + call.length() && node.paths.containsAll(wrong)
                && Arrays.equals(Arrays.copyOf(Call.extended(node.bytes, call), other.bytes.length), other.bytes);
    }

    /** How many calls must survive when the first {@code ended} have ended: all that came before the last fsync, whatever it was of. */
    static int durable(List<Call> script, int ended) {
        for (int i = ended - 1; i >= 0; i--) {
            if (script.get(i) instanceof Call.Fsync) {
                return i;
            }
        }
        return 0;
    }

    /** What differs between the tree that so many calls lead to and what was seen. */
    static String difference(List<Call> script, int calls, String own, Tree seen) {
        Tree tree = start(own);
        script.subList(0, calls).forEach(tree::apply);
        StringBuilder text = new StringBuilder("after " + calls + " calls:\n");
        Set<String> paths = new TreeSet<>(tree.entries.keySet());
        paths.addAll(seen.entries.keySet());
        int lines = 0;
        for (String path : paths) {
            if (!tree.agrees(seen, path) && lines++ < 12) {
                Inode a = tree.entries.get(path);
                Inode b = seen.entries.get(path);
                text.append("  ").append(path).append("\n    model ").append(a).append("\n    seen  ").append(b).append('\n');
                if (a != null && b != null && !Arrays.equals(a.bytes, b.bytes)) {
                    int at = Arrays.mismatch(a.bytes, b.bytes);
                    text.append("    bytes differ from ").append(at).append(": model ").append(excerpt(a.bytes, at)).append(", seen ").append(excerpt(b.bytes, at)).append('\n');
                }
            }
        }
        return text.toString();
    }

    private static String excerpt(byte[] bytes, int at) {
        return new String(Arrays.copyOfRange(bytes, Math.min(at, bytes.length), Math.min(at + 24, bytes.length)), StandardCharsets.ISO_8859_1).replace("\n", "\\n").replace("\0", "\\0");
    }

    /** The number of calls whose tree differs least from what was seen. */
    static int nearest(List<Call> script, String own, Tree seen) {
        Tree tree = start(own);
        Set<String> wrong = new TreeSet<>(seen.entries.keySet());
        wrong.removeIf(p -> tree.agrees(seen, p));
        int best = 0;
        int least = wrong.size();
        for (int i = 0; i < script.size(); i++) {
            for (String path : tree.apply(script.get(i))) {
                if (tree.agrees(seen, path)) {
                    wrong.remove(path);
                } else {
                    wrong.add(path);
                }
            }
            if (wrong.size() < least) {
                least = wrong.size();
                best = i + 1;
            }
        }
        return best;
    }

    boolean sameAs(Tree other) {
        return entries.keySet().equals(other.entries.keySet()) && entries.keySet().stream().allMatch(p -> agrees(other, p));
    }

    Map<String, Inode> entries() {
        return entries;
    }
}
