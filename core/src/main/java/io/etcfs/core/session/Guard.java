package io.etcfs.core.session;

import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Op;
import java.util.List;

/**
 * What every transaction of this node compares: that its session is the one it believes to have and that nobody has raised its generation.
 *
 * @param compares two comparisons
 * @param reads    the same two keys, for the failure branch, to tell why it was taken
 */
public record Guard(List<Compare> compares, List<Op> reads) {}
