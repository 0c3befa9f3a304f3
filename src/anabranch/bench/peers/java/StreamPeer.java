import java.util.List;

/** An engine that goes through photons in the order of their times, and gives results of windows. */
interface StreamPeer {
    /** Where results go: the number of a query, and the value of one of its windows; from any thread. */
    interface Results {
        void take(int first, double second);
    }

    /** The time of a photon, in milliseconds. */
    static long time(double[] leaves) {
        return Math.round(1_000 * leaves[6]);
    }

    /** Prepare queries, one a line, before anything is timed. */
    void add(List<String> lines) throws Exception;

    /** The nanoseconds from the first of some items to the last result, where all queries have begun anew. */
    long run(List<String> items, int count, Results results) throws Exception;
}
