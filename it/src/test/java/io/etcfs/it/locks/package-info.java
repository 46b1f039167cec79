/**
 * File locks of processes when something dies or is cut off. What they do otherwise is in {@code io.etcfs.it.posix}, where a local filesystem is the measure.
 */
package io.etcfs.it.locks;
