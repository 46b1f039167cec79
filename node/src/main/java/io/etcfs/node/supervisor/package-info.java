/**
 * Cutting off a mount whose daemon hangs, by a process that a hung or killed daemon can't take with it: start at {@link io.etcfs.node.supervisor.Supervisor}. Not here: what
 * that process does, which is lib/supervisor.sh of module cli.
 */
package io.etcfs.node.supervisor;
