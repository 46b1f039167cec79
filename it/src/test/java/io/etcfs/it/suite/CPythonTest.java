package io.etcfs.it.suite;

import io.etcfs.it.cluster.DevCluster;
import io.etcfs.it.cluster.OnCluster;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** CPython's tests of what it asks of a filesystem, as Debian packs them. */
@OnCluster
@Tag("suites")
class CPythonTest {
    private static final Duration LIMIT = Duration.ofMinutes(8);
    private static final int AT_LEAST = 450;
    private static final List<String> MODULES = List.of("test_os", "test_shutil", "test_fcntl", "test_mmap", "test_largefile");

    @TestFactory
    Stream<DynamicTest> oneMount(DevCluster cluster) throws Exception {
        Path python = Outside.program("ETCFS_SUITE_PYTHON");
        Map<String, Compared.Result> locally = run(cluster, python, Files.createDirectories(cluster.scratch().resolve("cpython")));
        Compared compared = new Compared(locally, run(cluster, python, Outside.directory(cluster, "cpython")), Map.of());
        System.out.println("CPython: " + compared.counts());
        return compared.tests(AT_LEAST);
    }

    private static Map<String, Compared.Result> run(DevCluster cluster, Path python, Path directory) throws Exception {
        Path report = cluster.scratch().resolve("cpython-" + directory.getFileName() + ".xml");
        String said;
        // Its exit code says that a test failed, which the report does, too.
        try (Outside run = Outside.start(cluster, Map.of("TMPDIR", directory.toString()), python, "-m", "test", "--tempdir", directory, "--junit-xml", report, MODULES)) {
            said = run.await(cluster, LIMIT);
        }
        if (!Files.exists(report)) {
            throw new AssertionError(said);
        }
        System.out.println(said.lines().skip(Math.max(0, said.lines().count() - 12)).toList());
        Map<String, Compared.Result> results = new TreeMap<>();
        NodeList cases = DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder().parse(report.toFile()).getElementsByTagName("testcase");
        for (int i = 0; i < cases.getLength(); i++) {
            Element one = (Element) cases.item(i);
            boolean failed = has(one, "failure") || has(one, "error");
            // A test of which only a part is skipped has a line for each part.
            results.merge(one.getAttribute("name"), failed ? Compared.Result.FAILED : has(one, "skipped") ? Compared.Result.SKIPPED : Compared.Result.PASSED,
                    (a, b) -> a == Compared.Result.FAILED ? a : b);
        }
        return results;
    }

    private static boolean has(Element element, String child) {
        return element.getElementsByTagName(child).getLength() > 0;
    }
}
