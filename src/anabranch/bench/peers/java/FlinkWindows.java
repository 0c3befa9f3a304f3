import java.time.Duration;
import java.util.List;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Windows of Flink: sliding windows of event time with incremental aggregates, all in one job.
 *
 * <p>Windows of its SQL have sizes that are multiples of their steps; those of its streams need not. A round is a job
 * from its first record to its end; its start is not counted.
 */
public final class FlinkWindows implements StreamPeer {
    private static volatile List<String> photons;
    private static volatile Results told;
    private static volatile long begun;
    private List<HoppingWindow> windows;

    /** The leaves of a photon, by its number. */
    private static final class Feed implements GeneratorFunction<Long, double[]> {
        @Override
        public double[] map(Long number) throws Exception {
            if (number == 0) {
                begun = System.nanoTime();
            }
            return Photon.leaves(photons.get(number.intValue()));
        }
    }

    /** Count, sum, least and greatest of what a window has. */
    private static final class Numbers implements AggregateFunction<double[], double[], double[]> {
        private final int leaf;

        private Numbers(int leaf) {
            this.leaf = leaf;
        }

        @Override
        public double[] createAccumulator() {
            return new double[] {0, 0, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
        }

        @Override
        public double[] add(double[] leaves, double[] so) {
            double value = leaves[leaf];
            so[0]++;
            so[1] += value;
            so[2] = Math.min(so[2], value);
            so[3] = Math.max(so[3], value);
            return so;
        }

        @Override
        public double[] getResult(double[] so) {
            return so;
        }

        @Override
        public double[] merge(double[] one, double[] other) {
            return new double[] {one[0] + other[0], one[1] + other[1], Math.min(one[2], other[2]),
                Math.max(one[3], other[3])};
        }
    }

    /** Tells the aggregate of a window, unless it begins before the stream. */
    private static final class Told extends ProcessAllWindowFunction<double[], Double, TimeWindow> {
        private final int query;
        private final String function;

        private Told(int query, String function) {
            this.query = query;
            this.function = function;
        }

        @Override
        public void process(Context context, Iterable<double[]> found, Collector<Double> out) {
            if (context.window().getStart() >= 0) {
                double[] so = found.iterator().next();
                told.take(query, switch (function) {
                    case "count" -> so[0];
                    case "sum" -> so[1];
                    case "avg" -> so[1] / so[0];
                    case "min" -> so[2];
                    default -> so[3];
                });
            }
        }
    }

    @Override
    public void add(List<String> lines) {
        windows = lines.stream().map(HoppingWindow::of).toList();
    }

    @Override
    public long run(List<String> items, int count, Results results) throws Exception {
        photons = items;
        told = results;
        Configuration settings = new Configuration();
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(128));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        environment.getConfig().enableObjectReuse();
        SingleOutputStreamOperator<double[]> stream = environment.fromSource(
                new DataGeneratorSource<>(new Feed(), count, PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO),
                WatermarkStrategy.<double[]>forMonotonousTimestamps()
                        .withTimestampAssigner((leaves, before) -> StreamPeer.time(leaves)),
                "photons");
        for (int number = 0; number < windows.size(); number++) {
            HoppingWindow each = windows.get(number);
            stream.filter(each::selects)
                    .windowAll(SlidingEventTimeWindows.of(Duration.ofMillis(each.size()),
                            Duration.ofMillis(each.step())))
                    .aggregate(new Numbers(each.leaf()), new Told(number, each.function()))
                    .sinkTo(new DiscardingSink<>());
        }
        environment.execute();
        return System.nanoTime() - begun;
    }
}
