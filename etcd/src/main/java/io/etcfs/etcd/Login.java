package io.etcfs.etcd;

import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.etcd.wire.AuthGrpc;
import io.etcfs.etcd.wire.AuthenticateRequest;
import io.etcfs.etcd.wire.AuthenticateResponse;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The token of etcd's user authentication. One login at a time, whoever asks; the token serves all members until one of them refuses it. Without a user the
 * token is empty and nothing is ever asked. Neither password nor token is logged or part of a message.
 */
final class Login {
    private final EtcdOptions options;
    private final ReentrantLock loggingIn = new ReentrantLock();
    private volatile String token = "";
    private volatile boolean done;

    Login(EtcdOptions options) {
        this.options = options;
    }

    /** Empty: none. */
    String token() {
        return token;
    }

    boolean possible() {
        return options.user() != null;
    }

    /** Logs in if that has not been done yet. */
    void ensure(Asking asking, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        if (possible() && !done) {
            renew("", asking, timeoutNs);
        }
    }

    /** Gets another token than the one that was refused, unless somebody else just has. */
    void renew(String refused, Asking asking, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        long untilNs = System.nanoTime() + timeoutNs;
        try {
            if (!loggingIn.tryLock(timeoutNs, TimeUnit.NANOSECONDS)) {
                throw new StoreUnavailableException("no login at etcd in time");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreUnavailableException("interrupted", e);
        }
        try {
            if (done && !token.equals(refused)) {
                return;
            }
            AuthenticateRequest request = AuthenticateRequest.newBuilder().setName(options.user()).setPassword(options.password()).build();
            AuthenticateResponse response = asking.askOnce(AuthGrpc.getAuthenticateMethod(), request, untilNs - System.nanoTime()).answer();
            token = response.getToken();
            done = true;
        } catch (StoreRejectedException e) {
            if (!e.getMessage().contains("authentication is not enabled")) {
                throw e;
            }
            token = "";
            done = true;
        } catch (IOException e) {
            throw new StoreUnavailableException("etcd password file " + options.passwordFile() + " can't be read", e);
        } finally {
            loggingIn.unlock();
        }
    }
}
