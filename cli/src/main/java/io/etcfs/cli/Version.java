package io.etcfs.cli;

import picocli.CommandLine.IVersionProvider;

/** The version of this build, from the jar's manifest. */
public final class Version implements IVersionProvider {
    public static String current() {
        String version = Version.class.getPackage().getImplementationVersion();
        return version == null ? "development" : version;
    }

    @Override
    public String[] getVersion() {
        return new String[] {"EtcFS " + current()};
    }
}
