/**
 * What can go wrong between two nodes and their kernels: each test is a pair of the deadlock table of {@code docs/internals/kernel.md}, or a way in which
 * something stale could be seen. {@link io.etcfs.it.recall.PlantedFaultsTest} shows that these tests fail when a rule is switched off.
 */
package io.etcfs.it.recall;
