package io.etcfs.core.store;

/** A watch that goes on over reconnections until it is closed. After close returns no call of the listener is running or comes. */
public interface Watch extends AutoCloseable {
    @Override
    void close();
}
