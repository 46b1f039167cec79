/** The production {@link io.etcfs.core.clock.Clock}. */
package io.etcfs.linux.clock;
