package io.etcfs.core.check;

import java.util.List;

/**
 * What a check came to.
 *
 * @param revision of etcd that was looked at
 * @param findings in the order of {@link Kind} and, of one kind, of the keys as they were looked at
 * @param omitted  further findings, of kinds with more than {@link Findings#MAX_OF_A_KIND}
 */
public record Report(long revision, List<Finding> findings, long omitted, Counts counts) {
    /** {@code files}: inodes that are not directories. {@code blocks}: of 4 KiB, marked in the bitmaps. */
    public record Counts(long keys, long directories, long files, long orphans, long blocks, long nodes) {}

    public boolean damaged() {
        return findings.stream().anyMatch(f -> f.severity() == Severity.DAMAGE);
    }
}
