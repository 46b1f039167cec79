package io.etcfs.testkit.sim;

import com.google.protobuf.InvalidProtocolBufferException;
import io.etcfs.core.check.Checker;
import io.etcfs.core.check.Finding;
import io.etcfs.core.check.Kind;
import io.etcfs.core.check.Severity;
import io.etcfs.core.fault.Fault;
import io.etcfs.core.fault.Rare;
import io.etcfs.core.fs.Errno;
import io.etcfs.core.fs.FsException;
import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Generation;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Super;
import io.etcfs.core.store.Compare;
import io.etcfs.core.store.Key;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.Outcome;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.Txn;
import io.etcfs.testkit.cluster.TestCluster;
import io.etcfs.testkit.store.MemoryStore;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * One simulated run: machines with their daemons and kernels on one etcd and one device, programs that work on them, and weather. In each epoch something may go
 * wrong; at its end all is well again, everything is published, and what the programs saw and what is stored must have one explanation:
 *
 * <ul>
 *   <li>an order of all operations, each between its call and its return, leads the {@link Reference} from the last epoch's end to what is stored now;
 *   <li>of a daemon that ended, a suffix of what was done since its last fsync may be missing, with whatever came after it there;
 *   <li>an operation without an answer, or with EIO or ETIMEDOUT, counts once or not at all;
 *   <li>at every revision the {@link Rules} hold, at each epoch's end the checker finds no damage, and nothing is left over once all have left.
 * </ul>
 */
public final class World {
    static final String NAME = "sim";
    private static final long DEVICE_BYTES = 256L << 20;
    /** One arena, that goes to whoever wants to write. */
    private static final long SMALL_DEVICE_BYTES = 16L << 20;
    private static final long MS = 1_000_000L;
    private static final long PATIENCE_NS = 300_000 * MS;
    /** An operation that was called in an outage may end 20 s after that, and be one that waited behind another. */
    private static final long PATIENCE_AFTER_NS = 45_000 * MS;

    /** How large a run is. What it does follows from the seed. */
    public record Plan(long seed, Set<Weather.Kind> weather, Set<Rare> rare, Workload workload, Set<Fault> broken, int machines, int epochs, int operations) {
        public static Plan of(long seed) {
            Random r = new Random(seed ^ 0x5deece66dL);
            Set<Rare> rare = EnumSet.noneOf(Rare.class);
            for (Rare way : Rare.values()) {
                // Drawn apart: what a seed plays does not change with a way that is added.
                Random drawn = switch (way) {
                    case SMALL_CACHE -> new Random(seed ^ 0x6ca11e);
                    case DIRECTORIES_IN_PART -> new Random(seed ^ 0xd1f7a7);
                    default -> r;
                };
                if (drawn.nextInt(3) == 0) {
                    rare.add(way);
                }
            }
            Set<Weather.Kind> weather = Weather.draw(r).kinds;
            if (new Random(seed ^ 0x1a7e).nextInt(6) == 0) {
                weather.add(Weather.Kind.LATE_WRITES);
            }
            weather.addAll(Weather.drawLater(new Random(seed ^ 0x90e5)));
            return new Plan(seed, weather, rare, Workload.draw(seed, weather, rare), Set.of(), 2 + r.nextInt(2), 1 + r.nextInt(3), 6 + r.nextInt(20));
        }

        /** The same with rules broken. */
        public Plan breaking(Fault... faults) {
            return new Plan(seed, weather, rare, workload, Set.of(faults), machines, epochs, operations);
        }

        /** The same in that weather, and with those ways taken often. */
        public Plan in(Set<Weather.Kind> otherWeather, Set<Rare> otherWays) {
            return new Plan(seed, otherWeather, otherWays, Workload.usual(seed, otherWeather, otherWays), broken, machines, epochs, operations);
        }

        /** The same with programs that do that. */
        public Plan doing(Workload other) {
            return new Plan(seed, weather, rare, other, broken, machines, epochs, operations);
        }

        @Override
        public String toString() {
            return "seed " + seed + ", " + machines + " machines, " + epochs + " epochs of " + operations + " operations a program, " + workload + ", " + new TreeSet<>(weather) + ", often " + new TreeSet<>(rare)
                    + (broken.isEmpty() ? "" : ", BROKEN " + broken);
        }
    }

    /** {@code failure} null: all is well. {@code digest} is the same in two runs of a plan. */
    public record Result(Plan plan, String failure, List<String> story, long digest, int operations, long virtualNs, long steps) {}

    final Scheduler scheduler;
    final Weather weather;
    final MemoryStore store;
    final SimDisk disk;
    final SimFencer fencer;
    final Super superblock;
    long superblockCreated;
    /** Changes when the device loses its power. */
    int power;

    private final Plan plan;
    private final Random random;
    private final Keys keys = new Keys(NAME);
    private final Rules rules;
    final SimProcess programs;
    private final List<Machine> machines = new ArrayList<>();
    private final List<String> story = new ArrayList<>();
    private final Map<Machine, List<Program>> working = new HashMap<>();
    private final Map<String, Countdown> afterOperations = new HashMap<>();
    private final Set<String> ended = new HashSet<>();
    private final Set<String> fenced = new HashSet<>();
    /** Killed, and not mounted again before the end of the epoch: with the processes that were there to see it. */
    private final Map<Machine, Set<SimProcess>> gone = new LinkedHashMap<>();
    /** To leave once their programs have ended. */
    private final Set<Machine> leavers = new HashSet<>();
    private final Map<Machine, Integer> programsOn = new HashMap<>();
    private List<Op> epoch = new ArrayList<>();
    private Reference reference = Reference.empty();
    /** What {@link #reference} has instead on the device without its cache, as writes: until somebody looks, and if the power fails. */
    private List<Op> unflushed = List.of();
    private Program.Taste taste;
    final LockBook locks;
    /** Programs of this run lock. Drawn apart: what else a seed plays does not follow from it. */
    final boolean locking;
    /** All nodes share the only arena. */
    private final boolean oneArena;
    /** Programs of this run make files without a name and set ACLs. Drawn apart, too. */
    final boolean extras;
    private String broken;
    private int programsRunning;
    private int programsMade;
    private int operations;
    private long calls;
    private boolean rough;
    /** When the last outage that was begun is over. */
    private long troubleUntilNs;

    private World(Plan plan) {
        this.plan = plan;
        this.scheduler = new Scheduler(plan.seed);
        this.random = new Random(plan.seed * 31 + 7);
        this.weather = Weather.of(plan.weather);
        SimProcess etcd = new SimProcess(scheduler, "etcd", 0);
        long leasesLateNs = weather.has(Weather.Kind.LATE_LEASES) ? random.nextLong(1_000 * MS) : 0;
        MemoryStore.Settings d = MemoryStore.Settings.DEFAULT;
        this.store = new MemoryStore(etcd, etcd, new MemoryStore.Settings(d.maxTxnOps(), d.maxRequestBytes(), d.minLeaseTtlSeconds(), leasesLateNs, d.quotaBytes()));
        // Drawn apart, as with locks.
        this.oneArena = new Random(plan.seed ^ 0xa7e4a).nextInt(5) == 0;
        long deviceBytes = oneArena ? SMALL_DEVICE_BYTES : DEVICE_BYTES;
        this.disk = new SimDisk(scheduler, weather, new Random(random.nextLong()), deviceBytes);
        this.fencer = new SimFencer(scheduler, store, new Random(plan.seed ^ 0xfe9ce));
        this.rules = new Rules(keys, disk, fencer, () -> calls, this::broken);
        this.programs = new SimProcess(scheduler, "programs", 0);
        this.superblock = TestCluster.superblock(NAME, deviceBytes);
        this.locks = new LockBook(store, keys);
        this.locking = new Random(plan.seed ^ 0x10c5).nextInt(3) == 0;
        this.extras = new Random(plan.seed ^ 0xac1).nextInt(3) == 0;
    }

    Random lockRandom(int program) {
        return new Random(plan.seed * 1_000 + program);
    }

    Random extraRandom(int program) {
        return new Random(plan.seed * 1_000 + program ^ 0xac1);
    }

    /** Something that must never be. */
    void brokenBy(String what) {
        if (broken == null) {
            broken = what;
        }
        tell(what);
    }

    public static Result run(Plan plan) {
        OffHeap.makeRoom();
        Fault.plant(plan.broken);
        Rare.prefer(plan.rare);
        World world = new World(plan);
        String failure;
        try {
            failure = world.play();
        } finally {
            Fault.plant(Set.of());
            Rare.prefer(Set.of());
        }
        return new Result(plan, failure, world.story, world.scheduler.digest(), world.operations, world.scheduler.nowNs(), world.scheduler.steps());
    }

    Workload workload() {
        return plan.workload;
    }

    /** Of a few files, which programs open by name and make where they are missing: they do nothing else for as long. */
    boolean onFewFiles() {
        return plan.workload == Workload.OPENS || plan.workload == Workload.PAGES;
    }

    boolean manyNames() {
        return plan.rare.contains(Rare.DIRECTORIES_IN_PART);
    }

    // ---- what the parts tell

    void tell(String what) {
        story.add(String.format("%10.3f ms  %s", (scheduler.nowNs() - 1_000_000_000_000L) / 1e6, what));
    }

    void called(Op op) {
        op.called = ++calls;
        epoch.add(op);
        operations++;
    }

    void returned(Op op) {
        op.returned = ++calls;
        boolean calm = scheduler.nowNs() > troubleUntilNs + patienceAfterNs();
        // What a vanished node may still be writing is copied before it is read, which needs room, too.
        boolean roomIsAway = oneArena && !machines.stream().allMatch(Machine::up);
        if (op.error == Errno.ETIMEDOUT && calm && !roomIsAway) {
            broken = "no trouble since " + (scheduler.nowNs() - troubleUntilNs) / MS + " ms: " + op;
        }
        if (op.error == Errno.EIO && !rules.lostSession(op.process.substring(0, op.process.indexOf('.')))) {
            brokenBy("an error of a node that never lost a session, on a device that does not fail: " + op);
        }
        if ((op.error == Errno.ENOSPC || op.cut) && (!oneArena || calm && !roomIsAway)) {
            broken = "there is room, and nobody is away who has it: " + op;
        }
        tell(op.toString());
        Countdown countdown = afterOperations.get(op.process.substring(0, op.process.indexOf('.')));
        if (countdown != null && op.changes()) {
            countdown.one();
        }
    }

    /** Each lost message costs 2 s, and one operation can need four tokens. */
    private long patienceAfterNs() {
        return weather.has(Weather.Kind.LOST_MESSAGES) || weather.has(Weather.Kind.LATE_REQUESTS) ? 4 * PATIENCE_AFTER_NS : PATIENCE_AFTER_NS;
    }

    SimKernel.Sessions sessions(String node) {
        return new SimKernel.Sessions() {
            @Override
            public long calls() {
                return calls;
            }

            @Override
            public long latest() {
                return rules.latestSession(node);
            }

            @Override
            public long endedAt(long session) {
                return rules.endedAt(session);
            }
        };
    }

    void shrink(Machine machine) {
        if (machine.up()) {
            machine.kernel.shrink(inUse(machine));
        }
    }

    /** A program on the machine has no more use for the inode. */
    void evict(Machine machine, long ino) {
        if (machine.up() && !inUse(machine).contains(ino)) {
            machine.kernel.evict(ino);
        }
    }

    private Set<Long> inUse(Machine machine) {
        Set<Long> inUse = new HashSet<>();
        working.getOrDefault(machine, List.of()).forEach(p -> inUse.addAll(p.inUse()));
        return inUse;
    }

    private void broken(String problem) {
        if (broken == null) {
            broken = problem;
        }
    }

    // ---- the run

    private String play() {
        superblockCreated = TestCluster.format(store, superblock);
        fencer.oracle(rules::session, rules::intent);
        rules.watch(store);
        disk.lateLandings(new SimDisk.LateLandings() {
            @Override
            public String holder(long block) {
                return Stored.holder(Stored.keys(store, keys), keys, block);
            }

            @Override
            public void landed(String process, long block, String holderThen) {
                String now = holder(block);
                tell("a write of " + process + " lands, whose session is gone: block " + block + (now == null ? ", which nobody has" : " of " + now));
                if (now != null && !now.equals(holderThen)) {
                    broken("a late write of " + process + " hits block " + block + ", which was given out since: to " + now + ", then of " + holderThen);
                }
            }
        });
        for (int i = 1; i <= plan.machines; i++) {
            Machine m = new Machine(this, "n" + i, new Random(random.nextLong()));
            m.network.calm();
            machines.add(m);
            m.mount();
        }
        if (!go(() -> machines.stream().allMatch(Machine::up), 60_000 * MS)) {
            return problem("not all nodes are mounted");
        }
        watchDaemons();
        for (int e = 1; e <= plan.epochs; e++) {
            String failure = playEpoch(e);
            if (failure != null) {
                return "epoch " + e + ": " + failure;
            }
        }
        return leave();
    }

    private String problem(String otherwise) {
        if (!scheduler.failures().isEmpty()) {
            Throwable t = scheduler.failures().getFirst();
            java.io.StringWriter w = new java.io.StringWriter();
            t.printStackTrace(new java.io.PrintWriter(w));
            return w.toString();
        }
        return broken != null ? broken : otherwise;
    }

    private boolean go(java.util.function.BooleanSupplier done, long forNs) {
        return scheduler.run(() -> broken != null || done.getAsBoolean(), scheduler.nowNs() + forNs) && broken == null;
    }

    private String playEpoch(int number) {
        tell("---- epoch " + number);
        epoch = new ArrayList<>();
        ended.clear();
        leavers.clear();
        afterOperations.clear();
        working.clear();
        taste = switch (plan.workload) {
            case NAMES -> Program.Taste.names(random);
            case OPENS -> Program.Taste.opens(random);
            case PAGES -> Program.Taste.pages(random);
            case MIXED -> weather.has(Weather.Kind.LATE_WRITES) && random.nextInt(4) != 0 ? Program.Taste.slowly(random) : Program.Taste.draw(random);
        };
        rough = true;
        machines.forEach(m -> m.network.rough());
        for (Machine m : machines) {
            int count = switch (plan.workload) {
                case NAMES, PAGES -> 2;
                case OPENS -> 1;
                case MIXED -> weather.endsNodes() ? 1 : 1 + random.nextInt(2);
            };
            for (int i = 0; i < count; i++) {
                start(m, weather.cutsOff() ? plan.operations : plan.operations * plan.workload.longer());
            }
        }
        trouble();
        boolean done = go(() -> programsRunning == 0, PATIENCE_NS);
        if (!done) {
            return problem("programs hang: " + epoch.stream().filter(o -> o.returned == Long.MAX_VALUE).toList());
        }
        rough = false;
        tell("all is well again");
        machines.forEach(m -> {
            m.network.calm();
            if (m.daemon != null) {
                m.daemon.resume();
            }
        });
        if (!go(() -> gone.keySet().stream().allMatch(this::seenToBeGone), PATIENCE_NS)) {
            return problem("nobody sees to " + gone.keySet().stream().map(Machine::process).toList());
        }
        gone.keySet().forEach(Machine::mount);
        gone.clear();
        if (!go(() -> machines.stream().allMatch(m -> m.up() && !fenced.contains(m.process())), PATIENCE_NS)) {
            return problem("not all nodes are mounted again, and those that were fenced have ended");
        }
        String failure = publishAll();
        if (failure != null) {
            return failure;
        }
        List<KeyValue> stored = Stored.keys(store, keys);
        Reference now = Stored.read(stored, keys, disk::block);
        Reference durable = Stored.read(stored, keys, disk::durableBlock);
        Reference before = reference.withStrays(unflushed);
        noteWhatIsSettled(stored);
        failure = new Explanation(before, epoch, ended, List.of(now, durable)).missing();
        reference = now;
        Map<Long, List<Op>> lostWithPower = now.otherBytes(durable);
        unflushed = lostWithPower.values().stream().flatMap(List::stream).toList();
        return failure != null ? failure : !lostWithPower.isEmpty() && !allVanished(stored, lostWithPower.keySet())
                ? "all is published, and not durable: " + lostWithPower : check(stored, false);
    }

    /** What may be left of writes without a known effect stays as it is seen, once nothing of them can be on its way to whoever looks. */
    private void noteWhatIsSettled(List<KeyValue> stored) {
        Map<Long, Long> homes = Stored.homes(stored, keys);
        epoch.stream().filter(o -> o.makes() && o.resultIno != 0).forEach(o -> homes.putIfAbsent(o.resultIno, o.ino));
        for (Op o : epoch) {
            if (o.writes() && ended.contains(o.process)) {
                o.settledFrom = rules.settledFrom(o.process, homes.getOrDefault(o.ino, -1L));
            }
        }
    }

    /** Whether somebody who could change those files vanished, and nobody has looked since: what it left in the device's cache is still nobody's. */
    private boolean allVanished(List<KeyValue> stored, Set<Long> inodes) {
        Map<Key, KeyValue> byKey = new HashMap<>();
        stored.forEach(kv -> byKey.put(kv.key(), kv));
        try {
            for (KeyValue kv : stored) {
                if (!kv.key().startsWith(keys.prefix().plus("inode:")) || !inodes.contains(keys.parseInode(kv.key()).ino())) {
                    continue;
                }
                KeyValue record = byKey.get(keys.owner(keys.parseInode(kv.key()).home()));
                Owner owner = record == null ? null : Owner.parseFrom(record.value());
                KeyValue session = owner == null ? null : byKey.get(keys.session(owner.getNode()));
                if (owner != null && owner.getSuspectsCount() > 0) {
                    // It came late, and is copied before anybody is shown it.
                    continue;
                }
                if (owner == null || owner.getGivenUp() || session != null && session.createRevision() == owner.getSession()) {
                    return false;
                }
            }
        } catch (InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
        return true;
    }

    /**
     * What the checker says: never damage nor the owner record of a removed directory, and at the end nothing that somebody would have to clean up.
     */
    private String check(List<KeyValue> stored, boolean atTheEnd) {
        List<Finding> findings = Checker.check(keys, stored, store.revision()).stream()
                .filter(f -> f.severity() == Severity.DAMAGE || f.kind() == Kind.OWNER_LEFT || atTheEnd && f.severity() == Severity.LEFTOVER).toList();
        return findings.isEmpty() ? null : "what is stored does not agree: " + findings;
    }

    /** Everybody unmounts: what is stored then is the filesystem and nothing else. */
    private String leave() {
        tell("---- all leave");
        for (Machine m : machines) {
            if (!leaves(m)) {
                return problem(m.process() + " does not leave");
            }
        }
        List<KeyValue> stored = Stored.keys(store, keys);
        String difference = reference.difference(Stored.read(stored, keys, disk::block));
        if (difference != null) {
            return "after all have left: " + difference;
        }
        for (KeyValue kv : stored) {
            for (String kind : List.of("session:", "membership:", "lock:", "want:", "open:", "opened:", "orphan:", "remainder:", "arena:", "fence_pending:", "fence_done:")) {
                if (kv.key().startsWith(keys.prefix().plus(kind))) {
                    return "after all have left there is " + kv.key();
                }
            }
        }
        return check(stored, true);
    }

    /** One that learns in this moment that it was fenced stops and is mounted again: then that one leaves. */
    private boolean leaves(Machine m) {
        while (true) {
            SimProcess leaving = m.daemon;
            Answer<Boolean> answer = new Answer<>();
            leaving.start("leave", () -> {
                m.node.leave(60_000 * MS);
                answer.give(true);
            });
            if (!go(() -> answer.given() || m.up() && m.daemon != leaving, PATIENCE_NS)) {
                return false;
            }
            if (answer.given()) {
                return true;
            }
        }
    }

    private void start(Machine m, int count) {
        programsMade++;
        boolean removes = plan.workload == Workload.OPENS && programsMade % 2 == 0;
        Program p = new Program(this, m, programsMade, new Random(random.nextLong()), removes ? taste.removing() : taste);
        working.computeIfAbsent(m, x -> new ArrayList<>()).add(p);
        programsRunning++;
        programsOn.merge(m, 1, Integer::sum);
        programs.start("program-" + programsMade, () -> {
            try {
                p.run(count);
            } finally {
                programsRunning--;
                if (programsOn.merge(m, -1, Integer::sum) == 0 && leavers.remove(m)) {
                    leaveAndComeBack(m);
                }
            }
        });
    }

    /** A machine that does not come back is fenced, if anybody can be; else its intent is there for all to see. One that had left before it went needs neither; nor one that never published, owned or opened anything, if all who saw it are gone themselves. */
    private boolean seenToBeGone(Machine m) {
        try {
            if (machines.stream().noneMatch(x -> x.daemon != null && gone.get(m).contains(x.daemon)) && leftNothing(m.name)) {
                return true;
            }
            return store.range(weather.has(Weather.Kind.FENCER) ? keys.fenceDone(m.name) : keys.fencePending(m.name), null, 0, true, 0, MS).only() != null
                    || store.range(keys.departed(m.name), null, 0, true, 0, MS).only() != null;
        } catch (StoreRejectedException e) {
            throw new IllegalStateException(e);
        }
    }

    private boolean leftNothing(String node) throws StoreRejectedException {
        return store.range(keys.generation(node), null, 0, false, 0, MS).only().version() == 1 && store.range(keys.batch(node), null, 0, true, 0, MS).only() == null
                && store.range(keys.arenasOf(node), keys.arenasOf(node).prefixEnd(), 0, true, 0, MS).count() == 0
                && store.range(keys.openedBy(node), keys.openedBy(node).prefixEnd(), 0, true, 0, MS).count() == 0;
    }

    /** The programs have ended, the kernel lets it go, it leaves, and comes back later. In such weather it may be killed meanwhile. */
    private void leaveAndComeBack(Machine m) {
        if (!m.up()) {
            return;
        }
        programsRunning++;
        SimProcess leaving = m.daemon;
        tell(m.process() + " leaves");
        m.unmounted();
        boolean[] over = {false};
        leaving.start("leave", () -> {
            m.node.leave(10_000 * MS);
            scheduler.after(0, () -> {
                if (m.daemon == leaving) {
                    tell(m.process() + " has left");
                    if (weather.endsNodes()) {
                        ended.add(m.process());
                    }
                    m.end();
                    mountLater(m, random.nextLong(15_000) * MS);
                }
            });
        });
        if (weather.has(Weather.Kind.KILL) && random.nextBoolean()) {
            scheduler.after(random.nextLong(400 * MS), () -> {
                if (m.daemon == leaving) {
                    end(m, "is killed while it leaves");
                }
            });
        }
        untilItEnds(m, leaving);
    }

    private void untilItEnds(Machine m, SimProcess leaving) {
        if (m.daemon == leaving) {
            scheduler.after(20 * MS, () -> untilItEnds(m, leaving));
        } else {
            programsRunning--;
        }
    }

    private void mountLater(Machine m, long delayNs) {
        programsRunning++;
        scheduler.after(delayNs, () -> {
            if (m.daemon == null && !gone.containsKey(m)) {
                m.mount();
            }
            workWhenUp(m);
        });
    }

    /** Programs go on once the mount is there again. */
    private void workWhenUp(Machine m) {
        if (m.up() || gone.containsKey(m)) {
            programsRunning--;
            if (rough && m.up()) {
                start(m, plan.operations / 2);
            }
        } else {
            scheduler.after(20 * MS, () -> workWhenUp(m));
        }
    }

    private void end(Machine m, String how) {
        if (m.daemon != null) {
            tell(m.process() + " " + how);
            ended.add(m.process());
            m.end();
            mountLater(m, (200 + random.nextInt(1_500)) * MS);
        }
    }

    /** Sees to daemons that ended by themselves. */
    private void watchDaemons() {
        for (Machine m : machines) {
            if (m.stopped != null) {
                if (!weather.endsNodes()) {
                    broken = m.process() + " stopped: " + m.stopped;
                }
                m.stopped = null;
                ended.add(m.process());
                    mountLater(m, 500 * MS);
            }
        }
        scheduler.after(10 * MS, this::watchDaemons);
    }

    /** Draws what goes wrong in this epoch, and when. */
    private void trouble() {
        for (Weather.Kind kind : new TreeSet<>(weather.kinds)) {
            int times = 1 + random.nextInt(2);
            for (int i = 0; i < times; i++) {
                long at = random.nextLong(1_200 * MS);
                Machine m = machines.get(random.nextInt(machines.size()));
                long duration = (weather.has(Weather.Kind.LONG_OUTAGES) ? 5_000 + random.nextInt(7_000) : random.nextBoolean() ? 50 + random.nextInt(600) : 1_500 + random.nextInt(4_000)) * MS;
                troubleUntilNs = Math.max(troubleUntilNs, scheduler.nowNs() + at + duration);
                switch (kind) {
                    case PARTITION -> scheduler.after(at, () -> {
                        if (rough) {
                            tell(m.process() + " can't reach etcd for " + duration / MS + " ms");
                            m.network.cut(duration);
                        }
                    });
                    case ETCD_STOPS -> scheduler.after(at, () -> {
                        if (rough) {
                            tell("etcd answers nobody for " + duration / MS + " ms");
                            machines.forEach(x -> x.network.hold(duration));
                        }
                    });
                    case PAUSE -> scheduler.after(at, () -> {
                        if (rough && m.up()) {
                            tell(m.process() + " is stopped for " + duration / MS + " ms");
                            SimProcess p = m.daemon;
                            p.pause();
                            scheduler.after(duration, () -> {
                                tell(p + " goes on");
                                p.resume();
                            });
                        }
                    });
                    case KILL -> when(m, at, () -> {
                        if (rough && m.up()) {
                            end(m, "is killed");
                        }
                    });
                    case GOES -> {
                        if (i == 0) {
                            when(m, at, () -> go(m));
                        }
                    }
                    case LEAVES -> leavers.add(m);
                    case FENCED -> {
                        if (i == 0) {
                            boolean cut = random.nextBoolean();
                            scheduler.after(at, () -> fence(m, 6_000 * MS, cut));
                        }
                    }
                    case POWER_LOSS -> {
                        if (i == 0 && random.nextBoolean()) {
                            when(m, at, () -> {
                                if (rough) {
                                    tell("the power fails");
                                    power++;
                                    machines.forEach(x -> end(x, "is without power"));
                                    disk.losePower();
                                }
                            });
                        }
                    }
                    case LATE_WRITES -> {
                        boolean overwrite = random.nextInt(3) != 0;
                        int how = random.nextInt(3);
                        long late = (1_000 + random.nextLong(random.nextBoolean() ? 4_000 : 14_000)) * MS;
                        troubleUntilNs = Math.max(troubleUntilNs, scheduler.nowNs() + at + 3_000 * MS + late + duration);
                        scheduler.after(at, () -> {
                            if (rough && m.up()) {
                                disk.onWrite(m.process(), block -> !overwrite || Stored.holder(Stored.keys(store, keys), keys, block) != null, () -> hang(m, how, late, duration));
                            }
                        });
                    }
                    case WALL_CLOCK_STEPS -> scheduler.after(at, () -> {
                        if (m.daemon != null) {
                            m.daemon.stepWallClock((random.nextInt(20) - 10) * 3_600_000L * MS);
                        }
                    });
                    case WATCH_GAPS -> scheduler.after(at, this::compact);
                    case LONG_OUTAGES, SLOW_NETWORK, LOST_MESSAGES, LATE_REQUESTS, TWICE, SLOW_WATCHES, LATE_LEASES, DRIFT, SLOW_DEVICE, SLOW_KERNEL, FENCER -> {
                        // All the time.
                    }
                }
            }
        }
    }

    /** What the machine's daemon has on its way to the device hangs, and then the daemon is killed, stopped or cut off. */
    private void hang(Machine m, int how, long lateNs, long durationNs) {
        SimProcess p = m.daemon;
        if (!rough || !m.up()) {
            return;
        }
        troubleUntilNs = Math.max(troubleUntilNs, scheduler.nowNs() + lateNs + durationNs);
        tell("writes of " + p + " that are on their way take up to " + lateNs / MS + " ms");
        disk.holdUp(m.process(), lateNs);
        scheduler.after(random.nextLong(MS), () -> {
            // Not once all is well: somebody waits for what this daemon publishes.
            if (m.daemon != p || !rough) {
                return;
            }
            switch (how) {
                case 0 -> end(m, "is killed");
                case 1 -> {
                    tell(p + " is stopped for " + durationNs / MS + " ms");
                    p.pause();
                    scheduler.after(durationNs, () -> {
                        tell(p + " goes on");
                        p.resume();
                    });
                }
                default -> {
                    tell(p + " can't reach etcd for " + durationNs / MS + " ms");
                    m.network.cut(durationNs);
                }
            }
        });
    }

    /** It is killed for good, if somebody is left. */
    private void go(Machine m) {
        if (rough && m.up() && machines.stream().anyMatch(x -> x != m && x.up())) {
            tell(m.process() + " is killed and does not come back");
            ended.add(m.process());
            m.end();
            gone.put(m, machines.stream().filter(Machine::up).map(x -> x.daemon).collect(Collectors.toSet()));
        }
    }

    /** At that time, or a moment after one of the machine's operations. */
    private void when(Machine m, long atNs, Runnable trouble) {
        if (random.nextBoolean()) {
            scheduler.after(atNs, trouble);
        } else {
            afterOperations.put(m.name, new Countdown(1 + random.nextInt(plan.operations), random.nextBoolean() ? random.nextLong(3 * MS) : random.nextLong(40 * MS), trouble));
        }
    }

    private final class Countdown {
        private int left;
        private final long delayNs;
        private final Runnable trouble;

        Countdown(int left, long delayNs, Runnable trouble) {
            this.left = left;
            this.delayNs = delayNs;
            this.trouble = trouble;
        }

        void one() {
            if (--left == 0) {
                scheduler.after(delayNs, trouble);
            }
        }
    }

    private void fence(Machine m, long withinNs, boolean cut) {
        if (!rough || !m.up()) {
            return;
        }
        if (cut) {
            tell(m.process() + " is cut off, to be fenced");
            m.network.cut(withinNs);
        }
        fenceOnceGone(cut, m.name, scheduler.nowNs() + withinNs);
    }

    private void fenceOnceGone(boolean gone, String name, long untilNs) {
        if (!rough || scheduler.nowNs() > untilNs) {
            return;
        }
        try {
            KeyValue generation = store.range(keys.generation(name), null, 0, false, 0, MS).only();
            byte[] raised = Generation.newBuilder().setGeneration(Generation.parseFrom(generation.value()).getGeneration() + 1).build().toByteArray();
            if (store.commit(new Txn(gone ? List.of(Compare.absent(keys.session(name))) : List.of(), List.of(io.etcfs.core.store.Op.put(keys.generation(name), raised)), List.of()), MS)
                    instanceof Outcome.Committed) {
                tell(name + " is fenced");
                machines.stream().filter(m -> m.name.equals(name) && m.up()).forEach(m -> fenced.add(m.process()));
            } else {
                scheduler.after(50 * MS, () -> fenceOnceGone(gone, name, untilNs));
            }
        } catch (StoreRejectedException | InvalidProtocolBufferException e) {
            throw new IllegalStateException(e);
        }
    }

    private void compact() {
        try {
            store.compact(store.revision());
        } catch (StoreRejectedException e) {
            // It was just done.
        }
    }

    private String publishAll() {
        for (Machine m : machines) {
            // One may have ended, and be mounting again, since it was looked at.
            if (!go(m::up, PATIENCE_NS)) {
                return problem(m.name + " is not mounted again");
            }
            Answer<String> answer = new Answer<>();
            m.daemon.start("sync", () -> {
                try {
                    m.node.sync(30_000 * MS);
                    answer.give("");
                } catch (FsException e) {
                    answer.give(e.toString());
                }
            });
            if (!go(() -> answer.given() || m.stopped != null, PATIENCE_NS)) {
                return problem(m.process() + " does not publish");
            }
            if (!answer.given()) {
                // It learns only now what it has lost: as if it had ended before.
                if (!weather.endsNodes()) {
                    return m.process() + " stopped: " + m.stopped;
                }
                return go(() -> machines.stream().allMatch(Machine::up), PATIENCE_NS) ? publishAll() : problem("not all nodes are mounted again");
            }
            if (!answer.value().isEmpty()) {
                return m.process() + " can't publish: " + answer.value();
            }
        }
        return null;
    }
}
