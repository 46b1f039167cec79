/**
 * Whole nodes of core under a seeded scheduler and a virtual clock: one seed replays a run exactly. Start at {@link io.etcfs.testkit.sim.World}, which puts
 * a run together; {@link io.etcfs.testkit.sim.Scheduler} is what makes it deterministic; {@link io.etcfs.testkit.sim.Weather} is the table of
 * faults. {@link io.etcfs.testkit.sim.Reference} says what a filesystem is, {@link io.etcfs.testkit.sim.Linearizer} whether what programs saw is one.
 *
 * <p>Not here: FUSE's wire format, shared mappings, and what a kernel does beyond caching names, attributes and pages.
 */
package io.etcfs.testkit.sim;
