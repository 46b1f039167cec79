/**
 * The node's session and membership: start at {@link io.etcfs.core.session.Session}. Not here: what is done with tokens when a session ends
 * ({@code io.etcfs.core.token}).
 */
package io.etcfs.core.session;
