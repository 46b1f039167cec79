package io.etcfs.core.fs;

import io.etcfs.core.domain.Domain;
import io.etcfs.core.domain.Vnode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the kernel has each directory that it knows.
 *
 * <p>It keeps one place for a directory. Told of it at another one, as another node has moved it, it moves it there; but in a rename to another directory it can't, and
 * the rename ends with ESTALE, as often as it is tried. It asks for the name once more then, which is when it is made to drop the place it had. Not before that: a mount
 * on the directory, or somebody's working directory, goes along with a move and is lost with a drop. Monitor held.
 */
final class Places {
    private static final int MAX_FORMER = 8;

    private final Node node;

    Places(Node node) {
        this.node = node;
    }

    /** The kernel was told of the directory at this name. */
    void told(Vnode v, Domain parent, byte[] name) {
        Vnode.Place place = new Vnode.Place(parent.id, ByteBuffer.wrap(name));
        if (v.place != null && !v.place.equals(place)) {
            List<Vnode.Place> former = new ArrayList<>(v.formerPlaces);
            former.remove(place);
            former.remove(v.place);
            former.add(v.place);
            v.formerPlaces = former.size() > MAX_FORMER ? former.subList(1, former.size()) : former;
            // Where nothing below it is remembered this is all that it takes.
            node.view().prune(List.of(v.ino));
        }
        v.place = place;
    }

    /** It was moved by the kernel itself. */
    void moved(long ino, Domain parent, byte[] name) {
        Vnode v = node.vnodes().known(ino);
        if (v != null) {
            v.place = new Vnode.Place(parent.id, ByteBuffer.wrap(name));
            v.formerPlaces = List.of();
        }
    }

    /**
     * To be called before the kernel is told of the directory at this name. If it was before, and another place came before that, it is made to drop that one.
     *
     * @return false: that is on its way, and worth waiting for
     */
    boolean settled(Vnode v, Domain parent, byte[] name) {
        if (v.dropsUntilNs > 0) {
            return node.monitor().nowNs() >= v.dropsUntilNs;
        }
        if (v.formerPlaces.isEmpty() || !new Vnode.Place(parent.id, ByteBuffer.wrap(name)).equals(v.place)) {
            return true;
        }
        List<Vnode.Place> wrong = v.formerPlaces.stream().filter(p -> node.vnodes().all().stream().noneMatch(other -> p.equals(other.place))).toList();
        v.formerPlaces = List.of();
        return wrong.isEmpty() || node.view().dropPlaces(v, wrong);
    }
}
