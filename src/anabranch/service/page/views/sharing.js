// The view Sharing: the shared plan as a picture, and what would be carried without it.
//
// One picture for three subscriptions and for ten thousand: the subscriptions of a shape or branch are one group, the
// largest forty groups are drawn, and the others are one more row that leads to the table.
// Groups are rows of HTML, so the keyboard and screen readers have them as a list of buttons; only the bands between
// are SVG, which says nothing that the rows and the table do not say, too.
// The members of an open group are fetched page by page; what is open stays open while the numbers are renewed.
import { html, useMemo, useState } from "../html.js";
import { at } from "../api.js";
import { useFetched } from "../live.js";
import { link } from "../router.js";
import { amount, byteRate, count, inline, plural, shortened, visible } from "../text.js";
import { Badge } from "../components/badge.js";
import { Empty, Loading } from "../components/empty.js";
import { ErrorNotice } from "../components/notice.js";
import { Pager, usePages } from "../components/pager.js";
import { Table } from "../components/table.js";
import { layout, chosen } from "./parts/sharing-layout.js";
import { PagedTable } from "./parts/paged-table.js";
import { useWidth } from "./parts/picture-width.js";

export const title = "Sharing";
const EVERY = 3000;
const MOST_OPEN = 6;
const MEMBERS = 50;
const ROWS = 25;

export default function Sharing() {
  const { data, error, again } = useFetched("/sharing", {}, { every: EVERY });
  const [open, setOpen] = useState([]); // ids, oldest first
  const [folded, setFolded] = useState(false); // whether the table shows only what is not drawn
  const toggle = (id) =>
    setOpen((old) => (old.includes(id) ? old.filter((each) => each !== id) : [...old, id].slice(-MOST_OPEN)));
  const showFolded = () => {
    setFolded(true);
    document.getElementById("sharing-table")?.scrollIntoView({ block: "nearest" });
    document.getElementById("sharing-filter")?.focus({ preventScroll: true });
  };
  const head = html`<div class="head"><h1 tabindex="-1">${title}</h1></div>`;
  if (!data)
    return html`${head}${error
        ? html`<${ErrorNotice} error=${error} again=${again} />`
        : html`<${Loading} what="the shared plan" />`}`;
  return html`${head}
    <div class="stack sharing">
      <${ErrorNotice} error=${error} again=${again} />
      <${Comparison} data=${data} />
      ${
        data.groups.length === 0
          ? html`<${Empty} title="Nothing is shared yet">
              <p>
                Groups appear here as soon as somebody subscribes:${" "}
                <a href=${link("subscriptions")}>see the subscriptions</a>.
              </p>
            <//>`
          : html`<div class="sharing-both">
              <${Picture} data=${data} open=${open} toggle=${toggle} showFolded=${showFolded} />
              <${GroupTable} data=${data} open=${open} toggle=${toggle} folded=${folded} setFolded=${setFolded} />
            </div>`
      }
    </div>`;
}

function Comparison({ data }) {
  const { with: shared, without: apart } = data;
  const most = Math.max(shared.bytes_per_second, apart.bytes_per_second);
  const bar = (bytes) => `${most > 0 ? Math.max(bytes > 0 ? 0.4 : 0, (100 * bytes) / most) : 0}%`;
  const bytesSaved = shared.bytes_per_second > 0 ? apart.bytes_per_second / shared.bytes_per_second : 0;
  const factor = bytesSaved || (shared.passes > 0 ? apart.passes / shared.passes : 0);
  const line = (label, side, kind) =>
    html`<div class="compare-line">
      <span class="compare-label">${label}</span>
      <span class="compare-track" aria-hidden="true"
        ><span class=${`compare-bar compare-${kind}`} style=${{ width: bar(side.bytes_per_second) }}></span
      ></span>
      <span class="compare-numbers"
        ><strong>${byteRate(side.bytes_per_second)}</strong> read in ${plural(side.passes, "pass", "passes")}</span
      >
    </div>`;
  return html`<section class="panel compare" aria-labelledby="compare-title">
    <h2 id="compare-title" class="compare-title">
      ${
        factor >= 1.05
          ? html`Sharing reads <strong class="compare-factor">${amount(factor)} ×</strong> less`
          : "What sharing saves"
      }
    </h2>
    ${line("With sharing", shared, "with")} ${line("Without", apart, "without")}
    ${most === 0 &&
      html`<p class="quiet compare-note">Nothing has come in during the last seconds; bars follow measured bytes.</p>`}
  </section>`;
}

function Picture({ data, open, toggle, showFolded }) {
  const [box, width] = useWidth();
  const places = useMemo(() => (width ? layout(data, new Set(open), width) : null), [data, open, width]);
  return html`<section class="panel sharing-picture" aria-labelledby="picture-title">
    <div class="panel-head">
      <h2 id="picture-title">The shared plan</h2>
      <p class="quiet">
        Every stream is read once, for ${plural(data.groups.length, "group")}. A band is as wide as the root of its
        rate.
      </p>
    </div>
    <div class="sharing-box" ref=${box} style=${{ height: places ? `${places.height}px` : "320px" }}>
      ${places && html`<${Bands} places=${places} />`}
      ${
        places &&
        html`<ul class="plain-list" aria-label="Streams">
          ${places.streams.map((each) => html`<${StreamCard} key=${each.stream.name} each=${each} places=${places} />`)}
        </ul>`
      }
      ${
        places &&
        html`<ol class="plain-list" aria-label="Groups">
          ${places.rows.map(
            (each) =>
              html`<${GroupRow}
                key=${each.group.id}
                each=${each}
                places=${places}
                open=${open.includes(each.group.id)}
                toggle=${toggle}
              />`,
          )}
          ${places.fold && html`<${FoldRow} key="fold" places=${places} show=${showFolded} />`}
        </ol>`
      }
    </div>
  </section>`;
}

function Bands({ places }) {
  const draw = (kind) => (band) =>
    html`<path
      key=${`${kind} ${band.key}`}
      class=${`band band-${kind} tint-${band.tint % 6} ${band.still ? "band-still" : ""}`}
      d=${band.path}
    />`;
  return html`<svg class="sharing-bands" width=${places.width} height=${places.height} aria-hidden="true">
    ${places.bands.map(draw("items"))} ${places.answers.map(draw("answers"))}
  </svg>`;
}

function StreamCard({ each, places }) {
  const { stream } = each;
  const [left, right] = places.columns.stream;
  return html`<li
    class=${`sharing-stream tint-${each.tint % 6} ${places.narrow ? "sharing-flat" : ""}`}
    style=${{ left: `${left}px`, width: `${right - left}px`, top: `${each.y}px`, height: `${each.height}px` }}
  >
    <a class="sharing-name" href=${link("evolution", [stream.name])} title=${inline(stream.name)}
      >${inline(stream.name)}</a
    >
    <span class="sharing-numbers"
      ><span class="unseen">, </span>${amount(stream.items_per_second)}<span class="quiet"> items/s</span></span
    >
    <span class="sharing-numbers quiet">${byteRate(stream.bytes_per_second)}</span>
  </li>`;
}

function GroupRow({ each, places, open, toggle }) {
  const { group } = each;
  const { left, right } = places.columns;
  const panel = `members-${group.id}`;
  const numbers = html`<span class="sharing-count">${plural(group.subscriptions, "subscription")}</span>
    <span class="quiet">${amount(group.answers_per_second)} ${places.narrow ? "/s" : "answers/s"}</span>`;
  const place = { left: `${left}px`, width: `${right - left}px`, top: `${each.y}px`, height: `${each.height}px` };
  return html`<li class=${`sharing-group ${open ? "open" : ""}`} style=${place}>
    <button
      type="button"
      class="sharing-head"
      style=${{ height: `${each.head}px` }}
      aria-expanded=${open ? "true" : "false"}
      aria-controls=${open ? panel : undefined}
      onClick=${() => toggle(group.id)}
    >
      <span class="chevron" aria-hidden="true"></span>
      <span class="sharing-text">
        <span class="sharing-kind">
          ${group.kind}${group.branches ? ` · ${plural(group.branches, "branch", "branches")}` : ""}${group.in_columns ? "" : " · by the law"}
        </span>
        <code class="sharing-label" title=${inline(group.label)}>${shortened(brief(group.label), 160)}</code>
        ${places.narrow && html`<span class="sharing-beneath">${numbers}</span>`}
      </span>
      ${!places.narrow && html`<span class="unseen">${numbers}</span>`}
    </button>
    ${!places.narrow &&
      html`<span class="sharing-side" style=${{ height: `${each.head}px` }} aria-hidden="true">${numbers}</span>`}
    ${open &&
      html`<div id=${panel} class="sharing-panel" style=${{ width: `${places.width - left}px` }}><${Members} group=${group} /></div>`}
  </li>`;
}

// most begin with the stream that they read, which the picture shows: what they do with it comes first
function brief(label) {
  return inline(label).replace(/^for \$\S+ in stream\("[^"]*"\)[^\s|]*\s*(?=\S)/, "… ");
}

function FoldRow({ places, show }) {
  const { fold, columns } = places;
  const place = {
    left: `${columns.left}px`,
    width: `${columns.right - columns.left}px`,
    top: `${fold.y}px`,
    height: `${fold.height}px`,
  };
  const numbers = html`<span class="sharing-count">${plural(fold.subscriptions, "subscription")}</span>
    <span class="quiet">${amount(fold.rate)} answers/s</span>`;
  return html`<li class="sharing-group sharing-fold" style=${place}>
    <button type="button" class="sharing-head" style=${{ height: `${fold.height}px` }} onClick=${show}>
      <span class="sharing-text">
        <span>${count(fold.groups.length)} more groups</span>
        <span class="quiet"
          >${places.narrow ? `${plural(fold.subscriptions, "subscription")}, ` : ""}list them in the table</span
        >
      </span>
    </button>
    ${!places.narrow && html`<span class="sharing-side" style=${{ height: `${fold.height}px` }}>${numbers}</span>`}
  </li>`;
}

function Members({ group }) {
  const pages = usePages(group.id);
  const { data, error, again } = useFetched(at("sharing", group.id), { after: pages.after, limit: MEMBERS });
  const members = data?.subscriptions ?? [];
  return html`<pre class="sharing-query" tabindex="0" aria-label="What the group has in common">
${visible(group.label)}</pre>
    <p class="sharing-facts">
      ${plural(group.subscriptions, "subscription")}, ${plural(group.queries, "different query", "different queries")}
      ${group.branches ? html`, ${plural(group.branches, "branch", "branches")} that remember` : ""};
      ${" "}${group.in_columns
          ? html`<${Badge} tone="good">in columns<//>`
          : html`<${Badge} tone="warn">by the law<//> ${inline(group.reason)}`}
    </p>
    <${ErrorNotice} error=${error} again=${again} />
    ${
      data
        ? html`<${Table}
              caption=${`Subscriptions of the group ${group.id}`}
              columns=${[
                {
                  key: "name",
                  label: "Name",
                  cell: (row) =>
                    html`<a href=${link("subscriptions", [row.name])}>${shortened(inline(row.name), 60)}</a>`,
                },
                { key: "answers", label: "Answers", numeric: true },
                {
                  key: "query",
                  label: "Query",
                  wide: true,
                  cell: (row) =>
                    html`<code class="one-line" title=${inline(row.query)}>${shortened(brief(row.query), 120)}</code>`,
                },
              ]}
              rows=${members}
              rowKey=${(row) => row.name}
              empty="nobody is in this group any more"
            />
            <${Pager}
              pages=${pages}
              next=${data.next}
              size=${MEMBERS}
              shown=${members.length}
              total=${group.subscriptions}
              what="members"
            />`
        : !error && html`<${Loading} what="members" />`
    }`;
}

function GroupTable({ data, open, toggle, folded, setFolded }) {
  const [filter, setFilter] = useState("");
  const rest = useMemo(() => chosen(data.groups).folded, [data]);
  const rows = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    const all = folded ? rest : data.groups;
    if (!wanted) return all;
    return all.filter((each) =>
      [each.label, each.kind, ...each.streams, ...each.names].some((text) => text.toLowerCase().includes(wanted)),
    );
  }, [data, filter, folded]);
  const opened = rest.filter((each) => open.includes(each.id)); // those in the picture are open there
  const columns = [
    {
      key: "label",
      label: "Group",
      sortable: true,
      cell: (row) =>
        html`<button
            type="button"
            class="word-button one-line mono"
            title=${inline(row.label)}
            aria-expanded=${open.includes(row.id) ? "true" : "false"}
            onClick=${() => toggle(row.id)}
          >
            ${shortened(brief(row.label), 90)}
          </button>
          <span class="quiet sharing-of">${row.kind} of ${row.streams.map(inline).join(", ")}</span>`,
    },
    { key: "subscriptions", label: "Members", title: "subscriptions", numeric: true, sortable: true },
    {
      key: "queries",
      label: "Queries",
      numeric: true,
      sortable: true,
      wide: true,
      title: "different queries: equal ones are answered once",
    },
    {
      key: "answers_per_second",
      label: "Answers/s",
      numeric: true,
      sortable: true,
      cell: (row) => amount(row.answers_per_second),
    },
    {
      key: "in_columns",
      label: "By",
      sortable: true,
      wide: true,
      value: (row) => (row.in_columns ? "columns" : "law"),
      title: "whether it is answered in columns or by the law",
    },
  ];
  return html`<section class="panel sharing-table" id="sharing-table" aria-labelledby="table-title">
    <div class="panel-head">
      <h2 id="table-title">The groups in numbers</h2>
      <p class="sharing-filters">
        <input
          id="sharing-filter"
          type="search"
          placeholder="Filter groups"
          aria-label="Filter groups"
          value=${filter}
          onInput=${(event) => setFilter(event.target.value)}
        />
        ${
          rest.length > 0 &&
          html`<label class="check"
            ><input type="checkbox" checked=${folded} onChange=${(event) => setFolded(event.target.checked)} /> only
            those not drawn</label
          >`
        }
      </p>
    </div>
    <${PagedTable}
      caption="Groups of subscriptions"
      columns=${columns}
      rows=${rows}
      rowKey=${(row) => row.id}
      size=${ROWS}
      what="groups"
      listed=${`${filter} ${folded}`}
      sort=${{ key: "subscriptions", order: "desc" }}
      empty="no group is like that"
    />
    ${opened.map((group) =>
      html`<div key=${group.id} class="sharing-panel sharing-panel-free"><${Members} group=${group} /></div>`)}
  </section>`;
}
