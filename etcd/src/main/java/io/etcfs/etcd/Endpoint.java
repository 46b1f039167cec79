package io.etcfs.etcd;

/** Where a member listens for clients. */
record Endpoint(String host, int port, boolean tls) {
    /** {@code host:port}, {@code [v6]:port}, or either after {@code http://} or {@code https://}; without a scheme TLS is used if {@code tlsByDefault}. */
    static Endpoint parse(String text, boolean tlsByDefault) {
        boolean tls = tlsByDefault;
        String address = text;
        if (text.startsWith("https://")) {
            tls = true;
            address = text.substring("https://".length());
        } else if (text.startsWith("http://")) {
            tls = false;
            address = text.substring("http://".length());
        }
        if (address.endsWith("/")) {
            address = address.substring(0, address.length() - 1);
        }
        int colon = address.lastIndexOf(':');
        int port = -1;
        try {
            port = Integer.parseInt(address.substring(colon + 1));
        } catch (NumberFormatException e) {
            // Refused below, with the rest.
        }
        String host = colon <= 0 ? "" : address.substring(0, colon);
        boolean bracketed = host.startsWith("[") && host.endsWith("]");
        if (bracketed) {
            host = host.substring(1, host.length() - 1);
        }
        if (host.isEmpty() || host.indexOf('/') >= 0 || (host.indexOf(':') >= 0 && !bracketed) || port < 1 || port > 65535) {
            throw new IllegalArgumentException("etcd endpoint '" + text + "' is not host:port, http://host:port or https://host:port");
        }
        return new Endpoint(host, port, tls);
    }

    @Override
    public String toString() {
        return (tls ? "https://" : "http://") + (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port;
    }
}
