package io.etcfs.linux.mount;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A line of /proc/PID/mountinfo (proc_pid_mountinfo(5)), escapes undone. {@code minor} is the connection number of a FUSE mount. */
public record MountInfo(int id, int parentId, int major, int minor, String root, String mountPoint, String options, String type, String source,
        String superOptions) {
    /** The mounts of this process, in the order they were made: of several at one place, the last is the one that is seen. */
    public static List<MountInfo> ofThisProcess() throws IOException {
        return parse(new String(Files.readAllBytes(Path.of("/proc/self/mountinfo")), StandardCharsets.ISO_8859_1));
    }

    /** {@code text}: each character a byte. */
    static List<MountInfo> parse(String text) {
        List<MountInfo> mounts = new ArrayList<>();
        for (String line : text.split("\n")) {
            if (!line.isEmpty()) {
                mounts.add(parseLine(line));
            }
        }
        return mounts;
    }

    private static MountInfo parseLine(String line) {
        String[] fields = line.split(" ", -1);
        // Optional fields end with a lone dash.
        int dash = 6;
        while (!fields[dash].equals("-")) {
            dash++;
        }
        String[] device = fields[2].split(":");
        return new MountInfo(Integer.parseInt(fields[0]), Integer.parseInt(fields[1]), Integer.parseInt(device[0]), Integer.parseInt(device[1]),
                unescape(fields[3]), unescape(fields[4]), fields[5], unescape(fields[dash + 1]), unescape(fields[dash + 2]), unescape(fields[dash + 3]));
    }

    /** Blank, tab, newline and backslash are written as a backslash and three octal digits. */
    static String unescape(String field) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(field.length());
        int i = 0;
        while (i < field.length()) {
            char c = field.charAt(i);
            if (c == '\\' && i + 3 < field.length() && isOctal(field, i + 1)) {
                bytes.write(Integer.parseInt(field.substring(i + 1, i + 4), 8));
                i += 4;
            } else {
                bytes.write(c);
                i++;
            }
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    private static boolean isOctal(String field, int from) {
        for (int i = from; i < from + 3; i++) {
            if (field.charAt(i) < '0' || field.charAt(i) > '7') {
                return false;
            }
        }
        return true;
    }
}
