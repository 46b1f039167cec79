/** Nodes that leave, are killed and come back, on real parts: {@link io.etcfs.it.membership.MembershipTest}. The steps are tested in {@code testkit}. */
package io.etcfs.it.membership;
