// The smaller parts of Now: figures, sinks, what is remembered, and the newest lines of the log.
//
// <${Figures} now=${now} turn=${turn} />  <${Sinks} sinks=${now.sinks} />  <${State} state=${now.state} />  <${Log} events=${now.events} />
import { html, useState } from "../../html.js";
import { Table } from "../../components/table.js";
import { Badge } from "../../components/badge.js";
import { Sparkline } from "../../components/sparkline.js";
import { Dialog } from "../../components/dialog.js";
import { Letters } from "../../components/letters.js";
import { ErrorNotice } from "../../components/notice.js";
import { Loading } from "../../components/empty.js";
import { useFetched } from "../../live.js";
import { amount, bytes, byteRate, clock, count, inline, plural, rate } from "../../text.js";
import { link } from "../../router.js";
import { history } from "./feed.js";

function Figure({ label, value, below, curve, turn }) {
  return html`<div class="figure">
    <dt>${label}</dt>
    <dd><span class="figure-value">${value}</span>${below && html`<span class="figure-below quiet">${below}</span>`}</dd>
    ${curve && html`<dd class="figure-curve"><${Sparkline} of=${() => history.newest("", curve, 60)} turn=${turn} label=${`${label} lately`} /></dd>`}
  </div>`;
}

export function Figures({ now, turn }) {
  const [shown, setShown] = useState(null);
  const aside = (kind, n, label) => (n ? html`<button type="button" class="link-button" onClick=${() => setShown(kind)}>${label}</button>` : label);
  return html`<dl class="figures">
      <${Figure} label="Items" value=${rate(now.rates.items)} below=${`${amount(now.totals.items)} so far`} curve="items" turn=${turn} />
      <${Figure} label="Bytes" value=${byteRate(now.rates.bytes)} below=${`${bytes(now.totals.bytes)} so far`} curve="bytes" turn=${turn} />
      <${Figure} label="Answers" value=${rate(now.rates.answers)} below=${`${amount(now.totals.answers)} so far`} curve="answers" turn=${turn} />
      <${Figure} label="Subscriptions" value=${html`<a href=${link("subscriptions")}>${count(now.subscriptions)}</a>`} below="share the streams" />
      <${Figure} label="Set aside" value=${count(now.totals.dead_letters)} below=${html`${aside("dead", now.totals.dead_letters, "dead letters")}, ${aside("late", now.totals.late_items, `${count(now.totals.late_items)} too late`)}`} />
    </dl>
    <${Dialog} open=${shown !== null} title=${shown === "late" ? "Items that came too late" : "Dead letters"} onClose=${() => setShown(null)}>
      ${shown && html`<${Letters} path=${shown === "late" ? "/late" : "/dead-letters"} />`}
    <//>`;
}

export function Sinks({ sinks }) {
  const columns = [
    { key: "kind", label: "Kind", sortable: true },
    { key: "count", label: "Sinks", numeric: true, sortable: true },
    {
      key: "epochs_behind",
      label: "Behind",
      numeric: true,
      sortable: true,
      cell: (row) => (row.epochs_behind ? html`<${Badge} tone="warn">${plural(row.epochs_behind, "epoch")}<//>` : "none"),
    },
  ];
  return html`<section class="panel" aria-labelledby="sinks-head">
    <h2 id="sinks-head">Sinks</h2>
    <${Table} caption="Sinks" columns=${columns} rows=${sinks} rowKey=${(row) => row.kind} empty="Answers go to the answer log only." />
  </section>`;
}

function Branches() {
  const { data, error, again } = useFetched("/state");
  if (error) return html`<${ErrorNotice} error=${error} again=${again} />`;
  if (!data) return html`<${Loading} what="branches" />`;
  const rows = [...data.branches].sort((a, b) => b.bytes - a.bytes).slice(0, 50).map((row, index) => ({ ...row, index }));
  const columns = [
    { key: "subscriptions", label: "Branch of", cell: (row) => html`${row.subscriptions.slice(0, 3).map((name, index) => html`${index ? ", " : ""}<a href=${link("subscriptions", [name])}>${inline(name)}</a>`)}${row.count > 3 ? ` and ${count(row.count - 3)} more` : ""}` },
    { key: "kind", label: "Kind", sortable: true, wide: true },
    { key: "shard", label: "Shard", numeric: true, sortable: true, wide: true },
    { key: "held", label: "Held", numeric: true, sortable: true },
    { key: "bytes", label: "Bytes", numeric: true, sortable: true, cell: (row) => bytes(row.bytes) },
    { key: "waiting", label: "Waits", numeric: true, cell: (row) => (typeof row.waiting === "number" ? count(row.waiting) : inline(row.waiting ? (typeof row.waiting === "string" ? row.waiting : JSON.stringify(row.waiting)) : "–")) },
  ];
  return html`<${Table} caption="The largest branches" showCaption columns=${columns} rows=${rows} rowKey=${(row) => row.index} empty="No subscription remembers anything." />`;
}

export function State({ state }) {
  const [open, setOpen] = useState(false);
  const columns = [
    { key: "shard", label: "Shard", numeric: false, sortable: true },
    { key: "branches", label: "Branches", numeric: true, sortable: true },
    { key: "held", label: "Held", numeric: true, sortable: true },
    { key: "bytes", label: "Bytes", numeric: true, sortable: true, cell: (row) => bytes(row.bytes) },
  ];
  return html`<section class="panel" aria-labelledby="state-head">
    <div class="panel-head">
      <h2 id="state-head">Remembered</h2>
      <span class="quiet small">${count(state.held)} held, ${bytes(state.bytes)}</span>
      <button type="button" class="link-button panel-end" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>branches ${open ? "▴" : "▾"}</button>
    </div>
    <${Table} caption="Shards" columns=${columns} rows=${state.shards ?? []} rowKey=${(row) => row.shard} empty="Nothing is remembered: each item is answered by itself." />
    ${open && html`<${Branches} />`}
  </section>`;
}

const TONES = { warning: "warn", error: "bad", failed: "bad", ended: "warn", refused: "bad" };

export function Log({ events }) {
  const newest = [...events].reverse();
  return html`<section class="panel" aria-labelledby="log-head">
    <h2 id="log-head">Lately in the log</h2>
    ${newest.length === 0
      ? html`<p class="quiet">Nothing yet.</p>`
      : html`<ol class="log" tabindex="0" aria-label="The newest lines of the log">
          ${newest.map(
            (one, index) => html`<li key=${index}>
              <time class="quiet">${clock(one.time)}</time>
              <${Badge} tone=${TONES[one.event] ?? "quiet"}>${inline(one.event)}<//>
              <span>${inline(one.message ?? "")}</span>
            </li>`,
          )}
        </ol>`}
  </section>`;
}
