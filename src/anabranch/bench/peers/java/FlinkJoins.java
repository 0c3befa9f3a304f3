import java.time.Duration;
import java.util.List;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** Interval joins of Flink's streams, all in one job; a round is a job from its first record to its end. */
public final class FlinkJoins implements StreamPeer {
    private static volatile List<String> photons;
    private static volatile Results told;
    private static volatile long begun;
    private List<NearPairs> asked;

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

    /** Tells the times of the first photons of pairs. */
    private static final class Told extends ProcessJoinFunction<double[], double[], Double> {
        private final int query;
        private final NearPairs pairs;

        private Told(int query, NearPairs pairs) {
            this.query = query;
            this.pairs = pairs;
        }

        @Override
        public void processElement(double[] one, double[] other, Context context, Collector<Double> out) {
            if (pairs.selects(one, other)) {
                told.take(query, StreamPeer.time(one));
            }
        }
    }

    @Override
    public void add(List<String> lines) {
        asked = lines.stream().map(NearPairs::of).toList();
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
        KeyedStream<double[], Integer> keyed = stream.keyBy(leaves -> (int) leaves[NearPairs.COLUMN], Types.INT);
        for (int number = 0; number < asked.size(); number++) {
            Duration apart = Duration.ofMillis(asked.get(number).apart());
            keyed.intervalJoin(keyed)
                    .between(apart.negated(), apart)
                    .process(new Told(number, asked.get(number)))
                    .sinkTo(new DiscardingSink<>());
        }
        environment.execute();
        return System.nanoTime() - begun;
    }
}
