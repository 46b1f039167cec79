package io.etcfs.linux.mount;

import java.io.IOException;

/** {@link Transport#URING} was demanded and can't be had. The message says why and what to do. */
public final class TransportUnavailableException extends IOException {
    private static final long serialVersionUID = 1L;

    TransportUnavailableException(String message) {
        super(message);
    }
}
