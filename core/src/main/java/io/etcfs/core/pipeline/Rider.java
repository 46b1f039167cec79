package io.etcfs.core.pipeline;

import io.etcfs.core.store.Op;
import io.etcfs.core.store.OpResult;
import java.util.List;

/** Something that goes out in a batch's transaction beside its changes: a token given on, a token born. All calls with the monitor held. */
public interface Rider {
    /** How many operations it takes at most, nested ones counted. */
    int operations();

    /** The operations for the present session; asked again only after a new session was opened. */
    List<Op> build();

    /** What to read in the failure branch, to learn how an earlier copy of the transaction left things. */
    List<Op> reads();

    /** The batch committed at {@code revision}; {@code results} are those of {@link #build}'s operations. */
    void committed(long revision, List<OpResult> results);

    /** An earlier copy of the batch committed; {@code reads} are the results of {@link #reads}, as of {@code revision}. */
    void committedEarlier(long revision, List<OpResult> reads);

    /** The batch committed and the session is gone since. */
    void committedAndLost();

    /** The session is gone and the batch did not commit. True: stays in the batch, for the next session. */
    boolean sessionLost();
}
