package io.etcfs.testkit;
import io.etcfs.testkit.sim.*;
public class SimTry {
    public static void main(String[] a) {
        long from = Long.parseLong(a[0]), to = Long.parseLong(a[1]);
        int bad = 0; long t0 = System.nanoTime(); long ops = 0;
        for (long s = from; s < to; s++) {
            World.Result r = World.run(a.length > 3 ? World.Plan.of(s).breaking(io.etcfs.core.fault.Fault.valueOf(a[3])) : World.Plan.of(s));
            ops += r.operations();
            if (r.failure() != null) {
                bad++; if (a.length > 3) { System.out.println(a[3] + ": seed " + s + " after " + (s - from + 1) + ": " + r.failure().lines().findFirst().get()); if (!a[2].equals("v")) return; }
                System.out.println("FAIL " + r.plan() + "\n   " + r.failure().lines().limit(a.length > 2 && a[2].equals("v") ? 60 : 3).reduce("", (x, y) -> x + "\n   " + y));
                if (a.length > 2 && a[2].equals("v")) r.story().forEach(System.out::println);
            }
        }
        System.out.println((to - from) + " seeds, " + bad + " failed, " + ops + " ops, " + (System.nanoTime() - t0) / 1000000 + " ms");
    }
}
