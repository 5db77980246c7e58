// What HotSpot leaves to signals and to code of its own making: null checks without a comparison,
// division by zero, overflow of the stack, safepoints, deoptimisation, collection of garbage.
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

public class NullChecks {
    int field;
    int[] values = new int[16];
    NullChecks next;

    static int sum(NullChecks object) {
        return object.field + object.values[3];
    }

    static int nulls(int rounds) {
        NullChecks object = new NullChecks();
        object.field = 2;
        int caught = 0, total = 0;
        for (int i = 0; i < rounds; ++i) {
            try {
                total += sum(i % 500 == 499 ? null : object);
            } catch (NullPointerException exception) {
                ++caught;
            }
        }
        return caught * 1000000 + total % 1000000;
    }

    static int divisions(int rounds) {
        int caught = 0;
        for (int i = 0; i < rounds; ++i) {
            try {
                caught += 100 / (i % 50);
            } catch (ArithmeticException exception) {
                ++caught;
            }
        }
        return caught;
    }

    static int bounds(int[] array, int rounds) {
        int caught = 0;
        for (int i = 0; i < rounds; ++i) {
            try {
                caught += array[i % (array.length + 1)];
            } catch (ArrayIndexOutOfBoundsException exception) {
                caught += 3;
            }
        }
        return caught;
    }

    static int depth;

    static void descend() {
        ++depth;
        descend();
    }

    static boolean overflows() {
        for (int i = 0; i < 5; ++i) {
            depth = 0;
            try {
                descend();
                return false;
            } catch (StackOverflowError error) {
                if (depth < 100) return false;
            }
        }
        return true;
    }

    static long garbage(int rounds) {
        NullChecks kept = null;
        long sum = 0;
        for (int i = 0; i < rounds; ++i) {
            NullChecks made = new NullChecks();
            made.field = i;
            if (i % 100 == 0) {
                made.next = kept;
                kept = made;
            }
            if (i % 100000 == 99999) {
                for (NullChecks at = kept; at != null; at = at.next) sum += at.field;
                kept = null;
            }
        }
        return sum;
    }

    interface Shape { double area(); }

    // A call whose target is guessed from what has been seen, until another class appears.
    static double shapes(int rounds) {
        double sum = 0;
        for (int i = 0; i < rounds; ++i) {
            final int side = i % 10;
            Shape shape = i < rounds / 2 ? () -> side * side : () -> side * 0.5;
            sum += shape.area();
        }
        return sum;
    }

    static long threads() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        AtomicLong total = new AtomicLong();
        Object lock = new Object();
        long[] shared = new long[1];
        List<Future<Integer>> results = new ArrayList<>();
        for (int task = 0; task < 20; ++task) {
            final int number = task;
            results.add(pool.submit(() -> {
                for (int i = 0; i < 2000; ++i) {
                    total.addAndGet(i);
                    synchronized (lock) { shared[0] += number; }
                }
                return nulls(2000) % 1000;
            }));
        }
        long sum = 0;
        for (Future<Integer> result : results) sum += result.get();
        pool.shutdown();
        return sum + total.get() + shared[0];
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println(nulls(2000000));
        System.out.println(divisions(300000));
        System.out.println(bounds(new int[] {1, 2, 3}, 300000));
        System.out.println(overflows());
        System.out.println(garbage(1000000));
        System.out.println(shapes(1000000));
        System.out.println(threads());
        System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> i * 31L % 7).sum());
        System.out.println(String.format("%s %.3f", Arrays.toString("a,b".split(",")), Math.sin(1)));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.exit(4);
    }
}
