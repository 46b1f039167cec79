package io.etcfs.core.token;

import io.etcfs.core.clock.Monitor;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.pipeline.Pipeline;
import io.etcfs.core.record.Keys;
import io.etcfs.core.session.Session;
import io.etcfs.core.store.MetadataStore;

/**
 * The parts of a node that tokens have to do with, and its name.
 *
 * @param looks requests that only read
 * @param asks  those that may write, and wait for the store's disk then
 */
record Parts(Monitor monitor, MetadataStore store, Convoy looks, Convoy asks, Tasks tasks, Session session, Pipeline pipeline, Keys keys, String node) {}
