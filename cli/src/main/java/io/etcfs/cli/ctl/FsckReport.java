package io.etcfs.cli.ctl;

import io.etcfs.core.check.Finding;
import io.etcfs.core.check.Kind;
import io.etcfs.core.check.Report;
import io.etcfs.core.check.Severity;
import io.etcfs.core.store.Key;
import java.util.List;

/**
 * What {@code fsck} found. Keys are without the filesystem's prefix, every byte that is not a printing ASCII character, and the backslash, as {@code \xNN}: names in
 * them can have any byte.
 *
 * @param omitted findings that are not listed, of kinds with very many
 */
record FsckReport(String filesystem, long revision, Result result, Counts counts, List<Found> findings, long omitted) {
    enum Result { CLEAN, DAMAGED }

    /** {@code blocks}: of 4 KiB, in use by files or waiting to be freed. {@code keys}: looked at. */
    record Counts(long directories, long files, long orphans, long blocks, long nodes, long keys) {}

    record Found(Severity severity, Kind kind, String what, List<String> keys, String invariant) {}

    static FsckReport of(String filesystem, Key prefix, Report report) {
        Report.Counts c = report.counts();
        return new FsckReport(filesystem, report.revision(), report.damaged() ? Result.DAMAGED : Result.CLEAN, new Counts(c.directories(), c.files(), c.orphans(), c.blocks(), c.nodes(), c.keys()),
                report.findings().stream().map(f -> found(prefix, f)).toList(), report.omitted());
    }

    private static Found found(Key prefix, Finding f) {
        return new Found(f.severity(), f.kind(), f.what(), f.keys().stream().map(key -> printable(key, prefix.length())).toList(), f.kind().invariant());
    }

    private static String printable(Key key, int from) {
        StringBuilder out = new StringBuilder();
        for (int i = from; i < key.length(); i++) {
            int b = key.bytes()[i] & 0xff;
            if (b > ' ' && b < 0x7f && b != '\\') {
                out.append((char) b);
            } else {
                out.append(String.format("\\x%02x", b));
            }
        }
        return out.toString();
    }

    long count(Severity severity) {
        return findings.stream().filter(f -> f.severity() == severity).count();
    }
}
