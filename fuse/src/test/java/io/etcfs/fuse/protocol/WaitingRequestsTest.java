package io.etcfs.fuse.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class WaitingRequestsTest {
    private static final long MS = 1_000_000L;

    private final List<Integer> looks = new ArrayList<>();
    private final List<Integer> signalLooks = new ArrayList<>();
    private boolean dying;
    private boolean signalled;
    private long now = -50 * MS;
    private final WaitingRequests requests = new WaitingRequests(pid -> {
        looks.add(pid);
        return dying;
    }, pid -> {
        signalLooks.add(pid);
        return signalled;
    }, () -> now);

    @Test
    void nobodyIsLookedUpBeforeAnInterrupt() {
        dying = true;
        WaitingRequests.Waiting waiting = requests.begin(42, 7);
        assertFalse(waiting.callerIsDying());
        assertEquals(List.of(), looks);
        assertTrue(requests.interrupt(42));
        assertTrue(waiting.callerIsDying());
        assertEquals(List.of(7), looks);
    }

    @Test
    void looksEvery100MsAfterTheOneInterrupt() {
        WaitingRequests.Waiting waiting = requests.begin(42, 7);
        assertTrue(requests.interrupt(42));
        for (int i = 0; i < 30; i++) {
            assertFalse(waiting.callerIsDying());
            now += 10 * MS;
        }
        assertEquals(3, looks.size());
        dying = true;
        assertTrue(waiting.callerIsDying());
        dying = false;
        now += 1_000 * MS;
        assertTrue(waiting.callerIsDying(), "once dying, always dying");
        assertEquals(4, looks.size());
    }

    @Test
    void anySignalIsToldAtOnce() {
        WaitingRequests.Waiting waiting = requests.begin(42, 7);
        List<Boolean> woken = new ArrayList<>();
        waiting.onSignal(() -> woken.add(waiting.signalled()));
        assertFalse(waiting.signalled());
        requests.interrupt(42);
        assertEquals(List.of(true), woken);
        assertTrue(waiting.signalled());
        assertEquals(List.of(), signalLooks, "it need not be looked for");
    }

    @Test
    void aSignalWithoutAnInterruptIsLookedForOnceASecond() {
        WaitingRequests.Waiting waiting = requests.begin(42, 7, true);
        signalled = true;
        for (int i = 0; i < 10; i++) {
            assertFalse(waiting.signalled());
            now += 100 * MS;
        }
        assertTrue(waiting.signalled());
        assertEquals(List.of(7), signalLooks);
    }

    @Test
    void anInterruptFindsOnlyItsRequest() {
        dying = true;
        WaitingRequests.Waiting first = requests.begin(42, 7);
        WaitingRequests.Waiting second = requests.begin(44, 8);
        assertEquals(2, requests.count());
        assertFalse(requests.interrupt(46));
        assertTrue(requests.interrupt(44));
        assertFalse(first.callerIsDying());
        assertTrue(second.callerIsDying());
        second.end();
        second.end();
        assertFalse(requests.interrupt(44));
        assertEquals(1, requests.count());
    }

    @Test
    void anEarlyInterruptIsKeptForTheRequestThatIsYetToWait() {
        dying = true;
        requests.interruptEarly(42);
        assertFalse(requests.begin(44, 7).callerIsDying());
        assertTrue(requests.begin(42, 7).callerIsDying());
        WaitingRequests.Waiting there = requests.begin(46, 7);
        requests.interruptEarly(46);
        assertTrue(there.callerIsDying());
    }

    @Test
    void theOldestEarlyInterruptsAreForgotten() {
        dying = true;
        for (int i = 0; i < 5_000; i++) {
            requests.interruptEarly(1_000 + 2 * i);
        }
        assertFalse(requests.begin(1_000, 7).callerIsDying());
        assertTrue(requests.begin(1_000 + 2 * 4_999, 7).callerIsDying());
    }

    @Test
    void canLookOnceASecondWithoutAnInterrupt() {
        dying = true;
        WaitingRequests.Waiting waiting = requests.begin(42, 7, true);
        now += 999 * MS;
        assertFalse(waiting.callerIsDying());
        now += MS;
        assertTrue(waiting.callerIsDying());
        assertEquals(List.of(7), looks);
    }
}
