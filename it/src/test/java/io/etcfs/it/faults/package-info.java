/** Three nodes at work while faults of all kinds come and go: start at {@link io.etcfs.it.faults.FaultsTest}; what works on the nodes is beside it in the resources. */
package io.etcfs.it.faults;
