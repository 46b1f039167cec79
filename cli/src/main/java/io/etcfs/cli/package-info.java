/**
 * The programs {@code etcfs} and {@code etcfsctl}. Start with {@link io.etcfs.cli.Etcfs} and {@link io.etcfs.cli.Etcfsctl}. Here is only what all
 * commands share: running one and turning its end into an exit code and at most one line on standard error.
 */
package io.etcfs.cli;
