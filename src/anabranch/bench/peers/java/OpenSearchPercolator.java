import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.opensearch.action.bulk.BulkRequestBuilder;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.common.xcontent.XContentType;
import org.opensearch.core.common.bytes.BytesArray;
import org.opensearch.core.common.bytes.BytesReference;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.percolator.PercolateQueryBuilder;
import org.opensearch.search.SearchHit;
import org.opensearch.transport.client.Client;

/**
 * The percolator of OpenSearch, in a node within this process.
 *
 * <p>Stored queries are documents of an index; items are percolated many in a request, in a filter, without scores.
 */
public final class OpenSearchPercolator implements Peer {
    private static final int BATCH = 500;
    private static final int BULK = 5_000;
    private static final int MOST_HITS = 200_000;
    private static final String INDEX = "conjunctions";
    private final OpenSearchRunner runner = new OpenSearchRunner();
    private final Path folder;
    private Client client;

    public OpenSearchPercolator() throws Exception {
        folder = Files.createTempDirectory("anabranch-opensearch-");
    }

    @Override
    public void add(List<List<Range>> conjunctions) throws Exception {
        runner.onBuild((number, settings) -> {
            settings.put("discovery.type", "single-node");
            settings.put("network.host", "127.0.0.1");
        });
        runner.build(OpenSearchRunner.newConfigs().basePath(folder.toString()).numOfNode(1).disableESLogger());
        runner.ensureYellow();
        client = runner.client();
        client.admin().indices().prepareCreate(INDEX)
                .setSettings("{\"index\": {\"number_of_shards\": 1, \"number_of_replicas\": 0,"
                        + " \"max_result_window\": " + MOST_HITS + "}}", XContentType.JSON)
                .setMapping(mapping()).get();
        for (int first = 0; first < conjunctions.size(); first += BULK) {
            BulkRequestBuilder bulk = client.prepareBulk();
            for (int number = first; number < Math.min(first + BULK, conjunctions.size()); number++) {
                bulk.add(client.prepareIndex(INDEX).setId(Integer.toString(number))
                        .setSource(query(conjunctions.get(number)), XContentType.JSON));
            }
            if (bulk.get().hasFailures()) {
                throw new IllegalStateException("a conjunction was refused");
            }
        }
        client.admin().indices().prepareForceMerge(INDEX).setMaxNumSegments(1).get();
        client.admin().indices().prepareRefresh(INDEX).get();
    }

    private static String mapping() {
        String number = "{\"type\": \"double\"}";
        return "{\"properties\": {\"query\": {\"type\": \"percolator\"}, \"coord\": {\"properties\": {"
                + "\"cel\": {\"properties\": {\"ra\": " + number + ", \"dec\": " + number + "}},"
                + "\"det\": {\"properties\": {\"dx\": " + number + ", \"dy\": " + number + "}}}},"
                + "\"phc\": " + number + ", \"en\": " + number + ", \"det_time\": " + number + "}}";
    }

    private static String query(List<Range> ranges) {
        return ranges.stream()
                .map(each -> "{\"range\": {\"" + String.join(".", Photon.PATHS[each.leaf()]) + "\": {\"gte\": "
                        + each.low() + ", \"lt\": " + each.high() + "}}}")
                .collect(Collectors.joining(", ", "{\"query\": {\"bool\": {\"filter\": [", "]}}}"));
    }

    @Override
    public void match(List<String> items, int from, int to, Matches matches) throws Exception {
        for (int first = from; first < to; first += BATCH) {
            List<BytesReference> batch = new ArrayList<>();
            for (int item = first; item < Math.min(first + BATCH, to); item++) {
                batch.add(new BytesArray(XmlItem.json(items.get(item))));
            }
            SearchResponse found = client.prepareSearch(INDEX)
                    .setQuery(QueryBuilders.constantScoreQuery(
                            new PercolateQueryBuilder("query", batch, XContentType.JSON)))
                    .setSize(MOST_HITS).setFetchSource(false).get();
            for (SearchHit hit : found.getHits()) {
                for (Object slot : hit.getFields().get("_percolator_document_slot").getValues()) {
                    matches.take(first + (Integer) slot, Integer.parseInt(hit.getId()));
                }
            }
        }
    }

    @Override
    public String settings() {
        return "one node, one shard of one segment, no replicas, " + BATCH
                + " documents in a request, in a filter, a request in each thread";
    }

    @Override
    public void close() throws Exception {
        runner.close();
        runner.clean();
    }
}
