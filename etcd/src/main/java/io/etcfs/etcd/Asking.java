package io.etcfs.etcd;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Requests that may be carried out more than once: asks the preferred member, the next one too if that one has not answered within a slice of the time, and so
 * on. The first answer counts. A member that failed is asked again after a pause, as long as there is time.
 */
final class Asking {
    private static final long MAX_SLICE_NS = 1_000_000_000L;
    private static final long PAUSE_NS = 50_000_000L;

    private final Members members;
    private final Login login;
    private final OneCluster cluster;
    private final Clock clock;

    Asking(Members members, Login login, OneCluster cluster, Clock clock) {
        this.members = members;
        this.login = login;
        this.cluster = cluster;
        this.clock = clock;
    }

    /** An answer and when its request was sent. */
    record Answer<R>(R answer, long sentAtNs) {}

    /** With the login's token; a refused token is replaced once. */
    <Q, R> Answer<R> ask(MethodDescriptor<Q, R> method, Q request, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        long untilNs = System.nanoTime() + timeoutNs;
        login.ensure(this, timeoutNs);
        String token = login.token();
        try {
            return askOnce(method, request, untilNs - System.nanoTime());
        } catch (StoreRejectedException e) {
            if (!login.possible() || !Refusal.ofToken(e.getMessage())) {
                throw e;
            }
            login.renew(token, this, untilNs - System.nanoTime());
            return askOnce(method, request, untilNs - System.nanoTime());
        }
    }

    <Q, R> Answer<R> askOnce(MethodDescriptor<Q, R> method, Q request, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        cluster.require();
        List<Member> order = members.order();
        long startNs = System.nanoTime();
        long sliceNs = Math.min(MAX_SLICE_NS, timeoutNs / (order.size() + 1));
        BlockingQueue<Unary<Q, R>> ended = new LinkedBlockingQueue<>();
        List<Unary<Q, R>> sent = new ArrayList<>();
        Set<Member> waitingFor = new HashSet<>();
        Status lastFailure = null;
        int turn = 0;
        try {
            while (true) {
                long leftNs = timeoutNs - (System.nanoTime() - startNs);
                if (leftNs <= 0) {
                    throw new StoreUnavailableException(describe(method, lastFailure));
                }
                Member next = order.get(turn % order.size());
                if (waitingFor.add(next)) {
                    if (turn >= order.size()) {
                        next.connect();
                    }
                    sent.add(Unary.send(next, method, request, clock.nowNs(), ended::add));
                }
                turn++;
                boolean everyoneAsked = waitingFor.size() == order.size();
                Unary<Q, R> unary = ended.poll(everyoneAsked ? leftNs : Math.min(sliceNs, leftNs), TimeUnit.NANOSECONDS);
                if (unary == null) {
                    // The preferred one is slow: whoever asks next begins elsewhere.
                    members.failed(next);
                    continue;
                }
                if (unary.answer() != null) {
                    return new Answer<>(unary.answer(), unary.sentAtNs());
                }
                cluster.require();
                StoreRejectedException refused = Refusal.ofRead(unary.failure());
                if (refused == null && loginRefused(unary.failure())) {
                    refused = new StoreRejectedException(StoreRejectedException.Reason.UNAUTHENTICATED, Refusal.text(unary.failure()));
                }
                if (refused != null) {
                    throw refused;
                }
                lastFailure = unary.failure();
                members.failed(unary.member());
                waitingFor.remove(unary.member());
                if (turn >= order.size()) {
                    TimeUnit.NANOSECONDS.sleep(Math.min(PAUSE_NS, leftNs));
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreUnavailableException("interrupted", e);
        } finally {
            for (Unary<Q, R> unary : sent) {
                unary.cancel();
            }
        }
    }

    private static boolean loginRefused(Status status) {
        return status.getCode() == Status.Code.FAILED_PRECONDITION && Refusal.text(status).startsWith("etcdserver: authentication is not enabled");
    }

    private static String describe(MethodDescriptor<?, ?> method, Status failure) {
        return "no etcd member answered " + method.getBareMethodName() + " in time" + (failure == null ? "" : "; the last one said: " + brief(failure));
    }

    /** Code and text without a stack; gRPC repeats neither headers nor messages there. */
    static String brief(Status status) {
        String cause = status.getCause() == null || status.getCause().getMessage() == null ? "" : " (" + status.getCause().getMessage() + ")";
        return status.getCode() + (status.getDescription() == null ? "" : " " + status.getDescription()) + cause;
    }
}
