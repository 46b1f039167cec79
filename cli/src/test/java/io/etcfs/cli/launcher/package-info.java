/** The shell scripts that start the programs. */
package io.etcfs.cli.launcher;
