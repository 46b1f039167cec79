/** JSON for people's scripts: written, never read. Start with {@link io.etcfs.node.json.Json}. */
package io.etcfs.node.json;
