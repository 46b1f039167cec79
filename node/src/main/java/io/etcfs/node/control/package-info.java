/**
 * How other processes of the host talk to a running daemon: a Unix socket under the run directory. Start with
 * {@link io.etcfs.node.control.ControlServer}, whose class comment is the protocol.
 */
package io.etcfs.node.control;
