package io.etcfs.etcd;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchListener;
import io.etcfs.etcd.wire.WatchCancelRequest;
import io.etcfs.etcd.wire.WatchGrpc;
import io.etcfs.etcd.wire.WatchProgressRequest;
import io.etcfs.etcd.wire.WatchRequest;
import io.etcfs.etcd.wire.WatchResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * All watches of a store, over one stream to one member. A thread keeps the stream: it connects, asks for a sign of life when nothing was heard for a while, and
 * moves to the next member when the stream ends or stays silent; every watch is then made again from the revision after its last.
 *
 * <p>Order of events: {@code created} answers come in the order of the requests and may lack the watch's id if they are refusals, hence {@code unanswered}.
 */
final class Watches implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Watches.class.getName());

    private static final long TICK_NS = 500_000_000L;
    private static final long SILENCE_NS = 2_500_000_000L;
    private static final long FIRST_PAUSE_NS = 20_000_000L;
    private static final long LONGEST_PAUSE_NS = 1_000_000_000L;
    private static final long LOGIN_NS = 5_000_000_000L;

    /** The id in answers that are about all watches of the stream. */
    private static final long EVERY_WATCH = -1;

    private final Members members;
    private final Login login;
    private final Asking asking;
    private final Clock clock;
    private final Tasks tasks;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final Map<Long, EtcdWatch> byId = new LinkedHashMap<>();
    private final Queue<Long> unanswered = new ArrayDeque<>();
    private Stream stream;
    private long lastId;
    private boolean started;
    private boolean closed;
    private String lastLogged = "";

    Watches(Members members, Login login, Asking asking, Clock clock, Tasks tasks) {
        this.members = members;
        this.login = login;
        this.asking = asking;
        this.clock = clock;
        this.tasks = tasks;
    }

    Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        EtcdWatch watch = new EtcdWatch(this, from, end, startRevision, listener);
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateException("the store is closed");
            }
            tasks.start("etcd-watch-" + (lastId + 1), watch::run);
            create(watch);
            if (!started) {
                started = true;
                tasks.start("etcd-watches", this::keepStream);
            }
            changed.signalAll();
            return watch;
        } finally {
            lock.unlock();
        }
    }

    void forget(EtcdWatch watch) {
        lock.lock();
        try {
            List<Long> ids = byId.entrySet().stream().filter(entry -> entry.getValue() == watch).map(Map.Entry::getKey).toList();
            for (long id : ids) {
                byId.remove(id);
                if (stream != null) {
                    stream.send(WatchRequest.newBuilder().setCancelRequest(WatchCancelRequest.newBuilder().setWatchId(id)).build());
                }
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        List<EtcdWatch> open;
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
            open = List.copyOf(byId.values());
        } finally {
            lock.unlock();
        }
        open.forEach(EtcdWatch::close);
    }

    /** Gives the watch a new id and asks for it, if there is a stream to ask on; otherwise that happens when there is one. */
    private void create(EtcdWatch watch) {
        long id = ++lastId;
        byId.put(id, watch);
        if (stream != null) {
            unanswered.add(id);
            stream.send(WatchRequest.newBuilder().setCreateRequest(watch.create(id)).build());
        }
    }

    // The thread that keeps the stream

    private void keepStream() {
        long pauseNs = 0;
        try {
            while (awaitWatches()) {
                if (pauseNs > 0) {
                    clock.sleep(pauseNs);
                }
                long startNs = clock.nowNs();
                String end = followStream();
                if (end == null) {
                    return;
                }
                boolean lasted = clock.nowNs() - startNs > LONGEST_PAUSE_NS;
                log(end, lasted);
                pauseNs = lasted ? FIRST_PAUSE_NS : Math.min(LONGEST_PAUSE_NS, Math.max(FIRST_PAUSE_NS, pauseNs * 2));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean awaitWatches() throws InterruptedException {
        lock.lock();
        try {
            while (byId.isEmpty() && !closed) {
                changed.await();
            }
            return !closed;
        } finally {
            lock.unlock();
        }
    }

    /** One stream from its beginning to its end. Returns why it ended, empty if only a new login was due, null if all is closed. */
    private String followStream() throws InterruptedException {
        Member member = members.awaitReady(LONGEST_PAUSE_NS);
        if (member == null) {
            return "no member can be reached";
        }
        String token;
        try {
            login.ensure(asking, LOGIN_NS);
            token = login.token();
        } catch (StoreUnavailableException | StoreRejectedException e) {
            return e.getMessage();
        }
        Stream mine = open(member);
        String failure = follow(mine);
        mine.cancel();
        if (failure == null) {
            return null;
        }
        if (Refusal.ofToken(failure)) {
            try {
                login.renew(token, asking, LOGIN_NS);
            } catch (StoreUnavailableException | StoreRejectedException e) {
                return e.getMessage();
            }
            return "";
        }
        members.failed(member);
        return "etcd " + member + ": " + failure;
    }

    private Stream open(Member member) {
        lock.lock();
        try {
            List<EtcdWatch> watches = new ArrayList<>(byId.values());
            byId.clear();
            unanswered.clear();
            stream = new Stream(member);
            watches.forEach(this::create);
            return stream;
        } finally {
            lock.unlock();
        }
    }

    /** Returns what went wrong, null if all is closed. */
    private String follow(Stream mine) throws InterruptedException {
        lock.lock();
        try {
            while (!closed && mine.failure == null) {
                clock.await(lock, changed, clock.nowNs() + TICK_NS);
                long silentNs = clock.nowNs() - mine.heardAtNs;
                if (byId.isEmpty()) {
                    mine.heardAtNs = clock.nowNs();
                } else if (silentNs >= SILENCE_NS) {
                    mine.fail("silent for " + silentNs / 1_000_000 + " ms");
                } else if (silentNs >= TICK_NS) {
                    mine.send(WatchRequest.newBuilder().setProgressRequest(WatchProgressRequest.getDefaultInstance()).build());
                }
            }
            stream = null;
            return closed ? null : mine.failure;
        } finally {
            lock.unlock();
        }
    }

    /** Once for each interruption, not for each attempt to end it. */
    private void log(String failure, boolean streamLasted) {
        if (!failure.isEmpty() && (streamLasted || !failure.equals(lastLogged))) {
            lastLogged = failure;
            LOG.log(System.Logger.Level.WARNING, "watches of etcd are interrupted: {0}", failure);
        }
    }

    // Answers

    private void received(Stream from, WatchResponse response) {
        lock.lock();
        try {
            if (from != stream) {
                return;
            }
            from.heardAtNs = clock.nowNs();
            if (response.getCreated()) {
                created(from, response);
            } else if (response.getCanceled()) {
                canceled(from, response);
            } else if (response.getWatchId() == EVERY_WATCH) {
                byId.values().forEach(watch -> watch.caughtUp(response.getHeader().getRevision()));
            } else {
                EtcdWatch watch = byId.get(response.getWatchId());
                if (watch != null) {
                    watch.received(response.getEventsList(), response.getFragment());
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private void created(Stream from, WatchResponse response) {
        Long id = unanswered.poll();
        if (id == null || (!response.getCanceled() && response.getWatchId() != id)) {
            from.fail("an answer to no request: watch " + response.getWatchId());
            return;
        }
        EtcdWatch watch = byId.get(id);
        if (watch == null) {
            return;
        }
        if (response.getCanceled()) {
            from.fail("a watch is refused: " + response.getCancelReason());
            return;
        }
        watch.established(response.getHeader().getRevision());
    }

    private void canceled(Stream from, WatchResponse response) {
        EtcdWatch watch = byId.remove(response.getWatchId());
        if (watch == null) {
            return;
        }
        if (response.getCompactRevision() > 0) {
            watch.compacted(response.getCompactRevision());
        } else {
            from.fail("a watch is cancelled: " + response.getCancelReason());
        }
        create(watch);
    }

    /** One stream of watch requests and answers. All fields are guarded by the lock of Watches. */
    private final class Stream implements StreamObserver<WatchResponse> {
        private final ClientCall<WatchRequest, WatchResponse> call;
        private final StreamObserver<WatchRequest> requests;
        private long heardAtNs = clock.nowNs();
        private String failure;

        Stream(Member member) {
            call = member.channel().newCall(WatchGrpc.getWatchMethod(), CallOptions.DEFAULT);
            requests = ClientCalls.asyncBidiStreamingCall(call, this);
        }

        void send(WatchRequest request) {
            if (failure == null) {
                requests.onNext(request);
            }
        }

        void fail(String why) {
            if (failure == null) {
                failure = why;
                changed.signalAll();
            }
        }

        void cancel() {
            call.cancel("a new stream takes over", null);
        }

        @Override
        public void onNext(WatchResponse response) {
            received(this, response);
        }

        @Override
        public void onError(Throwable t) {
            lock.lock();
            try {
                fail(Asking.brief(Status.fromThrowable(t)));
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void onCompleted() {
            lock.lock();
            try {
                fail("ended by the member");
            } finally {
                lock.unlock();
            }
        }
    }
}
