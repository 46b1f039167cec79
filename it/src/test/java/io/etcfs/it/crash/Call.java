package io.etcfs.it.crash;

import java.util.Arrays;

/** One system call, with paths relative to the directory that all nodes work in. {@code toString} is the line that {@code worker.py} runs. */
sealed interface Call {
    record Mkdir(String path) implements Call {
        @Override
        public String toString() {
            return "mkdir " + path;
        }
    }

    /** O_EXCL. */
    record Create(String path) implements Call {
        @Override
        public String toString() {
            return "create " + path;
        }
    }

    /** Bytes at the end of file, by pwrite or by a handle with O_APPEND; what they are is told by the number. */
    record Extend(String path, int at, int length, int number, boolean append) implements Call {
        byte[] bytes() {
            byte[] unit = (number + "\n").getBytes(java.nio.charset.StandardCharsets.US_ASCII);
            byte[] all = new byte[length];
            for (int i = 0; i < length; i++) {
                all[i] = unit[i % unit.length];
            }
            return all;
        }

        @Override
        public String toString() {
            return (append ? "append " : "pwrite ") + path + " " + at + " " + length + " " + number;
        }
    }

    record Truncate(String path, int size) implements Call {
        @Override
        public String toString() {
            return "truncate " + path + " " + size;
        }
    }

    record Chmod(String path, int mode) implements Call {
        @Override
        public String toString() {
            return "chmod " + path + " " + mode;
        }
    }

    record Rename(String from, String to) implements Call {
        @Override
        public String toString() {
            return "rename " + from + " " + to;
        }
    }

    record Link(String from, String to) implements Call {
        @Override
        public String toString() {
            return "link " + from + " " + to;
        }
    }

    record Symlink(String target, String path) implements Call {
        @Override
        public String toString() {
            return "symlink " + target + " " + path;
        }
    }

    record Unlink(String path) implements Call {
        @Override
        public String toString() {
            return "unlink " + path;
        }
    }

    record Rmdir(String path) implements Call {
        @Override
        public String toString() {
            return "rmdir " + path;
        }
    }

    /** Of a file or a directory: all before it must survive. */
    record Fsync(String path) implements Call {
        @Override
        public String toString() {
            return "fsync " + path;
        }
    }

    /** A file's bytes after this call. */
    static byte[] extended(byte[] before, Extend call) {
        byte[] after = Arrays.copyOf(before, call.at + call.length);
        System.arraycopy(call.bytes(), 0, after, call.at, call.length);
        return after;
    }
}
