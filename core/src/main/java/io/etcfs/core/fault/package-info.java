/**
 * Rules that a test switches off, to see that it fails then. Nothing here is on in a node that was not started with the system property
 * {@code etcfs.faults}, and nothing here decides anything else. Start with {@link io.etcfs.core.fault.Fault}.
 */
package io.etcfs.core.fault;
