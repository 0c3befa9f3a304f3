import java.io.Serializable;
import java.util.List;

/** An engine that holds conjunctions of ranges and says which of them an item matches. */
interface Peer extends AutoCloseable {
    /** A range of a leaf, by its number in {@link Photon#LEAVES}: from low, below high. */
    record Range(int leaf, double low, double high) implements Serializable {}

    /** Where matches go: the number of an item in the round, and that of a conjunction. */
    interface Matches {
        void take(int item, int conjunction);
    }

    /** Hold conjunctions, which have numbers from 0. */
    void add(List<List<Range>> conjunctions) throws Exception;

    /** Match the items from one number to another, in the thread that calls, which is one of several. */
    void match(List<String> items, int from, int to, Matches matches) throws Exception;

    /** Whether the engine has threads of its own, so that one thread calls it, with all items. */
    default boolean hasThreads() {
        return false;
    }

    /** The settings that differ from the engine's defaults, for people. */
    String settings();

    @Override
    default void close() throws Exception {}
}
