package io.etcfs.linux.iscsi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** The functions of libiscsi.so.7 (iscsi.h, scsi-lowlevel.h of 1.18 and newer) that are used here. A context is used by one thread at a time. */
final class LibIscsi {
    static final int SESSION_NORMAL = 2;
    static final int HEADER_DIGEST_NONE = 0;
    static final int LUN_RESET = 5;
    static final int NO_TASK = 0xffffffff;
    private static final String AUTHENTICATION_FAILED = "(" + 0x201 + ")";
    static final int XFER_NONE = 0;
    static final int XFER_READ = 1;
    static final int XFER_WRITE = 2;

    /** struct scsi_task: the sense key and code that a CHECK CONDITION came with. */
    private static final long TASK_SENSE_KEY = 52;
    private static final long TASK_SENSE_CODE = 56;

    /** What is called when a command has ended. */
    interface Callback {
        /**
         * @param status of the command, or of libiscsi if it had no answer
         * @param data   what the status says
         * @param id     as it was given
         */
        void done(int status, MemorySegment data, long id);
    }

    private static final Linker LINKER = Linker.nativeLinker();
    private static final FunctionDescriptor CALLBACK = FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT, ADDRESS, ADDRESS);

    private final MethodHandle createContext;
    private final MethodHandle destroyContext;
    private final MethodHandle setTargetName;
    private final MethodHandle setSessionType;
    private final MethodHandle setHeaderDigest;
    private final MethodHandle setIsid;
    private final MethodHandle setUser;
    private final MethodHandle setTimeout;
    private final MethodHandle setTcpUserTimeout;
    private final MethodHandle setNoReconnect;
    private final MethodHandle connect;
    private final MethodHandle getError;
    private final MethodHandle getFd;
    private final MethodHandle whichEvents;
    private final MethodHandle service;
    private final MethodHandle createTask;
    private final MethodHandle addDataIn;
    private final MethodHandle freeTask;
    private final MethodHandle command;
    private final MethodHandle taskManagement;

    /** @throws UnsatisfiedLinkError the library is not installed, or lacks a function */
    private LibIscsi() {
        SymbolLookup library;
        try {
            library = SymbolLookup.libraryLookup("libiscsi.so.7", Arena.global());
        } catch (IllegalArgumentException e) {
            throw new UnsatisfiedLinkError("libiscsi.so.7 can't be loaded");
        }
        createContext = link(library, "iscsi_create_context", FunctionDescriptor.of(ADDRESS, ADDRESS));
        destroyContext = link(library, "iscsi_destroy_context", FunctionDescriptor.of(JAVA_INT, ADDRESS));
        setTargetName = link(library, "iscsi_set_targetname", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
        setSessionType = link(library, "iscsi_set_session_type", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
        setHeaderDigest = link(library, "iscsi_set_header_digest", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
        setIsid = link(library, "iscsi_set_isid_random", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));
        setUser = link(library, "iscsi_set_initiator_username_pwd", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
        setTimeout = link(library, "iscsi_set_timeout", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
        setTcpUserTimeout = link(library, "iscsi_set_tcp_user_timeout", FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT));
        setNoReconnect = link(library, "iscsi_set_noautoreconnect", FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT));
        connect = link(library, "iscsi_full_connect_sync", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
        getError = link(library, "iscsi_get_error", FunctionDescriptor.of(ADDRESS, ADDRESS));
        getFd = link(library, "iscsi_get_fd", FunctionDescriptor.of(JAVA_INT, ADDRESS));
        whichEvents = link(library, "iscsi_which_events", FunctionDescriptor.of(JAVA_INT, ADDRESS));
        service = link(library, "iscsi_service", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
        createTask = link(library, "scsi_create_task", FunctionDescriptor.of(ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));
        addDataIn = link(library, "scsi_task_add_data_in_buffer", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS));
        freeTask = link(library, "scsi_free_scsi_task", FunctionDescriptor.ofVoid(ADDRESS));
        command = link(library, "iscsi_scsi_command_async", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS));
        taskManagement = link(library, "iscsi_task_mgmt_async", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
    }

    private static final class Loaded {
        static final LibIscsi LIBRARY = new LibIscsi();
    }

    /** @throws UnsatisfiedLinkError the library is not installed */
    static LibIscsi load() {
        try {
            return Loaded.LIBRARY;
        } catch (ExceptionInInitializerError | NoClassDefFoundError e) {
            throw new UnsatisfiedLinkError("libiscsi.so.7 can't be loaded");
        }
    }

    private static MethodHandle link(SymbolLookup library, String name, FunctionDescriptor descriptor) {
        return LINKER.downcallHandle(library.find(name).orElseThrow(() -> new UnsatisfiedLinkError("libiscsi has no " + name)), descriptor);
    }

    private static Error unexpected(Throwable thrown) {
        return thrown instanceof Error error ? error : new AssertionError(thrown);
    }

    /** Code to be passed as a callback, for as long as the arena lives. */
    static MemorySegment stub(Callback callback, Arena arena) {
        try {
            MethodHandle adapter = MethodHandles.lookup().findStatic(LibIscsi.class, "call",
                    MethodType.methodType(void.class, Callback.class, MemorySegment.class, int.class, MemorySegment.class, MemorySegment.class));
            return LINKER.upcallStub(adapter.bindTo(callback), CALLBACK, arena);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static void call(Callback callback, MemorySegment context, int status, MemorySegment data, MemorySegment id) {
        callback.done(status, data, id.address());
    }

    /**
     * A context that does not log in again by itself. NULL: no memory.
     *
     * @param user of CHAP, or null. With one, libiscsi's login begins with the security stage and offers "CHAP,None"; without, it leaves that stage out (iscsi_login_async)
     */
    MemorySegment createContext(String initiator, int isid, String user, String target, int commandTimeoutS, int tcpTimeoutMs) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = (MemorySegment) createContext.invokeExact(arena.allocateFrom(initiator));
            if (context.address() != 0) {
                int ignored = (int) setTargetName.invokeExact(context, arena.allocateFrom(target));
                ignored = (int) setSessionType.invokeExact(context, SESSION_NORMAL);
                ignored = (int) setHeaderDigest.invokeExact(context, HEADER_DIGEST_NONE);
                ignored = (int) setIsid.invokeExact(context, isid & 0xffffff, isid >>> 24);
                if (user != null) {
                    ignored = (int) setUser.invokeExact(context, arena.allocateFrom(user), arena.allocateFrom(user));
                }
                ignored = (int) setTimeout.invokeExact(context, commandTimeoutS);
                setTcpUserTimeout.invokeExact(context, tcpTimeoutMs);
                setNoReconnect.invokeExact(context, 1);
            }
            return context;
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Calls back every command that is under way. */
    void destroyContext(MemorySegment context) {
        try {
            int ignored = (int) destroyContext.invokeExact(context);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Connects, logs in and tries whether the unit is ready. 0: all is well. */
    int connect(MemorySegment context, String portal, int lun) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) connect.invokeExact(context, arena.allocateFrom(portal), lun);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    String error(MemorySegment context) {
        try {
            MemorySegment text = (MemorySegment) getError.invokeExact(context);
            return text.address() == 0 ? "" : text.reinterpret(1024).getString(0).strip();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Whether a login failed with status class 2, detail 1 (RFC 7143, 11.13.5), by what {@link #error} says. */
    static boolean authenticationFailed(String error) {
        return error.endsWith(AUTHENTICATION_FAILED);
    }

    int fd(MemorySegment context) {
        try {
            return (int) getFd.invokeExact(context);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** To poll the descriptor for. */
    int whichEvents(MemorySegment context) {
        try {
            return (int) whichEvents.invokeExact(context);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Negative: the connection is of no more use. */
    int service(MemorySegment context, int events) {
        try {
            return (int) service.invokeExact(context, events);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Of libiscsi's own memory; NULL if there is none. */
    MemorySegment createTask(byte[] cdb, int direction, int bytes) {
        try (Arena arena = Arena.ofConfined()) {
            return (MemorySegment) createTask.invokeExact(cdb.length, arena.allocateFrom(java.lang.foreign.ValueLayout.JAVA_BYTE, cdb), direction, bytes);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    void freeTask(MemorySegment task) {
        try {
            freeTask.invokeExact(task);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** The memory is the caller's, until the task has ended. */
    int addDataIn(MemorySegment task, long address, int bytes) {
        try {
            return (int) addDataIn.invokeExact(task, bytes, MemorySegment.ofAddress(address));
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Negative: it was not begun, and will not be called back. {@code data}: address of a struct iscsi_data, or NULL. */
    int command(MemorySegment context, int lun, MemorySegment task, MemorySegment callback, MemorySegment data, long id) {
        try {
            return (int) command.invokeExact(context, lun, task, callback, data, MemorySegment.ofAddress(id));
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Resets a unit; the callback's data is the address of the response, an int. The commands of this context go on. */
    int resetUnit(MemorySegment context, int lun, MemorySegment callback, long id) {
        try {
            return (int) taskManagement.invokeExact(context, lun, LUN_RESET, NO_TASK, 0, callback, MemorySegment.ofAddress(id));
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static int senseKey(MemorySegment task) {
        return task.reinterpret(TASK_SENSE_CODE + 4).get(JAVA_INT, TASK_SENSE_KEY);
    }

    static int senseCode(MemorySegment task) {
        return task.reinterpret(TASK_SENSE_CODE + 4).get(JAVA_INT, TASK_SENSE_CODE);
    }
}
