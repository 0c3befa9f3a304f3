// The streams: rates and lag as numbers with a small curve, partitions on demand, and one large curve with its table.
//
// <${Streams} streams=${now.streams} turn=${turn} />   `turn` changes with what history holds
import { html, useMemo, useState, Fragment } from "../../html.js";
import { Table } from "../../components/table.js";
import { Sparkline } from "../../components/sparkline.js";
import { Curve } from "../../components/curve.js";
import { amount, bytes, byteRate, count, inline, percent, rate, seconds } from "../../text.js";
import { link } from "../../router.js";
import { history } from "./feed.js";

const MEASURES = {
  items: { label: "Items", format: rate, value: (stream) => stream.items_per_second },
  bytes: { label: "Bytes", format: byteRate, value: (stream) => stream.bytes_per_second },
  seconds: { label: "Lag", format: seconds, value: (stream) => stream.lag?.seconds },
};
const CURVES = 6;

export function lagText(lag) {
  if (!lag) return "–";
  if (typeof lag.bytes === "number") return bytes(lag.bytes);
  if (typeof lag.offsets === "number") return `${count(lag.offsets)} behind`;
  return "–";
}

function Partitions({ stream, id }) {
  const columns = [
    { key: "partition", label: "Partition", sortable: true },
    { key: "lag", label: "Lag", numeric: true, sortable: true, value: (one) => one.lag?.bytes ?? one.lag?.offsets ?? null, cell: (one) => lagText(one.lag) },
    { key: "seconds", label: "Lag in time", numeric: true, sortable: true, value: (one) => one.lag?.seconds, cell: (one) => seconds(one.lag?.seconds) },
  ];
  return html`<div class="partitions" id=${id}>
    <h3>Partitions of ${inline(stream.name)}</h3>
    <${Table} caption=${`Partitions of ${inline(stream.name)}`} columns=${columns} rows=${stream.partitions ?? []} rowKey=${(one) => one.partition} empty="it has none" />
  </div>`;
}

function summary(values) {
  const there = values.filter((value) => value !== null);
  if (there.length === 0) return { least: null, mean: null, most: null };
  let least = Infinity;
  let most = -Infinity;
  let sum = 0;
  for (const value of there) {
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
  }
  return { least, mean: sum / there.length, most };
}

function Curves({ streams, turn }) {
  const [measure, setMeasure] = useState("items");
  const { label, format, value } = MEASURES[measure];
  const rows = useMemo(() => {
    const chosen = [...streams].sort((a, b) => (b.items_per_second ?? 0) - (a.items_per_second ?? 0)).slice(0, CURVES);
    chosen.sort((a, b) => (a.name < b.name ? -1 : 1)); // a stream keeps its colour while rates change
    return chosen.map((stream, index) => {
      const values = history.values(stream.name, measure);
      return { label: stream.name, hue: index + 1, values, newest: value(stream), ...summary(values) };
    });
  }, [measure, turn, streams.length]);
  const columns = [
    { key: "label", label: "Stream", sortable: true, cell: (row) => html`<span class=${`swatch fill-${row.hue}`} aria-hidden="true"></span>${inline(row.label)}` },
    { key: "newest", label: "Now", numeric: true, sortable: true, cell: (row) => format(row.newest) },
    { key: "least", label: "Least", numeric: true, sortable: true, wide: true, cell: (row) => format(row.least) },
    { key: "mean", label: "Mean", numeric: true, sortable: true, cell: (row) => format(row.mean) },
    { key: "most", label: "Most", numeric: true, sortable: true, cell: (row) => format(row.most) },
  ];
  const name = `${label} of the ${count(rows.length)} busiest streams over time`;
  return useMemo(() => html`<div class="curves">
    <div class="panel-head">
      <h3>Over time</h3>
      <div class="choice panel-end" role="group" aria-label="What the curve shows">
        ${Object.entries(MEASURES).map(
          ([key, one]) => html`<button key=${key} type="button" aria-pressed=${key === measure ? "true" : "false"} onClick=${() => setMeasure(key)}>${one.label}</button>`,
        )}
      </div>
    </div>
    <div class="curve-and-table">
      <${Curve} times=${history.times()} series=${rows} turn=${turn} format=${format} label=${`${name}; the table beside it has the numbers`} />
      <${Table} caption=${name} columns=${columns} rows=${rows} rowKey=${(row) => row.label} empty="no stream yet" />
    </div>
  </div>`, [rows]);
}

export function Streams({ streams, turn }) {
  const [open, setOpen] = useState(null);
  const opened = streams.find((stream) => stream.name === open);
  const columns = [
    { key: "name", label: "Stream", sortable: true, cell: (row) => html`<a href=${link("evolution", [row.name])}>${inline(row.name)}</a>` },
    { key: "curve", label: html`<span class="unseen">Curve</span>`, wide: true, cell: (row) => html`<${Sparkline} of=${() => history.newest(row.name, "items", 60)} turn=${turn} label=${`items a second of ${inline(row.name)}`} />` },
    { key: "items_per_second", label: "Items", numeric: true, sortable: true, cell: (row) => rate(row.items_per_second) },
    { key: "bytes_per_second", label: "Bytes", numeric: true, sortable: true, wide: true, cell: (row) => byteRate(row.bytes_per_second) },
    { key: "items", label: "So far", numeric: true, sortable: true, wide: true, cell: (row) => amount(row.items), title: "items since the run has begun" },
    { key: "fast_share", label: "In columns", numeric: true, sortable: true, wide: true, cell: (row) => percent(row.fast_share), title: "the share of items that were answered in columns" },
    { key: "lag", label: "Lag", numeric: true, sortable: true, wide: true, value: (row) => row.lag?.bytes ?? row.lag?.offsets ?? null, cell: (row) => lagText(row.lag) },
    { key: "seconds", label: "Lag in time", numeric: true, sortable: true, value: (row) => row.lag?.seconds, cell: (row) => seconds(row.lag?.seconds) },
    {
      key: "partitions",
      label: "Partitions",
      numeric: true,
      value: (row) => row.partitions?.length ?? 0,
      cell: (row) => html`<button type="button" class="link-button" aria-expanded=${open === row.name ? "true" : "false"} aria-controls="partitions" aria-label=${`Partitions of ${inline(row.name)}`}
        onClick=${() => setOpen(open === row.name ? null : row.name)}>${count(row.partitions?.length ?? 0)} ${open === row.name ? "▴" : "▾"}</button>`,
    },
  ];
  return html`<section class="panel" aria-labelledby="streams-head">
    <h2 id="streams-head">Streams</h2>
    <${Table} caption="Streams" columns=${columns} rows=${streams} rowKey=${(row) => row.name} sort=${{ key: "name", order: "asc" }} empty="This site reads no streams." />
    <${Fragment}>${opened && html`<${Partitions} stream=${opened} id="partitions" />`}<//>
    ${streams.length > 0 && html`<${Curves} streams=${streams} turn=${turn} />`}
  </section>`;
}
