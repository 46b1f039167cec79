package io.etcfs.core.store;

/**
 * One comparison of a transaction's guard, over one key or, with {@code rangeEnd}, over every key of a range:
 * it holds only if it holds for each key there. A key that is absent has revisions and version 0 and no value;
 * an empty range satisfies every comparison of numbers with 0 and none of values.
 *
 * @param rangeEnd the key after the range's last, or null for one key
 * @param number   what revisions, versions and leases are compared with
 * @param value    what values are compared with; null for the other targets
 */
public record Compare(Key key, Key rangeEnd, Target target, Relation relation, long number, byte[] value) {
    public enum Target { CREATE_REVISION, MOD_REVISION, VERSION, VALUE, LEASE }

    public enum Relation { EQUAL, NOT_EQUAL, GREATER, LESS }

    public static Compare createRevision(Key key, long revision) {
        return new Compare(key, null, Target.CREATE_REVISION, Relation.EQUAL, revision, null);
    }

    public static Compare modRevision(Key key, long revision) {
        return new Compare(key, null, Target.MOD_REVISION, Relation.EQUAL, revision, null);
    }

    public static Compare value(Key key, byte[] value) {
        return new Compare(key, null, Target.VALUE, Relation.EQUAL, 0, value);
    }

    public static Compare absent(Key key) {
        return createRevision(key, 0);
    }

    public static Compare exists(Key key) {
        return new Compare(key, null, Target.CREATE_REVISION, Relation.GREATER, 0, null);
    }

    /** No key at all in {@code [from, end)}. */
    public static Compare noneIn(Key from, Key end) {
        return new Compare(from, end, Target.CREATE_REVISION, Relation.EQUAL, 0, null);
    }
}
