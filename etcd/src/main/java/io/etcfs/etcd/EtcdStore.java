package io.etcfs.etcd;

import io.etcfs.core.clock.Clock;
import io.etcfs.core.clock.Tasks;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.LeaseBeat;
import io.etcfs.core.store.LeaseGrant;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.RangeResult;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreRejectedException.Reason;
import io.etcfs.core.store.StoreStatus;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import io.etcfs.core.store.TxnResult;
import io.etcfs.core.store.Watch;
import io.etcfs.core.store.WatchListener;
import io.etcfs.etcd.wire.CompactionRequest;
import io.etcfs.etcd.wire.DefragmentRequest;
import io.etcfs.etcd.wire.KVGrpc;
import io.etcfs.etcd.wire.LeaseGrantRequest;
import io.etcfs.etcd.wire.LeaseGrantResponse;
import io.etcfs.etcd.wire.LeaseGrpc;
import io.etcfs.etcd.wire.LeaseKeepAliveRequest;
import io.etcfs.etcd.wire.LeaseKeepAliveResponse;
import io.etcfs.etcd.wire.LeaseRevokeRequest;
import io.etcfs.etcd.wire.MaintenanceGrpc;
import io.etcfs.etcd.wire.MoveLeaderRequest;
import io.etcfs.etcd.wire.RangeResponse;
import io.etcfs.etcd.wire.StatusRequest;
import io.etcfs.etcd.wire.StatusResponse;
import io.etcfs.etcd.wire.TxnRequest;
import io.etcfs.etcd.wire.TxnResponse;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * etcd over gRPC. Talks to one member as long as that one answers and moves on to the next otherwise. Two sets of connections: one for leases' keep-alives,
 * with a thread of its own, and one for everything else.
 *
 * <p>A transaction is sent once, to one member. It is refused only where etcd says for certain that it had no effect ({@link Refusal}); whatever else goes
 * wrong is {@link Outcome.Unknown}, a full database included. The one exception to "once": a transaction that was refused for its login token, hence
 * had no effect, is sent again with a new token.
 *
 * <p>Who answers first says which cluster it is; once another one has answered ({@link OneCluster}) each call throws.
 *
 * <p>An interrupt ends every call early, as if its time was over; the interrupt status stays set.
 */
public final class EtcdStore implements MetadataStore {
    private static final int DATA_THREADS = 2;

    private final Clock clock;
    private final OneCluster cluster = new OneCluster();
    private final Login login;
    private final Members members;
    private final Members beatMembers;
    private final Asking asking;
    private final Watches watches;

    /**
     * Starts to connect and returns; whether etcd can be reached shows in the first request.
     *
     * @throws IllegalArgumentException a TLS file has not the form it must have
     */
    public EtcdStore(EtcdOptions options, Clock clock, Tasks tasks) {
        this.clock = clock;
        login = new Login(options);
        Headers headers = new Headers(login::token);
        members = new Members("etcd-io", DATA_THREADS, options, headers, cluster);
        beatMembers = new Members("etcd-beats", 1, options, headers, cluster);
        asking = new Asking(members, login, cluster, clock);
        watches = new Watches(members, login, asking, clock, tasks);
        members.connectAll();
        beatMembers.connectAll();
    }

    @Override
    public Outcome commit(Txn txn, long timeoutNs) throws StoreRejectedException {
        cluster.require();
        long untilNs = System.nanoTime() + timeoutNs;
        TxnRequest request = Wire.txn(txn);
        try {
            login.ensure(asking, timeoutNs);
            String token = login.token();
            try {
                return commitOnce(txn, request, untilNs - System.nanoTime());
            } catch (StoreRejectedException e) {
                if (!login.possible() || !Refusal.ofToken(e.getMessage())) {
                    throw e;
                }
                login.renew(token, asking, untilNs - System.nanoTime());
                return commitOnce(txn, request, untilNs - System.nanoTime());
            }
        } catch (StoreUnavailableException e) {
            return new Outcome.Unknown(e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return new Outcome.Unknown("interrupted");
        }
    }

    private Outcome commitOnce(Txn txn, TxnRequest request, long timeoutNs) throws StoreRejectedException, InterruptedException {
        long untilNs = System.nanoTime() + timeoutNs;
        Member member = members.awaitReady(timeoutNs);
        if (member == null) {
            return new Outcome.Unknown("no etcd member can be reached");
        }
        CompletableFuture<Unary<TxnRequest, TxnResponse>> ended = new CompletableFuture<>();
        Unary<TxnRequest, TxnResponse> unary = Unary.send(member, KVGrpc.getTxnMethod(), request, 0, ended::complete);
        try {
            ended.get(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            unary.cancel();
            members.failed(member);
            return new Outcome.Unknown("etcd " + member + " did not answer in time");
        } catch (InterruptedException e) {
            unary.cancel();
            throw e;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
        if (unary.answer() != null) {
            TxnResult result = Wire.txnResult(txn, unary.answer());
            return result.succeeded() ? new Outcome.Committed(result) : new Outcome.Conflict(result);
        }
        cluster.require();
        Status failure = unary.failure();
        StoreRejectedException refused = Refusal.of(failure);
        if (refused != null) {
            throw refused;
        }
        if (!Refusal.noSpace(failure)) {
            members.failed(member);
        }
        return new Outcome.Unknown("etcd " + member + ": " + Asking.brief(failure), Refusal.noSpace(failure));
    }

    @Override
    public RangeResult range(Key key, Key end, long limit, boolean keysOnly, long atRevision, long timeoutNs)
            throws StoreUnavailableException, StoreRejectedException {
        RangeResponse response = asking.ask(KVGrpc.getRangeMethod(), Wire.range(key, end, limit, keysOnly, atRevision), timeoutNs).answer();
        long storeRevision = response.getHeader().getRevision();
        return new RangeResult(atRevision == 0 ? storeRevision : atRevision, storeRevision, Wire.keyValues(response), response.getMore(), response.getCount());
    }

    /** A grant whose answer was lost leaves a lease behind that nobody knows; it ends by itself. */
    @Override
    public LeaseGrant grantLease(long ttlSeconds, long timeoutNs) throws StoreUnavailableException {
        try {
            Asking.Answer<LeaseGrantResponse> granted = asking.ask(LeaseGrpc.getLeaseGrantMethod(), LeaseGrantRequest.newBuilder().setTTL(ttlSeconds).build(), timeoutNs);
            return new LeaseGrant(granted.answer().getID(), granted.answer().getTTL(), granted.sentAtNs());
        } catch (StoreRejectedException e) {
            throw new StoreUnavailableException("etcd grants no lease: " + e.getMessage(), e);
        }
    }

    /**
     * Renews on one member. The answer is the renewal's own: etcd's leader made it while it knew to be the leader, and this request has a stream to itself,
     * so that no answer to an earlier one can be taken for it.
     */
    @Override
    public LeaseBeat keepAlive(long leaseId, long timeoutNs) throws StoreUnavailableException {
        cluster.require();
        long untilNs = System.nanoTime() + timeoutNs;
        try {
            login.ensure(asking, timeoutNs);
            String token = login.token();
            try {
                return beatOnce(leaseId, untilNs - System.nanoTime());
            } catch (StoreRejectedException e) {
                if (!login.possible() || !Refusal.ofToken(e.getMessage())) {
                    throw e;
                }
                login.renew(token, asking, untilNs - System.nanoTime());
                return beatOnce(leaseId, untilNs - System.nanoTime());
            }
        } catch (StoreRejectedException e) {
            throw new StoreUnavailableException("etcd renews no lease: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreUnavailableException("interrupted", e);
        }
    }

    private LeaseBeat beatOnce(long leaseId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException, InterruptedException {
        long untilNs = System.nanoTime() + timeoutNs;
        Member member = beatMembers.awaitReady(timeoutNs);
        if (member == null) {
            throw new StoreUnavailableException("no etcd member can be reached");
        }
        BlockingQueue<Unary<LeaseKeepAliveRequest, LeaseKeepAliveResponse>> ended = new LinkedBlockingQueue<>();
        LeaseKeepAliveRequest request = LeaseKeepAliveRequest.newBuilder().setID(leaseId).build();
        long sentAtNs = clock.nowNs();
        Unary<LeaseKeepAliveRequest, LeaseKeepAliveResponse> unary = Unary.send(member, LeaseGrpc.getLeaseKeepAliveMethod(), request, sentAtNs, ended::add);
        boolean answered = false;
        try {
            answered = ended.poll(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS) != null;
        } finally {
            if (!answered) {
                unary.cancel();
                beatMembers.failed(member);
            }
        }
        if (!answered) {
            throw new StoreUnavailableException("etcd " + member + " did not answer a keep-alive in time");
        }
        if (unary.answer() == null) {
            cluster.require();
            StoreRejectedException refused = Refusal.of(unary.failure());
            if (refused != null) {
                throw refused;
            }
            beatMembers.failed(member);
            throw new StoreUnavailableException("etcd " + member + ": " + Asking.brief(unary.failure()));
        }
        if (unary.answer().getID() != leaseId) {
            throw new StoreUnavailableException("etcd " + member + " answered for another lease");
        }
        return new LeaseBeat(unary.answer().getTTL(), sentAtNs, unary.answer().getHeader().getRevision());
    }

    @Override
    public void revokeLease(long leaseId, long timeoutNs) throws StoreUnavailableException {
        try {
            asking.ask(LeaseGrpc.getLeaseRevokeMethod(), LeaseRevokeRequest.newBuilder().setID(leaseId).build(), timeoutNs);
        } catch (StoreRejectedException e) {
            if (e.reason() != Reason.LEASE_NOT_FOUND) {
                throw new StoreUnavailableException("etcd revokes no lease: " + e.getMessage(), e);
            }
        }
    }

    @Override
    public Watch watch(Key from, Key end, long startRevision, WatchListener listener) {
        return watches.watch(from, end, startRevision, listener);
    }

    /** Lets etcd forget what was before a revision. No error if it has already. Old revisions can't be read and watches can't start there afterwards. */
    @Override
    public void compact(long revision, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        try {
            asking.ask(KVGrpc.getCompactMethod(), CompactionRequest.newBuilder().setRevision(revision).build(), timeoutNs);
        } catch (StoreRejectedException e) {
            if (e.reason() != Reason.COMPACTED) {
                throw e;
            }
        }
    }

    /**
     * Asks every member at the same time and waits for all, a dead one until the time is over. The revision is the newest that any knows; the sizes are those
     * of the member that has used most of its quota, since the first full one stops the cluster.
     */
    @Override
    public StoreStatus status(long timeoutNs) throws StoreUnavailableException {
        long untilNs = System.nanoTime() + timeoutNs;
        try {
            login.ensure(asking, timeoutNs);
        } catch (StoreRejectedException e) {
            throw new StoreUnavailableException("etcd refuses the login: " + e.getMessage(), e);
        }
        BlockingQueue<Unary<StatusRequest, StatusResponse>> ended = new LinkedBlockingQueue<>();
        List<Unary<StatusRequest, StatusResponse>> waitingFor = new ArrayList<>();
        for (Member member : members.order()) {
            member.connect();
            waitingFor.add(Unary.send(member, MaintenanceGrpc.getStatusMethod(), StatusRequest.getDefaultInstance(), clock.nowNs(), ended::add));
        }
        List<Unary<StatusRequest, StatusResponse>> asked = List.copyOf(waitingFor);
        try {
            while (!waitingFor.isEmpty()) {
                Unary<StatusRequest, StatusResponse> unary = ended.poll(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS);
                if (unary == null) {
                    break;
                }
                waitingFor.remove(unary);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        List<Unary<StatusRequest, StatusResponse>> silent = List.copyOf(waitingFor);
        cluster.require();
        StoreStatus status = status(asked, silent);
        silent.forEach(Unary::cancel);
        return status;
    }

    private static StoreStatus status(List<Unary<StatusRequest, StatusResponse>> asked, List<Unary<StatusRequest, StatusResponse>> silent)
            throws StoreUnavailableException {
        List<StoreStatus.Member> told = new ArrayList<>();
        StatusResponse fullest = null;
        long revision = 0;
        boolean noSpace = false;
        for (Unary<StatusRequest, StatusResponse> unary : asked) {
            String endpoint = unary.member().toString();
            if (silent.contains(unary) || unary.answer() == null) {
                String error = silent.contains(unary) ? "no answer in time" : Asking.brief(unary.failure());
                told.add(StoreStatus.Member.silent(endpoint, error));
                continue;
            }
            StatusResponse answer = unary.answer();
            long memberId = answer.getHeader().getMemberId();
            told.add(new StoreStatus.Member(endpoint, answer.getVersion(), memberId, memberId == answer.getLeader(), answer.getDbSize(), answer.getDbSizeInUse(), null));
            revision = Math.max(revision, answer.getHeader().getRevision());
            // Each member lists the alarms of all.
            noSpace |= answer.getErrorsList().stream().anyMatch(error -> error.contains("alarm:NOSPACE"));
            if (fullest == null || used(answer) > used(fullest)) {
                fullest = answer;
            }
        }
        if (fullest == null) {
            throw new StoreUnavailableException("no etcd member tells its status: " + told.getFirst().endpoint() + ": " + told.getFirst().error());
        }
        return new StoreStatus(fullest.getHeader().getClusterId(), revision, fullest.getDbSize(), fullest.getDbSizeInUse(), fullest.getDbSizeQuota(), noSpace, List.copyOf(told));
    }

    @Override
    public void defragment(String endpoint, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        askOneMember(endpoint, MaintenanceGrpc.getDefragmentMethod(), DefragmentRequest.getDefaultInstance(), timeoutNs);
    }

    @Override
    public void moveLeader(String leaderEndpoint, long toMemberId, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        askOneMember(leaderEndpoint, MaintenanceGrpc.getMoveLeaderMethod(), MoveLeaderRequest.newBuilder().setTargetID(toMemberId).build(), timeoutNs);
    }

    /** What only one member can do, asked once. */
    private <Q, R> void askOneMember(String endpoint, MethodDescriptor<Q, R> method, Q request, long timeoutNs) throws StoreUnavailableException, StoreRejectedException {
        long untilNs = System.nanoTime() + timeoutNs;
        login.ensure(asking, timeoutNs);
        Member member = members.all().stream().filter(m -> m.toString().equals(endpoint)).findFirst().orElseThrow(() -> new IllegalArgumentException("no endpoint " + endpoint));
        member.connect();
        CompletableFuture<Unary<Q, R>> ended = new CompletableFuture<>();
        Unary<Q, R> unary = Unary.send(member, method, request, clock.nowNs(), ended::complete);
        try {
            ended.get(untilNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            unary.cancel();
            throw new StoreUnavailableException("etcd " + member + " did not answer " + method.getBareMethodName() + " in time");
        } catch (InterruptedException e) {
            unary.cancel();
            Thread.currentThread().interrupt();
            throw new StoreUnavailableException("interrupted", e);
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
        if (unary.answer() == null) {
            StoreRejectedException refused = Refusal.of(unary.failure());
            if (refused != null) {
                throw refused;
            }
            throw new StoreUnavailableException("etcd " + member + ": " + Asking.brief(unary.failure()));
        }
    }

    private static double used(StatusResponse status) {
        return (double) status.getDbSize() / Math.max(1, status.getDbSizeQuota());
    }

    @Override
    public void close() {
        watches.close();
        members.close();
        beatMembers.close();
    }
}
