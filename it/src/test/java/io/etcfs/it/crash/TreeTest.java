package io.etcfs.it.crash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The checker finds each prefix, no two of them, and nothing in what is not one. */
class TreeTest {
    private static final List<Call> SCRIPT = Script.of(7, "r1", 40);

    private static Tree after(int calls) {
        Tree tree = Tree.start("r1");
        SCRIPT.subList(0, calls).forEach(tree::apply);
        return tree;
    }

    private static List<Tree.Match> explain(Tree seen) {
        return Tree.explain(SCRIPT, "r1", seen);
    }

    @Test
    void eachPrefixIsFoundAndNoOther() {
        for (int k = 0; k <= SCRIPT.size(); k++) {
            int effective = k;
            while (effective > 0 && SCRIPT.get(effective - 1) instanceof Call.Fsync) {
                effective--;
            }
            assertEquals(List.of(new Tree.Match(effective, false)), explain(after(k)));
        }
    }

    @Test
    void aCallLeftOutIsNoticed() {
        Random random = new Random(3);
        int tried = 0;
        for (int k = 100; k < SCRIPT.size(); k += 3) {
            int without = k - 2 - random.nextInt(20);
            Tree tree = Tree.start("r1");
            try {
                for (int i = 0; i < k; i++) {
                    if (i != without) {
                        tree.apply(SCRIPT.get(i));
                    }
                }
            } catch (IllegalStateException e) {
                continue;
            }
            if (!(SCRIPT.get(without) instanceof Call.Fsync) && !tree.sameAs(after(k))) {
                tried++;
                assertEquals(List.of(), explain(tree), () -> "without " + SCRIPT.get(without));
            }
        }
        assertTrue(tried > 5, () -> "only a few calls can be left out");
    }

    @Test
    void oneWrongByteIsNoticed() {
        for (int k = 50; k < SCRIPT.size(); k += 31) {
            for (String path : List.copyOf(after(k).entries().keySet())) {
                Tree tree = after(k);
                Tree.Inode node = tree.entries().get(path);
                if (node.bytes.length > 0) {
                    node.bytes[node.bytes.length / 2] ^= 1;
                    assertEquals(List.of(), explain(tree));
                }
            }
        }
    }

    @Test
    void bytesMayBeMissingOnlyAtTheEndOfTheLastWrite() {
        for (int k = 30; k < SCRIPT.size(); k += 2) {
            if (SCRIPT.get(k) instanceof Call.Extend e && e.length() > 1) {
                Tree cut = after(k + 1);
                Tree.Inode node = cut.entries().get(e.path());
                node.bytes = Arrays.copyOf(node.bytes, e.at() + e.length() / 2);
                int at = k;
                assertTrue(explain(cut).stream().anyMatch(m -> m.calls() == at && m.partly() || !m.partly() && m.calls() > at), () -> explain(cut).toString());
                Tree zeros = after(k + 1);
                node = zeros.entries().get(e.path());
                Arrays.fill(node.bytes, e.at() + e.length() / 2, e.at() + e.length(), (byte) 0);
                assertEquals(List.of(), explain(zeros));
            }
        }
    }
}
