package io.etcfs.core.session;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.device.DeviceException;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fence.Fencer;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Registered;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.MetadataStore;
import io.etcfs.core.store.Op;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import io.etcfs.core.store.Txn;
import java.util.ArrayList;
import java.util.List;

/**
 * Has the device accept what is written under each session of this node, and nothing under its older ones, before the session is used.
 *
 * <p>{@code registered:} names a session before the device learns of it, so that whoever severs the node knows of each that the device may know.
 */
final class Admission {
    private static final long REQUEST_NS = 400_000_000L;
    private static final int TRIES = 4;
    private static final int EPERM = 1;

    private final MetadataStore store;
    private final Keys keys;
    private final String node;
    private final Fencer fencer;
    /** Whether a session of this process was admitted: then the writes of all earlier ones have ended before the next is opened. */
    private boolean admitted;
    /** Whether the record was read, and nothing of earlier processes was on its way then. */
    private boolean looked;
    private boolean wasQuiet;

    Admission(MetadataStore store, Keys keys, String node, Fencer fencer) {
        this.store = store;
        this.keys = keys;
        this.node = node;
        this.fencer = fencer;
    }

    /**
     * Before the first session of this process, and before anything of the last process is replaced.
     *
     * @throws DeviceException the device can't admit this node as long as it is neither fenced nor declared dead
     */
    void prepare() throws StoreUnavailableException, StoreRejectedException, DeviceException {
        if (fencer.registers()) {
            Registered before = registered(store.range(keys.registered(node), null, 0, false, 0, REQUEST_NS).only());
            if (!hasEnded(before)) {
                fencer.prepare(before.getSessionsList());
            }
        }
    }

    /** Whether no write of an earlier process is on its way. */
    private boolean hasEnded(Registered before) {
        return before.getQuiet() || before.getSessionsList().isEmpty() || !fencer.boot().isEmpty() && before.getBootsList().equals(List.of(fencer.boot()));
    }

    /** What {@link #admit} has to know and the transaction that puts the session reads. */
    List<Op> reads() {
        return List.of(Op.get(keys.registered(node)));
    }

    /**
     * The session lives no longer than its lease meanwhile, so that what may be repeated is, quickly.
     *
     * @param found what {@link #reads} found
     * @param keep  renews the lease, or tries to
     * @throws DeviceException the session is of no use
     */
    void admit(long session, KeyValue found, Compare sameGeneration, Runnable keep) throws StoreUnavailableException, StoreRejectedException, DeviceException {
        if (!fencer.registers()) {
            // Whoever cuts machines off goes by this record, and it would name another one than that of this session.
            if (!registered(found).getMachinesList().isEmpty()) {
                throw new DeviceException(EPERM, "it was mounted with a fencer that cuts machines off before: give the same --fencer");
            }
            return;
        }
        List<Compare> standing = List.of(Compare.createRevision(keys.session(node), session), sameGeneration);
        Registered before = registered(found);
        if (!looked) {
            looked = true;
            wasQuiet = before.getQuiet() || before.getSessionsList().isEmpty();
        }
        List<Long> older = before.getSessionsList().stream().filter(s -> s != session).toList();
        List<Long> all = new ArrayList<>(older);
        all.add(session);
        List<String> machines = new ArrayList<>(before.getMachinesList());
        List<String> own = fencer.machine().isEmpty() ? List.of() : List.of(fencer.machine());
        own.stream().filter(m -> !machines.contains(m)).forEach(machines::add);
        List<String> boots = new ArrayList<>(older.isEmpty() ? List.of() : before.getBootsList());
        if (!boots.contains(fencer.boot())) {
            boots.add(fencer.boot());
        }
        if (!Fault.ADMITTED_UNRECORDED.on() && !committed(standing, List.of(record(all, machines, boots)))) {
            throw new StoreUnavailableException("the session is gone before the device accepts it");
        }
        keep.run();
        fencer.admit(session, older, before.getMachinesList(), admitted || older.isEmpty() || hasEnded(before), () -> committed(standing, List.of()) || Fault.ADMITTED_THOUGH_ENDED.on());
        admitted = true;
        // For as long as it does not get through, the older ones count as if they could write yet.
        if (!Fault.ADMITTED_UNRECORDED.on() && !committed(standing, List.of(record(List.of(session), own, List.of(fencer.boot())))) && !Fault.ADMITTED_THOUGH_ENDED.on()) {
            throw new StoreUnavailableException("the session is gone after the device has accepted it");
        }
    }

    /** What a clean departure puts in its last transaction. */
    List<Op> departed(long session) {
        return fencer.registers() ? List.of(Op.put(keys.registered(node), registered(List.of(session), fencer.machine().isEmpty() ? List.of() : List.of(fencer.machine()), List.of(fencer.boot())).setQuiet(true).build().toByteArray())) : List.of();
    }

    /** The same for a process none of whose sessions came to write anything. */
    List<Op> takenBack() throws StoreUnavailableException, StoreRejectedException {
        if (!looked || !wasQuiet) {
            return List.of();
        }
        Registered now = registered(store.range(keys.registered(node), null, 0, false, 0, REQUEST_NS).only());
        return List.of(Op.put(keys.registered(node), now.toBuilder().setQuiet(true).build().toByteArray()));
    }

    private Registered registered(KeyValue found) {
        try {
            return found == null ? Registered.getDefaultInstance() : Registered.parseFrom(found.value());
        } catch (InvalidProtocolBufferException e) {
            throw new NodeStoppedError("damaged record " + found.key());
        }
    }

    private Op record(List<Long> sessions, List<String> machines, List<String> boots) {
        return Op.put(keys.registered(node), registered(sessions, machines, boots).build().toByteArray());
    }

    private static Registered.Builder registered(List<Long> sessions, List<String> machines, List<String> boots) {
        return Registered.newBuilder().addAllSessions(sessions).addAllMachines(machines).addAllBoots(boots);
    }

    /** Whether it holds, and what is to be put is there. It does no harm to put it twice. */
    private boolean committed(List<Compare> standing, List<Op> puts) throws StoreUnavailableException, StoreRejectedException {
        String cause = "";
        for (int i = 0; i < TRIES; i++) {
            switch (store.commit(new Txn(standing, puts, List.of()), REQUEST_NS)) {
                case Outcome.Committed c -> {
                    return true;
                }
                case Outcome.Conflict c -> {
                    return false;
                }
                case Outcome.Unknown unknown -> cause = unknown.cause();
            }
        }
        throw new StoreUnavailableException(cause);
    }
}
