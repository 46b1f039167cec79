package io.etcfs.etcd;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.function.Consumer;

/**
 * One request sent to one member, at most once, and what came of it. {@code onEnd} is called once, on a thread of the connection: it must not block.
 * Serves calls with one answer and streams of which only the first answer counts.
 */
final class Unary<Q, R> implements StreamObserver<R> {
    private final Member member;
    private final long sentAtNs;
    private final Consumer<Unary<Q, R>> onEnd;
    private final ClientCall<Q, R> call;
    private R answer;
    private Status failure;
    private boolean ended;

    private Unary(Member member, MethodDescriptor<Q, R> method, long sentAtNs, Consumer<Unary<Q, R>> onEnd) {
        this.member = member;
        this.sentAtNs = sentAtNs;
        this.onEnd = onEnd;
        this.call = member.channel().newCall(method, CallOptions.DEFAULT);
    }

    /** @param sentAtNs the clock, read by the caller before this */
    static <Q, R> Unary<Q, R> send(Member member, MethodDescriptor<Q, R> method, Q request, long sentAtNs, Consumer<Unary<Q, R>> onEnd) {
        Unary<Q, R> unary = new Unary<>(member, method, sentAtNs, onEnd);
        if (method.getType() == MethodDescriptor.MethodType.UNARY) {
            ClientCalls.asyncUnaryCall(unary.call, request, unary);
        } else {
            StreamObserver<Q> requests = ClientCalls.asyncBidiStreamingCall(unary.call, unary);
            requests.onNext(request);
            requests.onCompleted();
        }
        return unary;
    }

    Member member() {
        return member;
    }

    long sentAtNs() {
        return sentAtNs;
    }

    /** Null if it failed. To be read after {@code onEnd} only, as {@link #failure}. */
    R answer() {
        return answer;
    }

    Status failure() {
        return failure;
    }

    void cancel() {
        call.cancel("no longer waited for", null);
    }

    @Override
    public void onNext(R value) {
        if (!ended) {
            ended = true;
            answer = value;
            onEnd.accept(this);
        }
    }

    @Override
    public void onError(Throwable t) {
        end(Status.fromThrowable(t));
    }

    @Override
    public void onCompleted() {
        end(Status.UNAVAILABLE.withDescription("ended without an answer"));
    }

    private void end(Status status) {
        if (!ended) {
            ended = true;
            failure = status;
            onEnd.accept(this);
        }
    }
}
