package io.etcfs.linux.call;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** mount(2), umount2(2) and statfs(2). All return minus an errno on failure. */
public final class MountCalls {
    public static final int MNT_FORCE = 1;
    public static final int MNT_DETACH = 2;
    public static final int UMOUNT_NOFOLLOW = 8;

    private static final int STATFS_STRUCT_BYTES = 120;

    private static final MethodHandle MOUNT = Native.link("mount", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle UMOUNT2 = Native.link("umount2", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT));
    private static final MethodHandle STATFS = Native.link("statfs", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));

    /** {@code flags}: MS_*. */
    public static int mount(String source, String target, String type, long flags, String data) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            return Native.result((int) MOUNT.invokeExact(errno, Native.string(arena, source), Native.string(arena, target), Native.string(arena, type), flags,
                    Native.string(arena, data)), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    public static int umount(String target, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            return Native.result((int) UMOUNT2.invokeExact(errno, Native.string(arena, target), flags), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    /** Only whether it succeeds. On a FUSE mount it always asks the server. */
    public static int statfs(String path) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Native.errnoOfThread();
            return Native.result((int) STATFS.invokeExact(errno, Native.string(arena, path), Native.memory(arena, STATFS_STRUCT_BYTES)), errno);
        } catch (Throwable t) {
            throw Native.unexpected(t);
        }
    }

    private MountCalls() {}
}
