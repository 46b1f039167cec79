/**
 * Who may know and change what: start at {@link io.etcfs.core.token.Tokens}. {@link io.etcfs.core.token.Grant} has the rules of acquiring as pure decisions,
 * {@link io.etcfs.core.token.Acquirer} carries them out; {@link io.etcfs.core.token.Recaller} gives tokens on, and {@link io.etcfs.core.token.Handover} is what
 * that means in a transaction; {@link io.etcfs.core.token.Resurrection} takes them back after a session was lost. Not here: what is cached under a token
 * ({@code io.etcfs.core.domain}) and how the kernel is made to forget it ({@code io.etcfs.core.fs}).
 */
package io.etcfs.core.token;
