import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Flink: a query of SQL for each conjunction, all in one job that stays at work, in a cluster within this process.
 *
 * <p>One source feeds them all, and queries, source and sinks are chained, so a record is done with when the source is
 * asked for the next one. Objects are reused along the chain.
 */
public final class FlinkSql implements Peer {
    private static final int PARALLELISM = 2;
    private static final BlockingQueue<Share> SHARES = new ArrayBlockingQueue<>(PARALLELISM);
    private JobClient job;

    /** The items of a round that one task takes. */
    private static final class Share {
        private final List<String> items;
        private final int to;
        private final Matches matches;
        private final CountDownLatch done;
        private int next;

        private Share(List<String> items, int from, int to, Matches matches, CountDownLatch done) {
            this.items = items;
            this.next = from;
            this.to = to;
            this.matches = matches;
            this.done = done;
        }
    }

    /** Gives the items of a round as rows, and waits for the next round behind the last of them. */
    private static final class Feed implements GeneratorFunction<Long, Row> {
        private transient Share share;

        @Override
        public Row map(Long number) throws Exception {
            while (share == null || share.next == share.to) {
                if (share != null) {
                    share.done.countDown();
                }
                share = SHARES.take();
            }
            double[] leaves = Photon.leaves(share.items.get(share.next));
            Object[] row = new Object[leaves.length + 1];
            row[0] = share.next++;
            for (int leaf = 0; leaf < leaves.length; leaf++) {
                row[leaf + 1] = leaves[leaf];
            }
            ROUNDS.set(share.matches);
            return Row.of(row);
        }
    }

    /** The matches of the round that a thread is at. */
    private static final ThreadLocal<Matches> ROUNDS = new ThreadLocal<>();

    /** Tells the matches of one conjunction. */
    private static final class Told implements Sink<Row> {
        private final int conjunction;

        private Told(int conjunction) {
            this.conjunction = conjunction;
        }

        @Override
        public SinkWriter<Row> createWriter(WriterInitContext context) {
            return new SinkWriter<Row>() {
                @Override
                public void write(Row row, Context context) {
                    Matches matches = ROUNDS.get();
                    synchronized (matches) {
                        matches.take((Integer) row.getField(0), conjunction);
                    }
                }

                @Override
                public void flush(boolean end) {}

                @Override
                public void close() {}
            };
        }
    }

    @Override
    public void add(List<List<Range>> conjunctions) throws Exception {
        Configuration settings = new Configuration();
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, settings);
        environment.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        String[] names = new String[Photon.LEAVES.length + 1];
        TypeInformation<?>[] types = new TypeInformation<?>[names.length];
        names[0] = "item";
        types[0] = Types.INT;
        for (int leaf = 0; leaf < Photon.LEAVES.length; leaf++) {
            names[leaf + 1] = Photon.LEAVES[leaf];
            types[leaf + 1] = Types.DOUBLE;
        }
        DataStream<Row> photons = environment.fromSource(
                new DataGeneratorSource<>(new Feed(), Long.MAX_VALUE, Types.ROW_NAMED(names, types)),
                WatermarkStrategy.noWatermarks(), "photons");
        tables.createTemporaryView("photons", photons);
        for (int number = 0; number < conjunctions.size(); number++) {
            String where = conjunctions.get(number).stream().map(each -> {
                String leaf = "`" + Photon.LEAVES[each.leaf()] + "`";
                return leaf + " >= " + each.low() + "E0 AND " + leaf + " < " + each.high() + "E0";
            }).collect(Collectors.joining(" AND "));
            Table found = tables.sqlQuery("SELECT item FROM photons WHERE " + where);
            tables.toDataStream(found).sinkTo(new Told(number));
        }
        job = environment.executeAsync();
        match(List.of(), 0, 0, (item, conjunction) -> {}); // the job is at work when both tasks have answered
    }

    @Override
    public void match(List<String> items, int from, int to, Matches matches) throws Exception {
        CountDownLatch done = new CountDownLatch(PARALLELISM);
        for (int part = 0; part < PARALLELISM; part++) {
            int begin = from + (int) ((long) (to - from) * part / PARALLELISM);
            int end = from + (int) ((long) (to - from) * (part + 1) / PARALLELISM);
            SHARES.put(new Share(items, begin, end, matches, done));
        }
        done.await();
    }

    @Override
    public boolean hasThreads() {
        return true;
    }

    @Override
    public String settings() {
        return "one job, a statement for each conjunction over one source, parallelism " + PARALLELISM
                + ", object reuse";
    }

    @Override
    public void close() throws Exception {
        job.cancel();
    }
}
