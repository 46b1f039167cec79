package io.etcfs.core.fence;

/**
 * What became of a severing.
 *
 * @param confirmed the node can't write to the device any more: read back, not hoped
 * @param saw       what was seen, in a few words, for the log and for {@code etcfsctl status}
 */
public record Severing(boolean confirmed, String saw) {}
