import java.io.Serializable;
import java.util.ArrayList;

/** An aggregate of a leaf over the photons in some ranges, in windows of so many milliseconds, every so many. */
record HoppingWindow(String function, int leaf, long size, long step, ArrayList<Peer.Range> ranges)
        implements Serializable {
    static HoppingWindow of(String line) {
        String[] words = line.split(" ");
        ArrayList<Peer.Range> ranges = new ArrayList<>();
        for (int at = 4; at < words.length; at += 3) {
            ranges.add(new Peer.Range(Integer.parseInt(words[at]), Double.parseDouble(words[at + 1]),
                    Double.parseDouble(words[at + 2])));
        }
        return new HoppingWindow(words[0], Integer.parseInt(words[1]), Long.parseLong(words[2]),
                Long.parseLong(words[3]), ranges);
    }

    boolean selects(double[] leaves) {
        for (Peer.Range each : ranges) {
            if (!(leaves[each.leaf()] >= each.low() && leaves[each.leaf()] < each.high())) {
                return false;
            }
        }
        return true;
    }
}
