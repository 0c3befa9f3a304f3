import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Joins of Esper: windows of time over the same events, with equal columns, on an external clock. */
public final class EsperJoins implements StreamPeer {
    private final Configuration configuration = new Configuration();
    private final List<EPCompiled> compiled = new ArrayList<>();
    private int rounds;

    public EsperJoins() {
        Object[] types = new Object[Photon.LEAVES.length];
        Arrays.fill(types, double.class);
        configuration.getCommon().addEventType("Photon", Photon.LEAVES, types);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    }

    @Override
    public void add(List<String> lines) throws Exception {
        for (String line : lines) {
            NearPairs each = NearPairs.of(line);
            // an event leaves its window when the clock is at its end, so the window is a millisecond longer
            String window = "Photon#time(" + (each.apart() + 1) + " milliseconds)";
            String text = "@name('pairs') select a.det_time as value from " + window + " as a, " + window
                    + " as b where a.dx = b.dx and a.en >= b.en + " + each.more() + "d;\n";
            compiled.add(EPCompilerProvider.getCompiler().compile(text, new CompilerArguments(configuration)));
        }
    }

    @Override
    public long run(List<String> items, int count, Results results) throws Exception {
        EPRuntime runtime = EPRuntimeProvider.getRuntime("round-" + rounds++, configuration);
        runtime.getEventService().clockExternal();
        runtime.getEventService().advanceTime(0);
        for (int number = 0; number < compiled.size(); number++) {
            int query = number;
            for (EPStatement each : runtime.getDeploymentService().deploy(compiled.get(number)).getStatements()) {
                each.addListener((EventBean[] events, EventBean[] old, EPStatement from, EPRuntime by) -> {
                    for (EventBean event : events == null ? new EventBean[0] : events) {
                        results.take(query, Math.round(1_000 * (Double) event.get("value")));
                    }
                });
            }
        }
        long begin = System.nanoTime();
        for (String item : items.subList(0, count)) {
            double[] leaves = Photon.leaves(item);
            Object[] event = new Object[leaves.length];
            for (int leaf = 0; leaf < leaves.length; leaf++) {
                event[leaf] = leaves[leaf];
            }
            runtime.getEventService().advanceTime(StreamPeer.time(leaves));
            runtime.getEventService().sendEventObjectArray(event, "Photon");
        }
        long taken = System.nanoTime() - begin;
        runtime.destroy();
        return taken;
    }
}
