package io.etcfs.cli.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The arrows of docs/ARCHITECTURE.md: everything may use core, core uses nobody, nobody uses node but cli, and native access is linux's alone. */
class ModuleArrowsTest {
    private static JavaClasses product;

    @BeforeAll
    static void load() {
        product = new ClassFileImporter().withImportOption(new ImportOption.DoNotIncludeTests()).importPackages("io.etcfs");
        for (String module : new String[] {"core", "fuse", "linux", "etcd", "node", "cli"}) {
            assertTrue(product.stream().anyMatch(c -> c.getPackageName().startsWith("io.etcfs." + module)), "no class of " + module + " was found: the rules would hold for nothing");
        }
    }

    @Test
    void coreUsesTheJdkAndItsRecordsOnly() {
        classes().that().resideInAPackage("io.etcfs.core..").should().onlyDependOnClassesThat()
                .resideInAnyPackage("io.etcfs.core..", "java..", "com.google.protobuf..").check(product);
    }

    @Test
    void fuseUsesCoreOnlyAndMakesNoSystemCalls() {
        classes().that().resideInAPackage("io.etcfs.fuse..").should().onlyDependOnClassesThat().resideInAnyPackage("io.etcfs.fuse..", "io.etcfs.core..", "java..").check(product);
    }

    @Test
    void linuxUsesCoreAndFuseOnly() {
        classes().that().resideInAPackage("io.etcfs.linux..").should().onlyDependOnClassesThat()
                .resideInAnyPackage("io.etcfs.linux..", "io.etcfs.fuse..", "io.etcfs.core..", "java..").check(product);
    }

    @Test
    void etcdUsesNothingElseOfOurs() {
        noClasses().that().resideInAPackage("io.etcfs.etcd..").should().dependOnClassesThat()
                .resideInAnyPackage("io.etcfs.fuse..", "io.etcfs.linux..", "io.etcfs.node..", "io.etcfs.cli..").check(product);
    }

    /** It is found by its service, where it is there. */
    @Test
    void nobodyUsesTheSdkOfAProvider() {
        noClasses().should().dependOnClassesThat().resideInAnyPackage("io.etcfs.aws..", "software.amazon..").check(product);
    }

    @Test
    void nobodyUsesNodeButCli() {
        noClasses().that().resideOutsideOfPackages("io.etcfs.node..", "io.etcfs.cli..").should().dependOnClassesThat().resideInAnyPackage("io.etcfs.node..", "io.etcfs.cli..").check(product);
        noClasses().that().resideInAPackage("io.etcfs.node..").should().dependOnClassesThat().resideInAPackage("io.etcfs.cli..").check(product);
    }

    @Test
    void nativeCallsAreMadeByLinuxOnly() {
        noClasses().that().resideOutsideOfPackage("io.etcfs.linux..").should().dependOnClassesThat().haveFullyQualifiedName("java.lang.foreign.Linker").check(product);
    }

    @Test
    void coreTakesTimeAndThreadsFromItsPorts() {
        noClasses().that().resideInAPackage("io.etcfs.core..").should().callMethod(System.class, "nanoTime").check(product);
        noClasses().that().resideInAPackage("io.etcfs.core..").should().callMethod(System.class, "currentTimeMillis").check(product);
        // A planted fault delays the real kernel's request, whatever the clock.
        noClasses().that().resideInAPackage("io.etcfs.core..").and().resideOutsideOfPackage("io.etcfs.core.fault").should().callMethod(Thread.class, "sleep", long.class).check(product);
        noClasses().that().resideInAPackage("io.etcfs.core..").should().callMethod(Thread.class, "ofVirtual").check(product);
        noClasses().that().resideInAPackage("io.etcfs.core..").should().dependOnClassesThat().haveFullyQualifiedName("java.util.concurrent.ThreadLocalRandom").check(product);
    }
}
