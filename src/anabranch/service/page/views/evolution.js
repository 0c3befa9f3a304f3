// The view Evolution: the schema of a stream over time, its accents, what subscriptions did about them, and a new one.
//
// A row for each path and each described subset of the items; a stretch of it says in which state the path was and in
// which unit, and an accent is a mark where it came. All of it is HTML placed by percentages: it can be read, reached
// by the keyboard and made narrow, and the table below says the same in words.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { at } from "../api.js";
import { useFetched } from "../live.js";
import { go, replace } from "../router.js";
import { count, inline, plural, shortened } from "../text.js";
import { Badge } from "../components/badge.js";
import { Empty, Loading } from "../components/empty.js";
import { ErrorNotice, Notice } from "../components/notice.js";
import { crowded, marksOf, rowsOf, scaleOf } from "./parts/evolution-lanes.js";
import { Reactions } from "./parts/evolution-names.js";
import { Publish } from "./parts/evolution-publish.js";
import { PagedTable } from "./parts/paged-table.js";
import { useWidth } from "./parts/picture-width.js";

export const title = (params) => (params.name ? `Evolution of ${params.name}` : "Evolution");
const EVERY = 4000;
const MOST_ROWS = 60;
const ACCENTS = 20;
const GLYPHS = { alter: "∼", add: "+", drop: "−" };

export default function Evolution({ params }) {
  const { data: listed, error: listError, again } = useFetched("/streams");
  const streams = listed?.streams ?? null;
  const name = params.name ?? preferred(streams);
  return html`<div class="head">
      <h1 tabindex="-1">Evolution</h1>
      ${
        streams &&
        streams.length > 0 &&
        html`<label class="pick"
          ><span class="unseen">Stream</span>
          <select value=${name} onChange=${(event) => go("evolution", [event.target.value])}>
            ${name && !streams.some((each) => each.name === name) &&
              html`<option value=${name}>${inline(name)}</option>`}
            ${streams.map((each) => html`<option key=${each.name} value=${each.name}>${inline(each.name)}</option>`)}
          </select>
        </label>`
      }
    </div>
    <${ErrorNotice} error=${listError} again=${again} />
    ${!streams && !listError && html`<${Loading} what="streams" />`}
    ${streams && streams.length === 0 &&
      html`<${Empty} title="This site has no streams">They are declared in SITE.toml.<//>`}
    ${name && html`<${Course} key=${name} name=${name} chosen=${params.query.accent ?? null} />`}`;
}

// the first stream that has something to show, by its number of subscriptions
function preferred(streams) {
  if (!streams?.length) return null;
  const items = streams.filter((each) => !each.updates);
  return (items.length ? items : streams)[0].name;
}

function Course({ name, chosen }) {
  const { data, error, again } = useFetched(`${at("streams", name)}/evolution`, {}, { every: EVERY });
  const { data: stream } = useFetched(at("streams", name));
  const select = (number) => replace("evolution", [name], { accent: number });
  if (!data || data.stream !== name)
    return error ? html`<${ErrorNotice} error=${error} again=${again} />` : html`<${Loading} what="the evolution" />`;
  const accent = chosen === null ? null : (data.accents.find((each) => String(each.number) === chosen) ?? null);
  return html`<div class="stack">
    <${ErrorNotice} error=${error} again=${again} />
    <${Lanes} evolution=${data} accent=${accent} select=${select} />
    <div class="columns">
      <div class="stack">
        ${accent &&
          html`<${Detail} key=${accent.number} name=${name} evolution=${data} accent=${accent} select=${select} />`}
        ${data.accents.length > 0 && html`<${AccentTable} evolution=${data} accent=${accent} select=${select} />`}
        ${
          data.accents.length === 0 &&
          html`<section class="panel">
            <h2>Accents</h2>
            <p class="quiet">
              The stream has brought none so far. What one is: the stream's own word that its items are different from
              here on, as a unit, or a path that comes or goes.
            </p>
          </section>`
        }
      </div>
      <section class="panel" aria-labelledby="publish-title">
        <h2 id="publish-title">Publish an accent</h2>
        ${
          stream && stream.name === name
            ? html`<${Publish} stream=${{ ...stream, partitions: data.partitions }} onPublished=${again} />`
            : html`<${Loading} />`
        }
      </section>
    </div>
  </div>`;
}

function Lanes({ evolution, accent, select }) {
  const [box, width] = useWidth();
  const [search, setSearch] = useState("");
  const [partition, setPartition] = useState(null);
  const [even, setEven] = useState(null); // null: whatever can be read
  const [all, setAll] = useState(false);
  const rows = useMemo(() => rowsOf(evolution, partition, search), [evolution, partition, search]);
  const shown = all ? rows.slice(0, 10 * MOST_ROWS) : rows.slice(0, MOST_ROWS);
  const byChange = even ?? crowded(evolution, rows);
  const scale = useMemo(() => scaleOf(evolution, rows, byChange), [evolution, rows, byChange]);
  const many = evolution.partitions > 1;
  const paths = new Set(rows.map((each) => each.path)).size;
  return html`<section class="panel lanes-panel" aria-labelledby="lanes-title">
    <div class="panel-head">
      <h2 id="lanes-title">The schema over time</h2>
      <p class="quiet">
        epochs ${count(evolution.epochs.first)} to ${count(evolution.epochs.last)},${" "}
        ${plural(evolution.accents.length, "accent")} on ${plural(paths, "path")}
      </p>
      <div class="panel-end lanes-tools">
        ${
          many &&
          html`<label class="check"
            >partition
            <select
              value=${partition === null ? "" : String(partition)}
              onChange=${(event) => setPartition(event.target.value === "" ? null : Number(event.target.value))}
            >
              <option value="">all</option>
              ${Array.from({ length: Math.min(evolution.partitions, 500) }, (_, index) =>
                html`<option key=${index} value=${String(index)}>${index}</option>`)}
            </select>
          </label>`
        }
        <input
          type="search"
          placeholder="Filter paths"
          aria-label="Filter paths"
          value=${search}
          onInput=${(event) => setSearch(event.target.value)}
        />
        <div class="choice" role="group" aria-label="Axis">
          <button type="button" aria-pressed=${byChange ? "false" : "true"} onClick=${() => setEven(false)}>
            By epoch
          </button>
          <button type="button" aria-pressed=${byChange ? "true" : "false"} onClick=${() => setEven(true)}>
            By change
          </button>
        </div>
      </div>
    </div>
    <div class="lanes" role="table" aria-label="Paths and their units over time">
      <div class="lane lanes-axis" role="row">
        <span class="lane-label quiet" role="columnheader">Path</span>
        <div class="lane-track" ref=${box} role="columnheader">
          <span class="unseen">Epochs</span>
          ${scale.ticks.map((each) =>
            html`<span key=${each.epoch} class="tick" aria-hidden="true" style=${{ left: `${100 * each.place}%` }}>${count(each.epoch)}</span>`)}
        </div>
      </div>
      ${shown.map((row) =>
        html`<${Lane} key=${row.key} row=${row} many=${many} scale=${scale} width=${width} accent=${accent} select=${select} />`)}
      ${rows.length === 0 &&
        html`<div class="lane" role="row"><p role="cell" class="quiet lanes-none">${search ? "no path is like that" : "Nothing has changed so far: every path is as it was declared, or as its items have it."}</p></div>`}
    </div>
    ${
      rows.length > shown.length &&
      html`<p>
        <button type="button" class="button" onClick=${() => setAll(true)}>
          ${count(rows.length - shown.length)} more rows
        </button>
      </p>`
    }
    ${rows.length > 0 && html`<${Legend} />`}
  </section>`;
}

function Legend() {
  const state = (key, label) => html`<span><i class=${`stretch state-${key}`}></i>${label}</span>`;
  const kind = (key, label) => html`<span><i class=${`glyph glyph-${key}`}>${GLYPHS[key] ?? "!"}</i>${label}</span>`;
  return html`<p class="legend quiet" aria-hidden="true">
    ${state("declared", "as it was from the start")} ${state("unit", "in another unit, or added")}
    ${state("dropped", "dropped")} ${state("unknown", "nobody knows its unit")} ${kind("alter", "altered")}
    ${kind("add", "added")} ${kind("drop", "dropped")} ${kind("refused", "refused")}
  </p>`;
}

function Lane({ row, many, scale, width, accent, select }) {
  const marks = marksOf(row, scale.place, width || 600);
  return html`<div class=${`lane ${row.first ? "lane-first" : ""}`} role="row">
    <span class="lane-label" role="rowheader">
      <code class=${row.first ? "" : "lane-again"} title=${inline(row.path)}>${inline(row.path)}</code>
      <span class="quiet lane-items" title=${inline(row.items)}
        >${inline(row.items)}${many ? ` · partition ${row.partition}` : ""}</span
      >
    </span>
    <div class="lane-track" role="cell">
      ${scale.ticks.map((each) =>
        html`<i key=${each.epoch} class="grid" style=${{ left: `${100 * each.place}%` }}></i>`)}
      ${row.stretches.map((each, index) => {
        const left = scale.place(each.from_epoch);
        const right = each.to_epoch === null ? 1 : scale.place(each.to_epoch);
        const words = (right - left) * width < 56 ? "" : each.unit || each.state;
        const until = each.to_epoch === null ? "on" : `to ${count(each.to_epoch)}`;
        return html`<span
          key=${index}
          class=${`stretch state-${each.unit ? "unit" : each.state.replace(/[^a-z]+/g, "-")} ${each.to_epoch === null ? "stretch-open" : ""}`}
          style=${{ left: `${100 * left}%`, width: `${100 * Math.max(0.004, right - left)}%` }}
          title=${`${inline(each.state)}${each.unit ? `, ${inline(each.unit)}` : ""}, from epoch ${count(each.from_epoch)} ${until}`}
          ><span class="stretch-text">${shortened(inline(words), 60)}</span></span
        >`;
      })}
      ${marks.map((mark) =>
        html`<${Mark} key=${mark.accents[0].number} mark=${mark} accent=${accent} select=${select} />`)}
    </div>
  </div>`;
}

function Mark({ mark, accent, select }) {
  const here = mark.accents.findIndex((each) => each.number === accent?.number);
  // a mark of several goes through them, one after the other
  const next = mark.accents[(here + 1) % mark.accents.length];
  const newest = mark.accents.at(-1);
  const several = mark.accents.length > 1;
  const words = several
    ? `${count(mark.accents.length)} accents, epochs ${count(mark.accents[0].epoch)} to ${count(newest.epoch)}`
    : `accent ${newest.number}, epoch ${count(newest.epoch)}: ${inline(newest.change)}${newest.refused ? ", refused" : ""}`;
  return html`<button
    type="button"
    class=${`glyph glyph-${newest.refused ? "refused" : newest.kind} ${several ? "glyph-many" : ""}`}
    style=${{ left: `${100 * mark.place}%` }}
    aria-label=${words}
    aria-pressed=${here >= 0 ? "true" : "false"}
    title=${words}
    onClick=${() => select(next.number)}
  >
    ${several ? count(mark.accents.length) : newest.refused ? "!" : (GLYPHS[newest.kind] ?? "•")}
  </button>`;
}

function Detail({ name, evolution, accent, select }) {
  const box = useRef(null);
  useEffect(() => box.current.scrollIntoView({ block: "nearest" }), []); // on a phone it is below what was touched
  const place = evolution.accents.findIndex((each) => each.number === accent.number);
  const step = (by) => evolution.accents[place + by];
  return html`<section class="panel" ref=${box} aria-labelledby="accent-title">
    <div class="panel-head">
      <h2 id="accent-title">Accent ${accent.number}</h2>
      ${accent.refused && html`<${Badge} tone="bad">refused<//>`}
      <span class="panel-end">
        <button type="button" class="button" disabled=${!step(-1)} onClick=${() => select(step(-1).number)}>
          Previous</button
        >${" "}
        <button type="button" class="button" disabled=${!step(1)} onClick=${() => select(step(1).number)}>Next</button
        >${" "}
        <button type="button" class="button button-plain" aria-label="Close the accent" onClick=${() => select(null)}>
          ✕
        </button>
      </span>
    </div>
    <pre class="accent-change">${inline(accent.change)}</pre>
    ${accent.refused &&
      html`<${Notice} kind="error" role="note" title="It was not valid, so its path is unknown for these items">${inline(accent.refused)}<//>`}
    <dl class="facts">
      <dt>for</dt>
      <dd><code>${inline(accent.items)}</code></dd>
      <dt>since</dt>
      <dd>epoch ${count(accent.epoch)}</dd>
      <dt>where</dt>
      <dd>
        ${evolution.partitions > 1 ? `partition ${accent.partition}, ` : ""}<code>${inline(accent.file)}</code>, byte${" "}
        ${count(accent.offset)}
      </dd>
    </dl>
    <h3 class="accent-did">What subscriptions did about it</h3>
    <${Reactions}
      reactions=${accent.reactions}
      all=${(deed) => at("streams", name, "evolution", String(accent.number), deed)}
    />
  </section>`;
}

function AccentTable({ evolution, accent, select }) {
  const columns = [
    { key: "epoch", label: "Epoch", numeric: true, sortable: true },
    {
      key: "change",
      label: "Change",
      sortable: true,
      cell: (row) =>
        html`<button type="button" class="word-button mono" onClick=${() => select(row.number)}>
            ${shortened(inline(row.change), 80)}
          </button>
          ${row.refused && html` <${Badge} tone="bad">refused<//>`}
          <span class="quiet accent-items">for ${shortened(inline(row.items), 60)}</span>`,
    },
    {
      key: "reactions",
      label: "Concerned",
      numeric: true,
      sortable: true,
      value: (row) => row.reactions.reduce((sum, each) => sum + each.count, 0),
    },
  ];
  return html`<section class="panel">
    <h2>Accents</h2>
    <${PagedTable}
      caption="Accents of the stream"
      columns=${columns}
      rows=${evolution.accents}
      rowKey=${(row) => row.number}
      size=${ACCENTS}
      what="accents"
      sort=${{ key: "epoch", order: "desc" }}
      selected=${accent?.number}
    />
  </section>`;
}
