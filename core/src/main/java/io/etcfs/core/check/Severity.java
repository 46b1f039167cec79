package io.etcfs.core.check;

/** What a finding means for whoever uses the filesystem. */
public enum Severity {
    /** An invariant is broken: something is lost, or can be. */
    DAMAGE,
    /** Nothing is wrong with any file, but records or blocks are left that nothing refers to. */
    LEFTOVER,
    /** As it may be, and worth knowing. */
    NOTE
}
