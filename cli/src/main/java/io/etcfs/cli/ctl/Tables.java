package io.etcfs.cli.ctl;

import io.etcfs.core.check.Severity;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Reports for people. What scripts need is in the JSON. */
final class Tables {
    private Tables() {}

    /** @param all nodes that have left, too: they are counted otherwise */
    static String status(StatusReport report, boolean all) {
        StringBuilder out = new StringBuilder();
        out.append("health      ").append(lower(report.health())).append('\n');
        report.problems().forEach(problem -> out.append("            ").append(problem).append('\n'));
        if (report.filesystem() != null) {
            out.append("filesystem  ").append(report.filesystem().name()).append(", uuid ").append(report.filesystem().uuid()).append(", made ")
                    .append(report.filesystem().createdAt()).append('\n');
        }
        if (report.etcd() != null) {
            StatusReport.Etcd etcd = report.etcd();
            out.append("etcd        cluster ").append(etcd.clusterId()).append(", revision ").append(etcd.revision()).append(", database ").append(Table.bytes(etcd.dbSizeBytes()))
                    .append(" (").append(Table.bytes(etcd.dbInUseBytes())).append(" in use)");
            if (etcd.quotaBytes() != null) {
                out.append(" of ").append(Table.bytes(etcd.quotaBytes()));
            }
            out.append('\n');
        }
        if (report.space() != null) {
            SpaceReport space = report.space();
            out.append("space       ").append(Table.bytes(space.totalBytes())).append(", ").append(Table.bytes(space.freeBytes())).append(" free; arenas: ")
                    .append(space.arenas().owned()).append(" owned, ").append(space.arenas().freePool()).append(" given back, ").append(space.arenas().unclaimed())
                    .append(" unclaimed of ").append(space.arenas().total()).append('\n');
        }
        if (report.etcd() != null) {
            Table members = new Table("MEMBER", "ID", "VERSION", "ROLE");
            report.etcd().members().forEach(member -> members.row(member.endpoint(), member.memberId(), member.version(),
                    member.error() != null ? "does not answer" : member.leader() ? "leader" : "follower"));
            out.append('\n').append(members);
        }
        if (report.filesystem() != null) {
            Table nodes = new Table("NODE", "STATE", "HOST", "VERSION", "SINCE", "GENERATION", "SESSION", "LEASE", "BATCH");
            List<StatusReport.Node> listed = report.nodes().stream().filter(node -> all || node.state() != StatusReport.NodeState.DEPARTED).toList();
            listed.forEach(node -> nodes.row(node.node(), lower(node.state()), node.host(), node.version(), node.since(), node.generation(), node.session(), node.lease(),
                    node.lastBatch()));
            out.append('\n').append(nodes);
            int departed = report.nodes().size() - listed.size();
            if (departed > 0) {
                out.append('(').append(departed).append(departed == 1 ? " node has" : " nodes have").append(" left in order: --all lists ").append(departed == 1 ? "it" : "them").append(")\n");
            }
        }
        return out.toString();
    }

    static String space(SpaceReport report) {
        Table table = new Table("", "TOTAL", "USED", "FREE", "ARENAS");
        report.nodes().forEach(node -> table.row(node.node(), Table.bytes(node.totalBytes()), Table.bytes(node.usedBytes()), Table.bytes(node.freeBytes()), node.arenas()));
        SpaceReport.Arenas arenas = report.arenas();
        table.row("(free pool)", "-", "-", "-", arenas.freePool());
        table.row("(unclaimed)", "-", "-", "-", arenas.unclaimed());
        table.row("filesystem", Table.bytes(report.totalBytes()), Table.bytes(report.usedBytes()), Table.bytes(report.freeBytes()), arenas.total());
        return table.toString();
    }

    static String tokens(TokensReport report) {
        Table table = new Table("DIRECTORY", "HELD", "WANTED", "LAST OWNER", "EPOCH", "SUSPECTS");
        for (TokensReport.Resource resource : report.resources()) {
            TokensReport.LastOwner owner = resource.owner();
            table.row(Long.toUnsignedString(resource.resource()),
                    joined(resource.holders().stream().map(holder -> holder.node() + ":" + holder.mode()).toList()),
                    joined(resource.waiters().stream().map(waiter -> waiter.node() + ":" + waiter.kind()).toList()),
                    owner == null ? null : owner.node() + (owner.givenUp() ? " (given up)" : ""),
                    owner == null ? null : owner.epoch(),
                    owner == null ? null : joined(owner.suspects().stream().map(TokensReport.Suspect::node).toList()));
        }
        return table.toString();
    }

    static String locks(LocksReport report) {
        Table table = new Table("INODE", "NODE", "PID", "KIND", "MODE", "START", "END", "STATE", "PATH");
        report.locks().forEach(l -> table.row(Long.toUnsignedString(l.inode()), l.node(), l.pid(), l.kind(), l.mode(), l.start(), l.end() == null ? "-" : l.end(), l.state(),
                l.path() == null ? null : l.path().replaceAll("\\p{Cntrl}", "?")));
        return table.toString();
    }

    static String sync(Ctl.SyncReport report) {
        Table table = new Table("NODE", "DIRECTORY", "RESULT");
        report.nodes().forEach(node -> table.row(node.node(), node.directory(), node.error() == null ? "published" : node.error()));
        return table.toString();
    }

    static String fsck(FsckReport report) {
        StringBuilder out = new StringBuilder();
        if (!report.findings().isEmpty()) {
            Table table = new Table("SEVERITY", "KIND", "KEYS", "WHAT");
            report.findings().forEach(f -> table.row(lower(f.severity()), lower(f.kind()), joined(f.keys()), f.what().replaceAll("\\p{Cntrl}", "?")));
            out.append(table).append('\n');
        }
        FsckReport.Counts counts = report.counts();
        return out.append(lower(report.result())).append(": filesystem '").append(report.filesystem()).append("' at revision ").append(report.revision()).append(", ")
                .append(report.count(Severity.DAMAGE)).append(" damaged, ").append(report.count(Severity.LEFTOVER)).append(" left over, ").append(report.count(Severity.NOTE)).append(" notes")
                .append(report.omitted() == 0 ? "" : ", " + report.omitted() + " more of these").append("; ")
                .append(counts.directories()).append(" directories, ").append(counts.files()).append(" files, ").append(counts.orphans()).append(" orphans, ")
                .append(counts.blocks()).append(" blocks, ").append(counts.keys()).append(" keys\n").toString();
    }

    private static String joined(List<String> words) {
        return words.isEmpty() ? null : words.stream().collect(Collectors.joining(", "));
    }

    private static String lower(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}
