package io.etcfs.core.domain;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** What is known of a domain of which a part is cached. */
class DomainTest {
    private static final long DIRECTORY = 7;

    private final Domain domain = new Domain(DIRECTORY, 0);

    private void cached(long... inos) {
        for (long ino : inos) {
            domain.inodes.put(ino, new Inode(ino, DIRECTORY));
        }
    }

    @Test
    void whatWasDroppedWhileAllWasReadIsNotGone() {
        cached(DIRECTORY, 8, 9);
        domain.dropInodes(10, 0, i -> false);
        long before = domain.dropped;
        domain.take(new Inode(8, DIRECTORY));
        domain.dropInodes(10, 0, i -> false);
        domain.take(new Inode(9, DIRECTORY));
        domain.allInodesTaken(before);
        assertTrue(domain.knowsInode(9));
        assertFalse(domain.knowsInode(8));
        assertFalse(domain.knowsInode(10));
        assertNotNull(domain.part);
    }

    @Test
    void whereNothingWasDroppedTheRestIsGone() {
        cached(DIRECTORY, 8, 9);
        domain.dropInodes(10, 0, i -> i.ino == 9);
        long before = domain.dropped;
        domain.take(new Inode(8, DIRECTORY));
        domain.allInodesTaken(before);
        assertTrue(domain.knowsInode(10));
    }
}
