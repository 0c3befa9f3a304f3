import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;

import java.util.HashMap;
import java.util.Map;

/** The leaves of an item, for engines that do not read text themselves. */
final class Photon {
    static final String[] LEAVES = {"ra", "dec", "dx", "dy", "phc", "en", "det_time"};
    /** The leaves with what is around them. */
    static final String[][] PATHS = {
        {"coord", "cel", "ra"}, {"coord", "cel", "dec"}, {"coord", "det", "dx"}, {"coord", "det", "dy"},
        {"phc"}, {"en"}, {"det_time"},
    };
    private static final Map<String, Integer> NUMBERS = new HashMap<>();
    private static final JsonFactory JSON = new JsonFactory();

    static {
        for (int leaf = 0; leaf < LEAVES.length; leaf++) {
            NUMBERS.put(LEAVES[leaf], leaf);
        }
    }

    private Photon() {}

    /** The leaves of an item of JSON or XML, in their order. */
    static double[] leaves(String item) throws Exception {
        double[] found = new double[LEAVES.length];
        if (item.charAt(0) == '<') {
            XmlItem.leaves(item, (name, value) -> found[NUMBERS.get(name)] = Double.parseDouble(value));
            return found;
        }
        try (JsonParser parser = JSON.createParser(item)) {
            int leaf = -1;
            for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
                if (token == JsonToken.FIELD_NAME) {
                    leaf = NUMBERS.getOrDefault(parser.currentName(), -1);
                } else if (token.isNumeric()) {
                    found[leaf] = parser.getDoubleValue();
                }
            }
        }
        return found;
    }
}
