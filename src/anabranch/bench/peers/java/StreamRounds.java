import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Windows of a peer over a file of photons: rounds, one for each line on standard input.
 *
 * <p>Arguments: the class of the peer, the file of items and that of queries, one a line. The order "run ITEMS FILE"
 * writes all results into the file, "run ITEMS" counts them; the answer is the nanoseconds of the round, and how many
 * results it had. Items are in memory before; a round parses them.
 */
public final class StreamRounds {
    private StreamRounds() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what libraries print is no answer
        StreamPeer peer = (StreamPeer) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        List<String> items = Files.readAllLines(Path.of(arguments[1]));
        long begin = System.nanoTime();
        peer.add(Files.readAllLines(Path.of(arguments[2])));
        Runtime runtime = Runtime.getRuntime();
        answers.println("ready " + (System.nanoTime() - begin) + " " + (runtime.totalMemory() - runtime.freeMemory())
                + " a fresh start for each round");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ", 3);
            long[] count = new long[1];
            StringBuilder written = new StringBuilder();
            boolean isWritten = words.length > 2;
            long taken = peer.run(items, Integer.parseInt(words[1]), (first, second) -> {
                synchronized (count) {
                    count[0]++;
                    if (isWritten) {
                        written.append(first).append(' ').append(second).append('\n');
                    }
                }
            });
            if (isWritten) {
                Files.writeString(Path.of(words[2]), written);
            }
            answers.println(taken + " " + count[0]);
        }
        System.exit(0); // some peers leave threads behind
    }
}
