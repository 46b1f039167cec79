package io.etcfs.testkit;
import io.etcfs.testkit.sim.*;
public class SimTry {
    public static void main(String[] a) {
        long from = Long.parseLong(a[0]), to = Long.parseLong(a[1]);
        int bad = 0; long t0 = System.nanoTime(); long ops = 0;
        for (long s = from; s < to; s++) {
            World.Result r = World.run(World.Plan.of(s));
            ops += r.operations();
            if (r.failure() != null) {
                bad++;
                System.out.println("FAIL " + r.plan() + "\n   " + r.failure().lines().limit(a.length > 2 ? 60 : 3).reduce("", (x, y) -> x + "\n   " + y));
                if (a.length > 2) r.story().forEach(System.out::println);
            }
        }
        System.out.println((to - from) + " seeds, " + bad + " failed, " + ops + " ops, " + (System.nanoTime() - t0) / 1000000 + " ms");
    }
}
