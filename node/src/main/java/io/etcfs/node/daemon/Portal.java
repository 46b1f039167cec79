package io.etcfs.node.daemon;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.Optional;

/** Address and port of an iSCSI target, looked at after a login has failed. */
final class Portal {
    private static final int LIMIT_MS = 5_000;

    private Portal() {}

    /**
     * What keeps this host from the portal, and what to check.
     *
     * @param portal ADDRESS:PORT, an IPv6 address in brackets
     * @return empty if there is somebody
     */
    static Optional<String> trouble(String portal) {
        int colon = portal.lastIndexOf(':');
        String host = portal.substring(0, colon).replaceAll("[\\[\\]]", "");
        InetSocketAddress address;
        try {
            address = new InetSocketAddress(host, Integer.parseInt(portal.substring(colon + 1)));
        } catch (IllegalArgumentException e) {
            return Optional.of("there is no port " + portal.substring(colon + 1) + ": check the address");
        }
        if (address.isUnresolved()) {
            return Optional.of("the name " + host + " is not known: check it, and this host's name service");
        }
        try (Socket socket = new Socket()) {
            socket.connect(address, LIMIT_MS);
            return Optional.empty();
        } catch (SocketTimeoutException e) {
            return Optional.of(portal + " does not answer within " + LIMIT_MS / 1000 + " s: check the address, the network and firewalls between");
        } catch (IOException e) {
            return Optional.of(portal + " can't be reached (" + e.getMessage() + "): check the address and the port, that the target's service runs, and firewalls between");
        }
    }
}
