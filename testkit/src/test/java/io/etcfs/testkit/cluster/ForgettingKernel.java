package io.etcfs.testkit.cluster;

import io.etcfs.core.kernel.KernelCache;

/** A kernel that forgets at once whatever it is told to. Tests override what they are about. */
class ForgettingKernel implements KernelCache {
    @Override
    public boolean canExpireEntries() {
        return true;
    }

    @Override
    public void invalidateEntry(long parentIno, byte[] name, boolean expireOnly, Runnable done) {
        done.run();
    }

    @Override
    public void invalidateAttributes(long ino, Runnable done) {
        done.run();
    }

    @Override
    public void invalidatePages(long ino, long offsetBytes, long lengthBytes, Runnable done) {
        done.run();
    }

    @Override
    public void abort() {}
}
