import java.io.Serializable;

/** Pairs of photons in the same column, up to so many milliseconds apart, one with so much more energy. */
record NearPairs(long apart, double more) implements Serializable {
    static final int COLUMN = 2;
    static final int ENERGY = 5;

    static NearPairs of(String line) {
        String[] words = line.split(" ");
        return new NearPairs(Long.parseLong(words[0]), Double.parseDouble(words[1]));
    }

    boolean selects(double[] one, double[] other) {
        return one[ENERGY] >= other[ENERGY] + more;
    }
}
