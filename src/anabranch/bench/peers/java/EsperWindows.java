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
import java.util.stream.Collectors;

/**
 * Windows of Esper: overlapping contexts, as its documentation has them for hopping windows, on an external clock.
 *
 * <p>The clock passes every timer on its way, so windows begin at multiples of their step.
 */
public final class EsperWindows implements StreamPeer {
    private final Configuration configuration = new Configuration();
    private final List<EPCompiled> compiled = new ArrayList<>();
    private long longest;
    private int rounds;

    public EsperWindows() {
        Object[] types = new Object[Photon.LEAVES.length];
        Arrays.fill(types, double.class);
        configuration.getCommon().addEventType("Photon", Photon.LEAVES, types);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    }

    @Override
    public void add(List<String> lines) throws Exception {
        for (String line : lines) {
            HoppingWindow each = HoppingWindow.of(line);
            longest = Math.max(longest, each.size());
            String filter = each.ranges().stream()
                    .map(range -> Photon.LEAVES[range.leaf()] + " in [" + range.low() + "d:" + range.high() + "d)")
                    .collect(Collectors.joining(", "));
            String text = "create context Hopping initiated @now and pattern [every timer:interval(" + each.step()
                    + " milliseconds)] terminated after " + each.size() + " milliseconds;\n"
                    + "@name('windows') context Hopping select " + each.function() + "("
                    + Photon.LEAVES[each.leaf()] + ") as value, count(*) as items from Photon(" + filter
                    + ") output snapshot when terminated;\n";
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
                if (each.getName().equals("windows")) {
                    each.addListener((EventBean[] events, EventBean[] old, EPStatement from, EPRuntime by) -> {
                        for (EventBean event : events) {
                            if ((Long) event.get("items") > 0) {
                                results.take(query, ((Number) event.get("value")).doubleValue());
                            }
                        }
                    });
                }
            }
        }
        long begin = System.nanoTime();
        long time = 0;
        for (String item : items.subList(0, count)) {
            double[] leaves = Photon.leaves(item);
            time = StreamPeer.time(leaves);
            Object[] event = new Object[leaves.length];
            for (int leaf = 0; leaf < leaves.length; leaf++) {
                event[leaf] = leaves[leaf];
            }
            runtime.getEventService().advanceTimeSpan(time);
            runtime.getEventService().sendEventObjectArray(event, "Photon");
        }
        runtime.getEventService().advanceTimeSpan(time + longest);
        long taken = System.nanoTime() - begin;
        runtime.destroy();
        return taken;
    }
}
