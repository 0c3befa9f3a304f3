// The newest epochs as a Gantt, each row with its numbers, and a table of what the phases take.
//
// <${Epochs} epochs=${now.epochs} />
//
// A row is an epoch, drawn from its own beginning, so that epochs can be compared; all rows have one scale.
import { html } from "../../html.js";
import { Table } from "../../components/table.js";
import { amount, bytes, clock, count, inline, ms, percent } from "../../text.js";

const ROWS = 18;
const KNOWN = { survey: 8, plan: 3, tasks: 1, job: 1, branches: 4, publish: 2, commit: 2, deliver: 6, sinks: 6 };

function hues(epochs) {
  const found = new Map();
  let next = 5;
  for (const epoch of epochs) {
    for (const phase of epoch.phases) {
      if (found.has(phase.name)) continue;
      found.set(phase.name, KNOWN[phase.name] ?? next++);
      if (next > 8) next = 5;
    }
  }
  return found;
}

function ticks(most) {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-6)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power;
  const found = [];
  for (let at = 0; at <= most; at += step) found.push(at);
  return found;
}

function Bars({ epoch, most, hue, marks }) {
  const said = epoch.phases.map((phase) => `${inline(phase.name)} ${ms(phase.ms)}`).join(", ");
  return html`<svg class="gantt-bars" height="14" role="img" aria-label=${said}>
    ${marks.map((mark) => html`<line class="gantt-mark" x1=${`${(mark / most) * 100}%`} x2=${`${(mark / most) * 100}%`} y1="0" y2="14" />`)}
    ${epoch.phases.map(
      (phase) => html`<rect key=${phase.name} class=${`fill-${hue.get(phase.name)}`} x=${`${(phase.start_ms / most) * 100}%`} y="1" height="12" rx="1.5"
        width=${`${Math.max(0.25, (phase.ms / most) * 100)}%`}><title>${`${inline(phase.name)}: ${ms(phase.ms)}`}</title></rect>`,
    )}
  </svg>`;
}

function Scale({ most, marks }) {
  return html`<svg class="gantt-scale" height="16" aria-hidden="true">
    ${marks.map((mark, index) => html`<text class=${index > 0 && index < marks.length - 1 ? "wide-only" : ""} x=${`${(mark / most) * 100}%`} y="12" text-anchor=${mark === 0 ? "start" : mark > most * 0.92 ? "end" : "middle"}>${ms(mark)}</text>`)}
  </svg>`;
}

function phaseRows(epochs, hue) {
  const all = new Map();
  let whole = 0;
  for (const epoch of epochs) {
    whole += epoch.total_ms;
    for (const phase of epoch.phases) {
      if (!all.has(phase.name)) all.set(phase.name, []);
      all.get(phase.name).push(phase.ms);
    }
  }
  const newest = new Map((epochs[epochs.length - 1]?.phases ?? []).map((phase) => [phase.name, phase.ms]));
  return [...all].map(([name, values]) => {
    const sorted = [...values].sort((a, b) => a - b);
    const sum = values.reduce((a, b) => a + b, 0);
    return {
      name,
      hue: hue.get(name),
      newest: newest.get(name) ?? null,
      median: (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.floor(sorted.length / 2)]) / 2,
      most: sorted[sorted.length - 1],
      share: whole ? sum / whole : null,
    };
  });
}

export function Epochs({ epochs }) {
  const rows = epochs.slice(-ROWS).reverse();
  const most = Math.max(1, ...rows.map((epoch) => Math.max(epoch.total_ms, ...epoch.phases.map((phase) => phase.start_ms + phase.ms))));
  const marks = ticks(most);
  const hue = hues(epochs);
  const columns = [
    { key: "name", label: "Phase", sortable: true, cell: (row) => html`<span class=${`swatch fill-${row.hue}`} aria-hidden="true"></span>${inline(row.name)}` },
    { key: "newest", label: "Newest", numeric: true, sortable: true, cell: (row) => ms(row.newest) },
    { key: "median", label: "Median", numeric: true, sortable: true, cell: (row) => ms(row.median) },
    { key: "most", label: "Longest", numeric: true, sortable: true, cell: (row) => ms(row.most) },
    { key: "share", label: "Share", numeric: true, sortable: true, wide: true, cell: (row) => percent(row.share) },
  ];
  return html`<section class="panel" aria-labelledby="epochs-head">
    <div class="panel-head">
      <h2 id="epochs-head">Epochs</h2>
      <span class="quiet small">what each phase takes, newest first</span>
    </div>
    ${epochs.length === 0
      ? html`<p class="quiet">No epoch has been run yet: one begins when something comes.</p>`
      : html`<div class="gantt-and-table">
          <div class="table-box">
            <table class="table gantt">
              <caption class="unseen">The newest epochs, with their phases</caption>
              <thead>
                <tr>
                  <th scope="col" class="number">Epoch</th>
                  <th scope="col" class="gantt-cell"><span class="unseen">Phases</span><${Scale} most=${most} marks=${marks} /></th>
                  <th scope="col" class="number">Took</th>
                  <th scope="col" class="number">Items</th>
                  <th scope="col" class="number wide-only">Bytes</th>
                  <th scope="col" class="number wide-only">Answers</th>
                  <th scope="col" class="number wide-only">Began</th>
                </tr>
              </thead>
              <tbody>
                ${rows.map(
                  (epoch) => html`<tr key=${epoch.epoch}>
                    <td class="number">${count(epoch.epoch)}</td>
                    <td class="gantt-cell"><${Bars} epoch=${epoch} most=${most} hue=${hue} marks=${marks} /></td>
                    <td class="number">${ms(epoch.total_ms)}</td>
                    <td class="number">${amount(epoch.items)}</td>
                    <td class="number wide-only">${bytes(epoch.bytes)}</td>
                    <td class="number wide-only">${amount(epoch.answers)}</td>
                    <td class="number wide-only quiet">${clock(epoch.began)}</td>
                  </tr>`,
                )}
              </tbody>
            </table>
          </div>
          <${Table} caption=${`Phases of the newest ${count(epochs.length)} epochs`} columns=${columns} rows=${phaseRows(epochs, hue)} rowKey=${(row) => row.name} />
        </div>`}
  </section>`;
}
