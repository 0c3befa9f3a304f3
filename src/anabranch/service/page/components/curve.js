// A curve over time, drawn by uPlot on a canvas; whoever shows it puts a table with its numbers beside it.
//
// <${Curve} times=${[...]} series=${[{label, hue: 1, values: [...]}]} format=${(n) => "12 k/s"} label="..." height=${220} />
// `times` are seconds since 1970, `values` numbers or null (a gap). New values are set, not drawn anew; the curve is
// made again where the series' labels, the theme or the format change.
import { html, useEffect, useRef } from "../html.js";
import { uPlot } from "../library.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400]; // seconds

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(box, series, format, height) {
  const axis = {
    stroke: colour("--ink-quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${colour("--font")}`,
  };
  return {
    width: box.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      { ...axis, size: 30, space: 80, incrs: STEPS, values: (_plot, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString("en-GB")) },
      { ...axis, size: 74, values: (_plot, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: colour(`--hue-${one.hue}`),
        width: 1.75,
        points: { show: false },
        spanGaps: false,
      })),
    ],
  };
}

export function Curve({ times, series, format, label, height = 220 }) {
  const box = useRef(null);
  const plot = useRef(null);
  const newest = useRef(null);
  newest.current = [times, ...series.map((one) => one.values)];
  const key = JSON.stringify([label, series.map((one) => [one.label, one.hue])]);

  useEffect(() => {
    let gone = false;
    const make = async () => {
      const Plot = await uPlot();
      if (gone || !box.current) return;
      plot.current?.destroy();
      plot.current = new Plot(options(box.current, series, format, height), newest.current, box.current);
    };
    const failed = () => {}; // the table beside it has the numbers
    make().catch(failed);
    const again = () => make().catch(failed);
    const sized = new ResizeObserver(() => {
      if (plot.current && box.current && box.current.clientWidth !== plot.current.width) {
        plot.current.setSize({ width: box.current.clientWidth, height });
      }
    });
    sized.observe(box.current);
    window.addEventListener("themechange", again);
    return () => {
      gone = true;
      sized.disconnect();
      window.removeEventListener("themechange", again);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [key, height]);

  useEffect(() => {
    plot.current?.setData(newest.current);
  });

  return html`<div class=${`curve curve-${height}`} role="img" aria-label=${label} ref=${box}></div>`;
}
