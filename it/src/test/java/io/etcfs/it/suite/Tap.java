package io.etcfs.it.suite;

import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a test program said in the Test Anything Protocol.
 *
 * @param planned how many assertions it announced; -1: it announced none
 * @param ran how many there were
 * @param failed those that do not hold, by number, with what it said of each; without those it calls TODO
 */
record Tap(int planned, int ran, Map<Integer, String> failed) {
    private static final Pattern PLAN = Pattern.compile("^1\\.\\.(\\d+)\\b.*");
    private static final Pattern ASSERTION = Pattern.compile("^(not )?ok\\b *(\\d*)(.*)$");

    static Tap of(String output) {
        int planned = -1;
        int ran = 0;
        Map<Integer, String> failed = new TreeMap<>();
        for (String line : output.lines().toList()) {
            Matcher plan = PLAN.matcher(line);
            Matcher assertion = ASSERTION.matcher(line);
            if (plan.matches()) {
                planned = Integer.parseInt(plan.group(1));
            } else if (assertion.matches()) {
                ran++;
                if (assertion.group(1) != null && !assertion.group(3).contains("# TODO")) {
                    failed.put(assertion.group(2).isEmpty() ? ran : Integer.parseInt(assertion.group(2)), line);
                }
            }
        }
        return new Tap(planned, ran, failed);
    }

    /** Whether all that was announced was said, and something was. */
    boolean complete() {
        return ran > 0 && ran == planned;
    }

    int held() {
        return ran - failed.size();
    }
}
