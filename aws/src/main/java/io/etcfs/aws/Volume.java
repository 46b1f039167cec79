package io.etcfs.aws;

import java.util.Map;

/** One volume as EC2 tells of it. */
interface Volume {
    String id();

    /** State by instance: attaching, attached, detaching, busy, detached. An instance that is not there is not attached, as far as this answer knows: EC2's answers may be a moment old. */
    Map<String, String> attachments() throws Ec2Exception;

    /** Begins to take the volume from an instance, by force. */
    void detach(String instance) throws Ec2Exception;
}
