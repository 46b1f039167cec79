package io.etcfs.core.fault;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;

/**
 * A rule of the protocol that is broken on purpose, or a delay that makes room for a race: a test of that rule has to fail then. Those that are named in the
 * system property {@code etcfs.faults}, separated by commas, are on from the start; {@link #plant} is for tests in this process.
 */
public enum Fault {
    /** The token goes in a transaction of its own, before what was done under it is published. */
    HANDOVER_BEFORE_PUBLISH,
    /** A READ is answered only after a notification about its own pages came back. */
    NOTIFY_FROM_HANDLER,
    /** Names are invalidated also where our own requests wait in the directory, and the recall waits for that without limit. */
    NOTIFY_WITHOUT_LIMIT,
    /** The kernel keeps names, attributes and pages when the token goes. */
    CACHE_KEPT_AFTER_RECALL,
    /** Replies that let the kernel believe something and are not written yet hold up no recall, and count from when they were made. */
    REPLY_NOT_AWAITED,
    /** Pages answered since an invalidation began count as dropped by it. */
    ANSWERED_NOT_DROPPED_AGAIN,
    /** Waiting requests have no pages locked: invalidations of pages wait for them. */
    WAITING_RANGES_IGNORED,
    /** Readers and writers go on for as long as they like while their pages are being dropped. */
    PAGES_NEVER_CLOSED,
    /** Bytes of a shared mapping wait for the token like any other write. */
    WRITE_BACK_WAITS,
    /** Pages of a mapping that wait for X are written as a whole, not what the mapping has changed of them. */
    WHOLE_PAGES_WRITTEN_BACK,
    /** A process that is killed while it waits is not let go. */
    KILLED_CALLER_WAITS,
    /** Bytes of O_APPEND go where the kernel says. */
    APPEND_PLACED_BY_KERNEL,
    /** Directories get the plain form of the notification about a name. */
    DIRECTORIES_NOT_ONLY_EXPIRED,
    /** A name that the kernel moved counts as one that it believes nothing of. */
    MOVED_NAMES_FORGOTTEN,
    /** Transactions do not compare the session. */
    NO_SESSION_COMPARE,
    /** Transactions do not compare the generation. */
    NO_GENERATION_COMPARE,
    /** A batch does not compare the marker of the one before it. */
    NO_MARKER_COMPARE,
    /** A batch with an unknown outcome that a plain read does not find counts as one that will never be: the token it gave away is used on. */
    UNKNOWN_SETTLED_BY_READ,
    /** A session is trusted for as long as nobody has seen that it is gone. */
    TOKEN_KEPT_PAST_DEADLINE,
    /** A new directory's token is only its maker's belief. */
    BIRTH_NOT_PUBLISHED,
    /** An acquire does not compare the owner record that it was made from. */
    ACQUIRE_WITHOUT_OWNER,
    /** Tokens are taken back whoever has held them since. */
    TAKEN_BACK_BLINDLY,
    /** A key of its own that a node does not know is deleted whatever it has become since it was looked at. */
    UNKNOWN_KEY_BLINDLY,
    /** A key of ours is taken up without putting it again, also where a delete of it as an unknown one may still be on its way. */
    ADOPTED_AS_IT_IS,
    /** The device is accessed also when the session may be over. */
    ACCESS_PAST_DEADLINE,
    /** Publishing goes on under a new session before the tokens are back. */
    PUBLISHED_BEFORE_TAKEN_BACK,
    /** Pages that were read again before a write(2) that had changed them was made stay without its bytes. */
    REFILLED_PAGES_KEPT,
    /** An arena is given to another node while blocks of it are handed out, or freed and not published. */
    ARENA_GIVEN_IN_USE,
    /** There is no room where etcd, or a node that has free blocks, has not answered in time. */
    UNANSWERED_IS_FULL,
    /** A node that looks for room itself gives none, however long somebody else has looked. */
    SHORT_GIVES_NOTHING,
    /** A node that looks for room itself takes an arena back that it has just given to who asked first. */
    GIVEN_ARENA_TAKEN_BACK,
    /** An arena that was given away is taken for one's own where a read that was begun before still shows it. */
    GIVEN_ARENA_READ_LATE,
    /** What others have freed in an arena is taken back as it was read, whoever has had the arena since. */
    SWEPT_AS_READ,
    /** A freed block is handed out before its batch has committed. */
    FREED_BLOCK_AT_ONCE,
    /** A batch is published before its bytes are on the device. */
    PUBLISHED_BEFORE_FLUSH,
    /** A token is taken from a holder that vanished while bytes that it wrote may be in the device's cache only. */
    TAKEN_BEFORE_FLUSH,
    /** Shortening a file leaves what is behind its end valid. */
    VALID_NOT_LOWERED,
    /** Blocks are overwritten in place whatever epoch they are of. */
    EPOCH_IGNORED,
    /** Blocks of an older epoch are shown where they are, while a holder that vanished may still overwrite them. */
    SERVED_WITHOUT_COPY,
    /** What was copied because a holder that vanished may still overwrite it is shown before the copy is published. */
    COPY_SERVED_UNPUBLISHED,
    /** Blocks are freed at once, while a holder that vanished may still write them. */
    FREED_WHILE_SUSPECT,
    /** A handover does not say who may still be writing. */
    SUSPECTS_FORGOTTEN,
    /** SHARED is taken from a holder that vanished. */
    SHARED_FROM_VANISHED,
    /** A write in place whose session ended is made again, whoever has been shown its bytes since. */
    MADE_AGAIN_AFTER_OTHERS,
    /** A new session is opened while writes of the one before are still on their way to the device. */
    SESSION_OVER_WRITES,
    /** Blocks in another node's arena are forgotten, not passed on to be freed. */
    UNFREE_IGNORED,
    /** The owner record of a directory stays when the last that lives in its domain goes. */
    OWNERS_LEFT,
    /** A token goes without pins for the files that are open here. */
    OPEN_NOT_PINNED,
    /** As that, where the file's {@code open:} is believed to be there already. */
    OPEN_PINNED_ONCE,
    /** Pins of the files that are open here follow the token, in a later batch. */
    OPEN_PINNED_LATE,
    /** A file is opened under a token while the batch that gives it on may be closed. */
    OPENED_WHILE_GIVEN,
    /** A file without a name is opened that nobody here has open. */
    OPENED_WITHOUT_NAME,
    /** Who has what open is not read again when SHARED becomes EXCLUSIVE. */
    OPEN_AS_READ_BEFORE,
    /** Taking a file's last name while it is open here leaves neither {@code orphan:} nor {@code open:}. */
    ORPHAN_NOT_PINNED,
    /** As that, while it is open on other nodes only. */
    ORPHAN_OF_OTHERS_NOT_PINNED,
    /** A file that is made without a name has neither {@code orphan:} nor {@code open:}. */
    TMPFILE_NOT_PINNED,
    /** {@code orphan:} stays when a file that had no name gets one. */
    ORPHAN_KEPT_BY_LINK,
    /** Whoever closes a file that had no name frees it without looking whether it has got one. */
    FREED_BLINDLY,
    /** {@code open:} goes with the last handle, whether or not it is the last of an orphan. */
    CLOSED_UNSEEN,
    /** That it is not the last of an orphan is read, and not compared. */
    CLOSED_AS_READ,
    /** {@code open:} goes without a compare of its revision. */
    CLOSED_BLINDLY,
    /** The {@code open:} of an orphan goes in a batch, as others are known to have it open. */
    CLOSED_IN_BATCH,
    /** What an earlier process had open is read before this one's session is there. */
    OPENED_READ_EARLY,
    /** What an earlier process had open is left. */
    OPENED_LEFT,
    /** The token of a directory that was removed can't be had any more, whatever lives in its domain. */
    REMOVED_NOT_TAKEN,
    /** The kernel keeps ACLs when the session ends under whose token they were answered. */
    ACL_OUTLIVES_SESSION,
    /** The kernel keeps ACLs when the token goes. */
    ACL_KEPT_AFTER_RECALL,
    /** Pins of open files that were to go with a token when the session ended are published under the next. */
    PINS_OUTLIVE_SESSION,
    /** A file without a name is freed whoever else has it open. */
    FREED_WHILE_OPEN_ELSEWHERE,
    /** Pages stay in the kernel when the session ends under whose token they came. */
    PAGES_OUTLIVE_SESSION,
    /** Names and attributes may be believed for longer than the session is trusted. */
    VALIDITY_UNBOUNDED,
    /** Between the steps of one change of a file's bytes the token may be given on. */
    STEPS_WITHOUT_TOKEN,
    /** An answer grants what it was made with, however long after that it is written. */
    LATE_ANSWER_GRANTS,
    /** A node takes a file lock where it last saw none, without comparing that there still is none. */
    FILE_LOCK_AS_REMEMBERED,
    /** A node that departed in order is taken for one that vanished. */
    DEPARTURE_NOT_HONOURED,
    /** A fence counts though nobody has confirmed that the node is severed. */
    FENCED_UNCONFIRMED,
    /** A fence goes on though the node has come back. */
    FENCED_THOUGH_BACK,
    /** The mark of a fence that is done is not looked at. */
    FENCED_AGAIN,
    /** The device accepts a session before etcd knows that it may. */
    ADMITTED_UNRECORDED,
    /** A session is used though it had ended before the device accepted it. */
    ADMITTED_THOUGH_ENDED,
    /** A session proves that the writes of those before it have ended, also while the device is still being told so. */
    ENDED_BEFORE_ADMITTED,
    /** Pages are kept that the kernel may cut at an end of the file of before. */
    CUT_PAGES_KEPT,
    /** Set-group-id goes with a write or a change of owner also where the group may not execute the file. */
    SET_GROUP_ID_ALWAYS_GOES,
    /** Answers of etcd count though they are of an older revision than one that was seen before they were asked for. */
    HISTORY_GOES_BACK,
    /** A node starts on an etcd that is behind what the device remembers of it. */
    MARKS_IGNORED,
    /** A node joins, and opens sessions, without comparing that the superblock is the one that it read. */
    SUPERBLOCK_NOT_COMPARED,
    /** A node that is not admitted stays a member until its lease ends. */
    REFUSED_NOT_TAKEN_BACK,
    /** The size is raised without comparing that nobody has claimed an arena since it was looked at. */
    GROWN_AS_READ,
    /** Members of etcd whose files have grown stay so. */
    ETCD_NOT_DEFRAGMENTED,
    /** A name that was deleted here comes back with what is read of a directory, as long as its deletion is not published. */
    DELETED_NAME_READ_BACK,
    /** What is read of a directory is taken in whoever has its token by then. */
    READ_WITHOUT_TOKEN,
    /** Names are dropped from the cache though changes of them are not published. */
    DROPPED_UNPUBLISHED,
    /** Not a broken rule: replies to LOOKUP and READ are written {@value #DELAY_MS} ms after they were made. */
    DELAY_REPLY;

    public static final long DELAY_MS = 150;

    private boolean on = Arrays.asList(System.getProperty("etcfs.faults", "").split(",")).contains(name());

    public boolean on() {
        return on;
    }

    /** Those are on from now on and no others, in all nodes of this process. */
    public static void plant(Set<Fault> faults) {
        for (Fault f : values()) {
            f.on = faults.contains(f);
        }
    }

    /** Says so in the log if any is on: such a node loses data. */
    public static void warn() {
        Set<Fault> planted = EnumSet.noneOf(Fault.class);
        for (Fault f : values()) {
            if (f.on) {
                planted.add(f);
            }
        }
        if (!planted.isEmpty()) {
            System.getLogger(Fault.class.getName()).log(System.Logger.Level.WARNING, "PLANTED FAULTS, for tests only: {0}", planted);
        }
    }

    /** Between an operation and its reply. */
    public static void delayReply() {
        if (DELAY_REPLY.on) {
            try {
                Thread.sleep(DELAY_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
