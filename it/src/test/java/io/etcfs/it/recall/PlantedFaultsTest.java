package io.etcfs.it.recall;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import io.etcfs.core.fault.Fault;
import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.HangError;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** With a rule switched off, the test that is there for it fails: {@code mvn -pl it -am test -Dtest=PlantedFaultsTest -Detcfs.planted=.*} (or part of a fault's name). */
@EnabledIfSystemProperty(named = "etcfs.planted", matches = ".+")
class PlantedFaultsTest {
    private interface Body {
        void run(DevCluster cluster) throws Exception;
    }

    private record Row(Fault fault, List<Fault> with, String test, Class<? extends AssertionError> how, Body body) {}

    private static Row stale(Fault fault, String test, Body body) {
        return new Row(fault, List.of(), test, AssertionError.class, body);
    }

    private static Row hangs(Fault fault, String test, Body body) {
        return new Row(fault, List.of(), test, HangError.class, body);
    }

    private static Row late(Fault fault, String test, Body body) {
        return new Row(fault, List.of(Fault.DELAY_REPLY), test, AssertionError.class, body);
    }

    private static void play(DevCluster cluster, java.util.function.BiConsumer<Scene, Integer> part) {
        Scene scene = new Scene(cluster, "stale");
        part.accept(scene, 20);
        scene.play(60);
    }

    private static final List<Row> ROWS = List.of(
            stale(Fault.HANDOVER_BEFORE_PUBLISH, "StaleTest, names", c -> play(c, StaleTest::namesAndMissingNames)),
            stale(Fault.HANDOVER_BEFORE_PUBLISH, "StaleTest, bytes", c -> play(c, StaleTest::newBytes)),
            stale(Fault.CACHE_KEPT_AFTER_RECALL, "StaleTest, bytes", c -> play(c, StaleTest::newBytes)),
            stale(Fault.CACHE_KEPT_AFTER_RECALL, "StaleTest, names", c -> play(c, StaleTest::namesAndMissingNames)),
            stale(Fault.CACHE_KEPT_AFTER_RECALL, "StaleTest, attributes", c -> play(c, StaleTest::attributes)),
            hangs(Fault.NOTIFY_FROM_HANDLER, "BytesTest.aReaderSeesWholeOldOrNewBlocks...", c -> new BytesTest().aReaderSeesWholeOldOrNewBlocksWhileTheOtherNodeOverwrites(c)),
            hangs(Fault.NOTIFY_WITHOUT_LIMIT, "NamesTest.bothNodesListAndCreate...", c -> new NamesTest().bothNodesListAndCreateInOneDirectory(c)),
            hangs(Fault.WAITING_RANGES_IGNORED, "BytesTest.eachByteIsWhat...", c -> new BytesTest().eachByteIsWhatItsOnlyWriterWroteLastThoughBothNodesWriteInTheSamePages(c)),
            stale(Fault.PAGES_NEVER_CLOSED, "BytesTest.readersThatNeverPause...", c -> new BytesTest().readersThatNeverPauseDoNotKeepAWriterOfTheOtherNodeOut(c)),
            hangs(Fault.WRITE_BACK_WAITS, "BytesTest.pagesOfTwoDirtySharedMappings...", c -> new BytesTest().pagesOfTwoDirtySharedMappingsSurvive(c)),
            // One that is as late as these grants nothing otherwise, whoever awaits it.
            new Row(Fault.REPLY_NOT_AWAITED, List.of(Fault.DELAY_REPLY, Fault.LATE_ANSWER_GRANTS), "DelayedReplyTest.noOldName...", AssertionError.class,
                    c -> new DelayedReplyTest().noOldNameIsLeftByAReplyOnItsWay(c)),
            late(Fault.ANSWERED_NOT_DROPPED_AGAIN, "DelayedReplyTest.noOldBytes...", c -> new DelayedReplyTest().noOldBytesAreLeftByAReplyOnItsWay(c)),
            stale(Fault.DIRECTORIES_NOT_ONLY_EXPIRED, "NamesTest.aMountInADirectory...", c -> new NamesTest().aMountInADirectoryStaysWhileTheOtherNodeChangesNamesAround(c)),
            stale(Fault.APPEND_PLACED_BY_KERNEL, "BytesTest.appends...", c -> new BytesTest().appendsOfBothNodesAreNeitherLostNorTorn(c)),
            stale(Fault.KILLED_CALLER_WAITS, "KilledTest.aProcessThatWaitsForAToken...", c -> new KilledTest().aProcessThatWaitsForATokenCanBeKilled(c)));

    @TestFactory
    Stream<DynamicTest> fails() {
        String wanted = System.getProperty("etcfs.planted");
        return ROWS.stream().filter(r -> r.fault.name().contains(wanted) || r.fault.name().matches(wanted)).map(r -> DynamicTest.dynamicTest(r.fault + " " + r.test, () -> failsWith(r)));
    }

    private static void failsWith(Row row) {
        Fault[] all = Stream.concat(Stream.of(row.fault), row.with.stream()).toArray(Fault[]::new);
        Throwable seen = null;
        long start = System.nanoTime();
        try (DevCluster cluster = DevCluster.up(2, all)) {
            start = System.nanoTime();
            try {
                row.body.run(cluster);
            } catch (AssertionError | Exception e) {
                seen = e;
            }
            cluster.markBroken();
        }
        String said = seen == null ? "passed" : summary(seen.getMessage());
        System.out.printf(Locale.ROOT, "PLANTED %s: %s after %.1f s: %.400s%n", row.fault, row.test, (System.nanoTime() - start) / 1e9, said);
        assertInstanceOf(row.how, seen);
    }

    /** The first line, and the last of a Python stack. */
    private static String summary(String message) {
        List<String> lines = message.strip().lines().toList();
        return lines.size() == 1 || lines.getFirst().startsWith("HANG") ? lines.getFirst() : lines.getFirst() + " " + lines.getLast();
    }
}
