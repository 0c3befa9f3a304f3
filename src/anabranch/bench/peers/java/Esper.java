import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Esper: statements with filters, for which it has an index.
 *
 * <p>As its documentation advises for many statements: events are arrays of objects, what is asked stands in the
 * filter of the stream, and a text is compiled once, with parameters, and deployed for each of its conjunctions.
 */
public final class Esper implements Peer {
    private final EPRuntime runtime;
    private final Configuration configuration = new Configuration();
    /** What a thread is at, for the listeners that it calls. */
    private final ThreadLocal<Turn> turns = ThreadLocal.withInitial(Turn::new);

    private static final class Turn {
        private int item;
        private Matches matches;
    }

    public Esper() {
        Object[] types = new Object[Photon.LEAVES.length];
        Arrays.fill(types, double.class);
        configuration.getCommon().addEventType("Photon", Photon.LEAVES, types);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        runtime = EPRuntimeProvider.getRuntime("peer", configuration);
    }

    @Override
    public void add(List<List<Range>> conjunctions) throws Exception {
        Map<String, EPCompiled> compiled = new HashMap<>();
        for (int number = 0; number < conjunctions.size(); number++) {
            List<Range> ranges = conjunctions.get(number);
            String filter = ranges.stream().map(each -> {
                String leaf = Photon.LEAVES[each.leaf()];
                return leaf + " in [?:low_" + leaf + ":double : ?:high_" + leaf + ":double)";
            }).collect(Collectors.joining(", "));
            EPCompiled statement = compiled.get(filter);
            if (statement == null) {
                statement = EPCompilerProvider.getCompiler()
                        .compile("select * from Photon(" + filter + ")", new CompilerArguments(configuration));
                compiled.put(filter, statement);
            }
            int conjunction = number;
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(given -> {
                for (Range each : ranges) {
                    given.setObject("low_" + Photon.LEAVES[each.leaf()], each.low());
                    given.setObject("high_" + Photon.LEAVES[each.leaf()], each.high());
                }
            });
            for (EPStatement each : runtime.getDeploymentService().deploy(statement, options).getStatements()) {
                each.addListener((EventBean[] events, EventBean[] old, EPStatement from, EPRuntime by) -> {
                    Turn turn = turns.get();
                    turn.matches.take(turn.item, conjunction);
                });
            }
        }
    }

    @Override
    public void match(List<String> items, int from, int to, Matches matches) throws Exception {
        Turn turn = turns.get();
        turn.matches = matches;
        for (turn.item = from; turn.item < to; turn.item++) {
            double[] leaves = Photon.leaves(items.get(turn.item));
            Object[] event = new Object[leaves.length];
            for (int leaf = 0; leaf < leaves.length; leaf++) {
                event[leaf] = leaves[leaf];
            }
            runtime.getEventService().sendEventObjectArray(event, "Photon");
        }
    }

    @Override
    public String settings() {
        return "events as arrays, ranges in the filter, compiled once with parameters, internal timer off";
    }

    @Override
    public void close() {
        runtime.destroy();
    }
}
