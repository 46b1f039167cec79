package io.etcfs.cli.ctl;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Columns of text, as wide as their widest cell, two spaces apart, numbers to the right. */
final class Table {
    private final List<String[]> rows = new ArrayList<>();

    Table(String... header) {
        rows.add(header);
    }

    /** Null becomes {@code -}. */
    Table row(Object... cells) {
        String[] row = new String[cells.length];
        for (int i = 0; i < cells.length; i++) {
            row[i] = cells[i] == null ? "-" : cells[i].toString();
        }
        rows.add(row);
        return this;
    }

    @Override
    public String toString() {
        int columns = rows.getFirst().length;
        int[] width = new int[columns];
        boolean[] numeric = new boolean[columns];
        for (int column = 0; column < columns; column++) {
            numeric[column] = rows.size() > 1;
            for (int row = 0; row < rows.size(); row++) {
                String cell = rows.get(row)[column];
                width[column] = Math.max(width[column], cell.length());
                numeric[column] &= row == 0 || cell.equals("-") || cell.matches("[0-9.]+( %| [KMGTP]?i?B)?");
            }
        }
        StringBuilder out = new StringBuilder();
        for (String[] row : rows) {
            StringBuilder line = new StringBuilder();
            for (int column = 0; column < columns; column++) {
                String fill = " ".repeat(width[column] - row[column].length());
                line.append(column == 0 ? "" : "  ").append(numeric[column] ? fill + row[column] : row[column] + fill);
            }
            out.append(line.toString().stripTrailing()).append('\n');
        }
        return out.toString();
    }

    /** Bytes for people: three digits at least, binary units. */
    static String bytes(long bytes) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
        double value = bytes;
        int unit = 0;
        while (value >= 1024 && unit < units.length - 1) {
            value /= 1024;
            unit++;
        }
        return unit == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.1f %s", value, units[unit]);
    }
}
