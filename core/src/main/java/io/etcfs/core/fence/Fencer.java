package io.etcfs.core.fence;

/**
 * Cuts a node off from the shared device. An implementation says that it is done only if it has read so back from where it counts, and if also what the device
 * had accepted from the node before can't land any more.
 */
public interface Fencer {
    /**
     * Severs a node. It may be severed already; it may also have come back with a newer session, which is not to be touched. Blocks for as long as it takes: a
     * controller gives up on it after a while, and what it says then is not heard.
     *
     * @param before   a revision: all sessions of the node are meant whose keys were created before it, whether anybody has heard of them or not
     * @param instance the machine's name at its provider, empty if not known
     */
    Severing sever(String node, long before, String instance);

    /** For a cluster that has no way to sever anybody: it confirms nothing. */
    static Fencer none() {
        return (node, before, instance) -> new Severing(false, "no fencer: mount the node again, or declare it dead");
    }
}
