// N threads of a virtual machine that work and wait in turns, for as long as they are let.
//
//     java Threads N SHARE COUNTS     each thread works for SHARE of the time; COUNTS is a file of N 8-byte counts of units done
import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Arrays;
import java.util.HashMap;

public class Threads {
    static int unit(long[] state, String[] names, HashMap<String, Integer> seen) {
        for (int i = 0; i < names.length; i++) {
            long x = state[0];
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
            state[0] = x;
            names[i] = Long.toString(x & 0xfff, 36) + (x >>> 60);
        }
        Arrays.sort(names);
        int found = 0;
        for (String name : names) found += seen.merge(name, 1, Integer::sum);
        return found;
    }

    static void work(MappedByteBuffer counts, int number, double share) throws InterruptedException {
        long[] state = {number * 2654435761L + 1};
        String[] names = new String[256];
        HashMap<String, Integer> seen = new HashMap<>();
        long sink = 0;
        for (long done = 1;; done++) {
            long began = System.nanoTime();
            sink += unit(state, names, seen);
            counts.putLong(8 * number, done);
            if (sink == 42) System.out.println(sink);
            if (share < 1 && done % 16 == 0) {
                double worked = 16 * (System.nanoTime() - began);
                Thread.sleep(Math.min(200, 1 + (long) (worked * (1 / share - 1) / 1e6)));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        double share = Double.parseDouble(arguments[1]);
        MappedByteBuffer counts;
        try (RandomAccessFile file = new RandomAccessFile(arguments[2], "rw")) {
            counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8L * threads);
        }
        counts.order(ByteOrder.nativeOrder());
        for (int number = 0; number < threads; number++) {
            int own = number;
            new Thread(() -> {
                try {
                    work(counts, own, share);
                } catch (InterruptedException end) {
                    return;
                }
            }).start();
        }
    }
}
