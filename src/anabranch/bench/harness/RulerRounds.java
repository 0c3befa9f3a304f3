import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import software.amazon.event.ruler.Machine;

/**
 * Event Ruler over a file of JSON lines: rounds of matching, one for each line on standard input.
 *
 * <p>Arguments: the file of items, the file of rules, one a line, and how many threads share the items out.
 * The answer to "counts" is how many items each rule matches, the answer to "round" the nanoseconds of a round and how
 * many matches it had. Items are in memory before; a round parses and matches them, and writes nothing.
 */
public final class RulerRounds {
    private final Machine machine = new Machine();
    private final List<String> items;
    private final int threads;

    private RulerRounds(List<String> items, List<String> rules, int threads) throws Exception {
        this.items = items;
        this.threads = threads;
        for (int rule = 0; rule < rules.size(); rule++) {
            machine.addRule(Integer.toString(rule), rules.get(rule));
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> rules = Files.readAllLines(Path.of(arguments[1]));
        RulerRounds rounds =
                new RulerRounds(Files.readAllLines(Path.of(arguments[0])), rules, Integer.parseInt(arguments[2]));
        ExecutorService pool = Executors.newFixedThreadPool(rounds.threads);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            System.out.println(order.equals("counts") ? rounds.counts(rules.size()) : rounds.round(pool));
        }
        pool.shutdown();
    }

    private String counts(int rules) throws Exception {
        int[] found = new int[rules];
        for (String item : items) {
            for (String rule : machine.rulesForJSONEvent(item)) {
                found[Integer.parseInt(rule)]++;
            }
        }
        StringBuilder shown = new StringBuilder();
        for (int count : found) {
            shown.append(count).append(' ');
        }
        return shown.toString().trim();
    }

    private String round(ExecutorService pool) throws Exception {
        long begin = System.nanoTime();
        List<Callable<Long>> parts = new ArrayList<>();
        for (int part = 0; part < threads; part++) {
            int from = (int) ((long) items.size() * part / threads);
            int to = (int) ((long) items.size() * (part + 1) / threads);
            parts.add(() -> matches(items.subList(from, to)));
        }
        long matches = 0;
        for (Future<Long> each : pool.invokeAll(parts)) {
            matches += each.get();
        }
        return (System.nanoTime() - begin) + " " + matches;
    }

    private long matches(List<String> some) throws Exception {
        long found = 0;
        for (String item : some) {
            found += machine.rulesForJSONEvent(item).size();
        }
        return found;
    }
}
