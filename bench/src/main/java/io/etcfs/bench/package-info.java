/**
 * Runs the benchmarks of inner loops and prints what they take: {@link io.etcfs.bench.Micro}. The benchmarks themselves are in the packages of what they
 * measure. Not here: whole filesystems side by side, which is {@code tools/bench}.
 */
package io.etcfs.bench;
