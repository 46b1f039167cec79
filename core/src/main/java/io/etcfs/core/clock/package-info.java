/**
 * Time, waiting and threads as ports: {@link io.etcfs.core.clock.Clock} and {@link io.etcfs.core.clock.Tasks} are all that core knows of them, and
 * {@link io.etcfs.core.clock.Monitor} is the lock under which its state lives. Not here: timeouts of single protocols, which are beside those.
 */
package io.etcfs.core.clock;
