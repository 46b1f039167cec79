/**
 * Fencing at Amazon EC2: start at {@link io.etcfs.aws.EbsFencer}. With the AWS SDK it is a directory of its own in the installation, on the class path only where it is asked for (etcfs mount
 * --fencer ebs). Not here: who is fenced when ({@link io.etcfs.core.fence}).
 */
package io.etcfs.aws;
