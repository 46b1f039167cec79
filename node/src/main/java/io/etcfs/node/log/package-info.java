/**
 * Where the daemon's log lines go and what they look like. Code logs through {@link java.lang.System.Logger}; only this package knows that
 * java.util.logging is behind it. Start with {@link io.etcfs.node.log.Log}.
 */
package io.etcfs.node.log;
