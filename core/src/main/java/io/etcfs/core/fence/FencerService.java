package io.etcfs.core.fence;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** Makes a fencer that is no part of the base installation. Found by {@link java.util.ServiceLoader}, so that nothing of it is loaded where it is not asked for. */
public interface FencerService {
    /** As it is asked for. */
    String name();

    /**
     * @param device   a path
     * @param settings of the user, by name
     * @throws IOException says in a line what is missing, and what to do
     */
    Fencer open(Path device, Map<String, String> settings) throws IOException;
}
