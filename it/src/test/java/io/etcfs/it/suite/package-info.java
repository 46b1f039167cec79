/**
 * Public suites of what a filesystem has to do, run on the mounts: they were written by others, who did not know whose filesystem it would be.
 *
 * <p>The programs come from outside: {@code ./dev test it} builds pinned versions of them and says where they are in the environment (ETCFS_SUITE_...). Where it
 * could not because the machine has no compiler for them, their tests are skipped and say so. What a suite can't do here is listed with the reason; anything
 * else that it skips is a failure.
 */
package io.etcfs.it.suite;
