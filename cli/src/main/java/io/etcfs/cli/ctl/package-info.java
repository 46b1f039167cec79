/**
 * {@code etcfsctl}: what is true of a filesystem, from etcd. The reports are pure functions of what was read; the commands read, print and
 * choose the exit code. Start with {@link io.etcfs.cli.ctl.StatusReport}.
 */
package io.etcfs.cli.ctl;
