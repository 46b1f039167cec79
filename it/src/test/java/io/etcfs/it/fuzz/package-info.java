/** Random work on two nodes compared with a local filesystem: start at {@link io.etcfs.it.fuzz.FuzzTest}; the programs are beside it in the resources. */
package io.etcfs.it.fuzz;
