import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A peer over a file of items: rounds of matching, one for each line on standard input.
 *
 * <p>Arguments: the class of the peer, the file of items, one a line, the file of conjunctions, one a line, each range
 * of which is a leaf's number and two bounds, and how many threads share the items out.
 * When all conjunctions are added, "ready" is written, with the nanoseconds that adding them took, the bytes of the
 * heap in use and the peer's settings. Orders are "match ITEMS", "write ITEMS FILE", which also writes each match with
 * its item, and makes the file durable, and "pairs ITEMS FILE", which writes the numbers of what has matched.
 * The answer to an order is the nanoseconds of the round, and how many matches it had.
 * Items are in memory before; a round parses and matches them.
 */
public final class Rounds {
    private final Peer peer;
    private final List<String> items;
    private final int threads;

    private Rounds(Peer peer, List<String> items, int threads) {
        this.peer = peer;
        this.items = items;
        this.threads = peer.hasThreads() ? 1 : threads;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what libraries print is no answer
        try (Peer peer = (Peer) Class.forName(arguments[0]).getDeclaredConstructor().newInstance()) {
            List<List<Peer.Range>> conjunctions = conjunctions(Path.of(arguments[2]));
            Rounds rounds =
                    new Rounds(peer, Files.readAllLines(Path.of(arguments[1])), Integer.parseInt(arguments[3]));
            long begin = System.nanoTime();
            peer.add(conjunctions);
            long added = System.nanoTime() - begin;
            System.gc();
            Runtime runtime = Runtime.getRuntime();
            long heap = runtime.totalMemory() - runtime.freeMemory();
            answers.println("ready " + added + " " + heap + " " + peer.settings());
            rounds.serve(answers);
        }
        System.exit(0); // some peers leave threads behind
    }

    private static List<List<Peer.Range>> conjunctions(Path file) throws IOException {
        List<List<Peer.Range>> found = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] words = line.split(" ");
            List<Peer.Range> ranges = new ArrayList<>();
            for (int at = 0; at < words.length; at += 3) {
                ranges.add(new Peer.Range(Integer.parseInt(words[at]), Double.parseDouble(words[at + 1]),
                        Double.parseDouble(words[at + 2])));
            }
            found.add(ranges);
        }
        return found;
    }

    private void serve(PrintStream answers) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ", 3);
            int count = Integer.parseInt(words[1]);
            long begin = System.nanoTime();
            List<Callable<Long>> parts = new ArrayList<>();
            for (int part = 0; part < threads; part++) {
                int from = (int) ((long) count * part / threads);
                int to = (int) ((long) count * (part + 1) / threads);
                String file = words.length > 2 ? words[2] + "-" + part : null;
                parts.add(() -> file == null ? count(from, to) : written(from, to, file, words[0].equals("pairs")));
            }
            long matches = 0;
            for (Future<Long> each : pool.invokeAll(parts)) {
                matches += each.get();
            }
            answers.println((System.nanoTime() - begin) + " " + matches);
        }
        pool.shutdown();
    }

    private long count(int from, int to) throws Exception {
        long[] found = new long[1];
        peer.match(items, from, to, (item, conjunction) -> found[0]++);
        return found[0];
    }

    private long written(int from, int to, String name, boolean pairs) throws Exception {
        long[] found = new long[1];
        try (FileOutputStream file = new FileOutputStream(name);
                BufferedWriter out =
                        new BufferedWriter(new OutputStreamWriter(file, StandardCharsets.UTF_8), 1 << 20)) {
            peer.match(items, from, to, (item, conjunction) -> {
                found[0]++;
                try {
                    out.write(Integer.toString(conjunction));
                    out.write(' ');
                    out.write(pairs ? Integer.toString(item) : items.get(item));
                    out.write('\n');
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
            out.flush();
            file.getFD().sync();
        }
        return found[0];
    }
}
