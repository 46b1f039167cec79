package io.etcfs.core.fs;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.device.BlockDevice;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.NameHash;
import io.etcfs.core.session.Session;
import io.etcfs.core.space.InodeNumbers;
import io.etcfs.core.space.Space;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.token.Tokens;

/** The parts of a node, as its operations see them. */
record Node(Monitor monitor, MetadataStore store, BlockDevice device, Tasks tasks, Keys keys, String name, NameHash nameHash, Session session, Pipeline pipeline, Tokens tokens,
        Space space, InodeNumbers inodeNumbers, Vnodes vnodes, KernelView view, Journal journal, Waiting waiting) {
    /** For timestamps of files. */
    long realtimeNs() {
        return monitor.clock().realtimeNs();
    }
}
