import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import software.amazon.event.ruler.Machine;

/** Event Ruler: a machine of rules over events of JSON. */
public final class EventRuler implements Peer {
    private final Machine machine = new Machine();

    @Override
    public void add(List<List<Range>> conjunctions) throws Exception {
        for (int number = 0; number < conjunctions.size(); number++) {
            machine.addRule(Integer.toString(number), rule(conjunctions.get(number)));
        }
    }

    private static String rule(List<Range> ranges) {
        Map<String, Object> nested = new TreeMap<>();
        for (Range each : ranges) {
            String[] path = Photon.PATHS[each.leaf()];
            Map<String, Object> around = nested;
            for (int step = 0; step < path.length - 1; step++) {
                around = inner(around, path[step]);
            }
            around.put(path[path.length - 1],
                    "[{\"numeric\": [\">=\", " + each.low() + ", \"<\", " + each.high() + "]}]");
        }
        return written(nested);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> inner(Map<String, Object> around, String name) {
        return (Map<String, Object>) around.computeIfAbsent(name, missing -> new TreeMap<String, Object>());
    }

    @SuppressWarnings("unchecked")
    private static String written(Object rule) {
        if (rule instanceof String text) {
            return text;
        }
        return ((Map<String, Object>) rule).entrySet().stream()
                .map(each -> "\"" + each.getKey() + "\": " + written(each.getValue()))
                .collect(Collectors.joining(", ", "{", "}"));
    }

    @Override
    public void match(List<String> items, int from, int to, Matches matches) throws Exception {
        for (int item = from; item < to; item++) {
            for (String rule : machine.rulesForJSONEvent(XmlItem.json(items.get(item)))) {
                matches.take(item, Integer.parseInt(rule));
            }
        }
    }

    @Override
    public String settings() {
        return "one Machine, rulesForJSONEvent in each thread";
    }
}
