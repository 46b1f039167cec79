package io.etcfs.cli;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Finds what a misspelt word was meant to be. */
final class Nearest {
    private static final int MOST = 3;

    private Nearest() {}

    /** Those that are few changes of letters away, or begin with {@code word}; the nearest first. */
    static List<String> to(String word, Collection<String> names) {
        String wanted = letters(word);
        return names.stream().distinct().filter(name -> distance(wanted, letters(name)) <= most(wanted) || wanted.length() > 1 && letters(name).startsWith(wanted))
                .sorted(Comparator.comparingInt((String name) -> distance(wanted, letters(name))).thenComparing(Comparator.naturalOrder())).limit(MOST).toList();
    }

    /** Hyphens in front do not count: {@code -name} is near {@code --name}. */
    private static String letters(String word) {
        return word.replaceFirst("^-+", "").toLowerCase(Locale.ROOT);
    }

    private static int most(String word) {
        return word.length() < 3 ? 0 : word.length() < 8 ? 2 : 3;
    }

    /** Letters that are added, left out, changed, or exchanged with their neighbour. */
    static int distance(String a, String b) {
        int[][] d = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            for (int j = 0; j <= b.length(); j++) {
                if (i == 0 || j == 0) {
                    d[i][j] = i + j;
                    continue;
                }
                d[i][j] = Math.min(Math.min(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1));
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
                }
            }
        }
        return d[a.length()][b.length()];
    }
}
