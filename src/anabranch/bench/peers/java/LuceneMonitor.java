import java.util.ArrayList;
import java.util.List;

import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;

/**
 * Lucene Monitor: stored queries over batches of documents.
 *
 * <p>Its presearchers choose queries by terms, and a range of numbers has none; so there is no presearcher, and items
 * come in large batches, for which each query is one search.
 */
public final class LuceneMonitor implements Peer {
    private static final int BATCH = 5_000;
    private final Monitor monitor;

    public LuceneMonitor() throws Exception {
        monitor = new Monitor(new KeywordAnalyzer(), new MonitorConfiguration());
    }

    @Override
    public void add(List<List<Range>> conjunctions) throws Exception {
        List<MonitorQuery> queries = new ArrayList<>();
        for (int number = 0; number < conjunctions.size(); number++) {
            BooleanQuery.Builder query = new BooleanQuery.Builder();
            for (Range each : conjunctions.get(number)) {
                query.add(DoublePoint.newRangeQuery(Photon.LEAVES[each.leaf()], each.low(),
                        DoublePoint.nextDown(each.high())), BooleanClause.Occur.FILTER);
            }
            queries.add(new MonitorQuery(Integer.toString(number), query.build()));
        }
        monitor.register(queries);
    }

    @Override
    public void match(List<String> items, int from, int to, Matches matches) throws Exception {
        for (int first = from; first < to; first += BATCH) {
            Document[] batch = new Document[Math.min(BATCH, to - first)];
            for (int at = 0; at < batch.length; at++) {
                double[] leaves = Photon.leaves(items.get(first + at));
                batch[at] = new Document();
                for (int leaf = 0; leaf < leaves.length; leaf++) {
                    batch[at].add(new DoublePoint(Photon.LEAVES[leaf], leaves[leaf]));
                }
            }
            MultiMatchingQueries<QueryMatch> found = monitor.match(batch, QueryMatch.SIMPLE_MATCHER);
            for (int at = 0; at < batch.length; at++) {
                for (QueryMatch each : found.getMatches(at)) {
                    matches.take(first + at, Integer.parseInt(each.getQueryId()));
                }
            }
        }
    }

    @Override
    public String settings() {
        return "points, batches of " + BATCH + " documents, no presearcher, a batch in each thread";
    }

    @Override
    public void close() throws Exception {
        monitor.close();
    }
}
