package io.etcfs.linux.mount;

class FuseMountTest extends FuseMountContract {
    FuseMountTest() {
        super(Transport.DEV);
    }
}
