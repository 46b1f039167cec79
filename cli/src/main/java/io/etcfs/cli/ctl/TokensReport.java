package io.etcfs.cli.ctl;

import io.etcfs.core.record.Keys;
import io.etcfs.core.record.proto.Lock;
import io.etcfs.core.record.proto.Owner;
import io.etcfs.core.record.proto.Want;
import io.etcfs.core.store.KeyValue;
import io.etcfs.core.store.StoreRejectedException;
import io.etcfs.core.store.StoreUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;

/** Who holds, wants and last held what. A resource is the inode number of its directory. */
record TokensReport(List<Resource> resources) {
    record Resource(long resource, List<Holder> holders, List<Waiter> waiters, LastOwner owner) {}

    /** {@code mode}: exclusive or shared. {@code session}: create revision of the holder's session key. */
    record Holder(String node, String mode, long session) {}

    record Waiter(String node, String kind, long session) {}

    record LastOwner(String node, long session, long generation, long epoch, boolean givenUp, List<Suspect> suspects) {}

    record Suspect(String node, long session) {}

    static TokensReport read(Snapshot snapshot) throws StoreUnavailableException, StoreRejectedException {
        Keys keys = snapshot.keys();
        return of(keys, snapshot.below(keys.locks()), snapshot.below(keys.wants()), snapshot.below(keys.owners()));
    }

    static TokensReport of(Keys keys, List<KeyValue> locks, List<KeyValue> wants, List<KeyValue> owners) {
        TreeMap<Long, Resource> resources = new TreeMap<>(Long::compareUnsigned);
        for (KeyValue keyValue : owners) {
            Owner owner = Snapshot.parse(Owner.parser(), keyValue);
            List<Suspect> suspects = owner.getSuspectsList().stream().map(suspect -> new Suspect(suspect.getNode(), suspect.getSession())).toList();
            long resource = keys.parseOwner(keyValue.key());
            resources.put(resource, new Resource(resource, new ArrayList<>(), new ArrayList<>(),
                    new LastOwner(owner.getNode(), owner.getSession(), owner.getGeneration(), owner.getEpoch(), owner.getGivenUp(), suspects)));
        }
        for (KeyValue keyValue : locks) {
            Keys.LockKey key = keys.parseLock(keyValue.key());
            resources.computeIfAbsent(key.res(), TokensReport::empty).holders()
                    .add(new Holder(key.node(), key.exclusive() ? "exclusive" : "shared", Snapshot.parse(Lock.parser(), keyValue).getSession()));
        }
        for (KeyValue keyValue : wants) {
            Keys.WantKey key = keys.parseWant(keyValue.key());
            Want want = Snapshot.parse(Want.parser(), keyValue);
            resources.computeIfAbsent(key.res(), TokensReport::empty).waiters().add(new Waiter(key.node(), want.getKind().name().toLowerCase(Locale.ROOT), want.getSession()));
        }
        return new TokensReport(List.copyOf(resources.values()));
    }

    private static Resource empty(long resource) {
        return new Resource(resource, new ArrayList<>(), new ArrayList<>(), null);
    }
}
