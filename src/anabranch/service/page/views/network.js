// The view Network: the map of the network that the site is a peer of, alive.
//
// A link has two widths: the pale one is what was planned for it, the full one what is measured; where more flows than
// was planned, the full one is the wider. The table beside it has the same numbers, and what flows on each link.
import { html, useMemo, useState } from "../html.js";
import { useFetched } from "../live.js";
import { byteRate, count, inline, percent, plural, shortened } from "../text.js";
import { Badge } from "../components/badge.js";
import { Empty, Loading } from "../components/empty.js";
import { ErrorNotice } from "../components/notice.js";
import { layout } from "./parts/network-layout.js";
import { PagedTable } from "./parts/paged-table.js";
import { useWidth } from "./parts/picture-width.js";

export const title = "Network";
const EVERY = 3000;
const MOST_DRAWN = 400; // links on the map
const ROWS = 50;
const MOST_FLOWS = 100; // flows that are listed of one link
const keyOf = (link) => JSON.stringify([link.from, link.to]);
const shareOf = (link) => (link.planned > 0 && link.measured !== null ? link.measured / link.planned : null);
const nameOf = (link) => `${inline(link.from)} → ${inline(link.to)}`;

export default function Network() {
  const { data, error, again } = useFetched("/network", {}, { every: EVERY });
  const [chosen, setChosen] = useState(null); // the key of a link
  const network = data?.network ?? null;
  return html`<div class="head"><h1 tabindex="-1">${title}</h1></div>
    <${ErrorNotice} error=${error} again=${again} />
    ${!data && !error && html`<${Loading} what="the network" />`} ${data && !network && html`<${Alone} />`}
    ${network && html`<${Whole} network=${network} chosen=${chosen} setChosen=${setChosen} />`}`;
}

function Alone() {
  return html`<section class="panel">
    <${Empty} title="This site runs by itself">
      <p>
        A network joins sites that share streams on the way: what is needed of a stream travels over each link once,
        however many ask for it behind it.
      </p>
      <p>Peers, links, streams and subscriptions are written down in a NETWORK.toml:</p>
      <pre class="network-example" tabindex="0" aria-label="An example of a NETWORK.toml">${EXAMPLE}</pre>
      <p>
        <code>anabranch network plan NETWORK.toml</code> shows what would flow where,${" "}
        <code>anabranch network run NETWORK.toml</code> lets it flow.
      </p>
    <//>
  </section>`;
}

const EXAMPLE = `[network]
topology = "hypercube"
peers = 8

[streams.photons]
at = "SP4"
path = "in"

[subscriptions.vela]
at = "SP1"
query = "vela.xq"`;

function Whole({ network, chosen, setChosen }) {
  const link = network.links.find((each) => keyOf(each) === chosen) ?? null;
  const total = (key) => network.links.reduce((sum, each) => sum + (each[key] ?? 0), 0);
  return html`<div class="stack">
    <section class="panel network-totals">
      <dl class="network-numbers">
        <div>
          <dt>peers</dt>
          <dd>${count(network.peers.length)}</dd>
        </div>
        <div>
          <dt>links</dt>
          <dd>${count(network.links.length)}</dd>
        </div>
        <div>
          <dt>flows</dt>
          <dd>${count(network.links.reduce((sum, each) => sum + each.flows.length, 0))}</dd>
        </div>
        <div>
          <dt>planned</dt>
          <dd>${byteRate(total("planned"))}</dd>
        </div>
        <div>
          <dt>measured</dt>
          <dd>${byteRate(total("measured"))}</dd>
        </div>
      </dl>
    </section>
    <div class="network-both">
      <${Picture} network=${network} chosen=${chosen} setChosen=${setChosen} />
      <div class="stack">
        ${link && html`<${Flows} link=${link} close=${() => setChosen(null)} />`}
        <${Links} network=${network} chosen=${chosen} setChosen=${setChosen} />
      </div>
    </div>
  </div>`;
}

function Picture({ network, chosen, setChosen }) {
  const [box, width] = useWidth();
  const height = Math.round(Math.min(560, Math.max(320, width * 0.66)));
  const places = useMemo(() => (width ? layout(network, width, height) : null), [network, width]);
  const drawn = places
    ? [...places.links]
        .sort((one, other) => other.planned + other.measured - one.planned - one.measured)
        .slice(0, MOST_DRAWN)
    : [];
  return html`<section class="panel" aria-labelledby="map-title">
    <div class="panel-head">
      <h2 id="map-title">The map</h2>
      <p class="quiet">A link is as wide as the root of what it carries: pale as planned, full as measured.</p>
    </div>
    <div ref=${box} class="network-map" style=${{ height: `${height}px` }}>
      ${
        places &&
        html`<svg
          width=${width}
          height=${height}
          role="img"
          aria-label=${`${plural(network.peers.length, "peer")} and ${plural(network.links.length, "link")}; the table has their numbers`}
        >
          ${drawn.map((each) =>
            html`<${Link} key=${keyOf(each.link)} each=${each} chosen=${keyOf(each.link) === chosen} choose=${() => setChosen(keyOf(each.link))} />`)}
          ${places.nodes.map((each) => html`<${Node} key=${each.peer.name} each=${each} />`)}
        </svg>`
      }
    </div>
    ${places && places.links.length > MOST_DRAWN &&
      html`<p class="quiet">The ${count(MOST_DRAWN)} busiest links are drawn; the table has all.</p>`}
  </section>`;
}

function Link({ each, chosen, choose }) {
  const ends = { x1: each.x1, y1: each.y1, x2: each.x2, y2: each.y2 };
  const { link } = each;
  return html`<g class=${`net-link ${chosen ? "net-chosen" : ""}`} onClick=${choose}>
    <title>${nameOf(link)}: ${byteRate(link.measured)} measured, ${byteRate(link.planned)} planned</title>
    <line class="net-ground" ...${ends} />
    ${each.planned > 0 && html`<line class="net-planned" ...${ends} stroke-width=${each.planned} />`}
    ${each.measured > 0 &&
      html`<line class="net-measured" ...${ends} stroke-width=${Math.max(1.5, each.measured * 0.7)} />`}
    ${each.measured > 0 &&
      html`<line class="net-moving" ...${ends} stroke-width=${Math.max(1, each.measured * 0.25)} />`}
    ${each.measured > 0 && html`<path class="net-head" d="M-7 -7L7 0L-7 7Z" transform=${headOf(each)} />`}
    <line class="net-touch" ...${ends} />
  </g>`;
}

// the head of the arrow stands behind the middle, where no other link crosses it
function headOf({ x1, y1, x2, y2, measured }) {
  const [x, y] = [x1 + 0.6 * (x2 - x1), y1 + 0.6 * (y2 - y1)];
  const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  return `translate(${x} ${y}) rotate(${angle}) scale(${Math.max(0.8, measured / 10)})`;
}

function Node({ each }) {
  const { peer, x, y } = each;
  const name = shortened(inline(peer.name), 14);
  const wide = Math.max(34, name.length * 8 + 16);
  return html`<g class=${peer.super ? "net-super" : "net-thin"} transform=${`translate(${x} ${y})`}>
    <title>${inline(peer.name)}, ${peer.super ? "a super-peer" : "a thin peer"}</title>
    <rect x=${-wide / 2} y="-15" width=${wide} height="30" rx=${peer.super ? 7 : 15} />
    <text text-anchor="middle" dy="0.35em">${name}</text>
  </g>`;
}

function Links({ network, chosen, setChosen }) {
  return html`<section class="panel network-table">
    <h2>Links</h2>
    <${PagedTable}
      caption="Links of the network"
      columns=${[
        {
          key: "link",
          label: "Link",
          sortable: true,
          value: nameOf,
          cell: (row) =>
            html`<button
              type="button"
              class="word-button"
              aria-expanded=${keyOf(row) === chosen ? "true" : "false"}
              onClick=${() => setChosen(keyOf(row) === chosen ? null : keyOf(row))}
            >
              ${nameOf(row)}
            </button>`,
        },
        { key: "measured", label: "Measured", numeric: true, sortable: true, cell: (row) => byteRate(row.measured) },
        { key: "planned", label: "Planned", numeric: true, sortable: true, cell: (row) => byteRate(row.planned) },
        {
          key: "share",
          label: "Of it",
          numeric: true,
          sortable: true,
          wide: true,
          title: "measured of planned",
          value: shareOf,
          cell: (row) => percent(shareOf(row)),
        },
        { key: "flows", label: "Flows", numeric: true, sortable: true, value: (row) => row.flows.length },
      ]}
      rows=${network.links}
      rowKey=${keyOf}
      size=${ROWS}
      what="links"
      sort=${{ key: "measured", order: "desc" }}
      selected=${chosen}
      empty="no link joins the peers"
    />
  </section>`;
}

function Flows({ link, close }) {
  const over = link.planned > 0 && link.measured > link.planned * 1.2;
  return html`<section class="panel" aria-labelledby="flows-title">
    <div class="panel-head">
      <h2 id="flows-title">${nameOf(link)}</h2>
      ${over && html`<${Badge} tone="warn">more than planned<//>`}
      <button type="button" class="button button-plain panel-end" aria-label="Close the link" onClick=${close}>
        ✕
      </button>
    </div>
    <p>${byteRate(link.measured)} measured, ${byteRate(link.planned)} planned.</p>
    ${
      link.flows.length === 0
        ? html`<p class="quiet">Nothing flows on it.</p>`
        : html`<ul class="plain-list flows">
            ${link.flows.slice(0, MOST_FLOWS).map((each, index) =>
              html`<li key=${index}><code>${inline(each.stream)}</code> <span class="quiet">${shortened(inline(each.carries), 300)}</span></li>`)}
            ${link.flows.length > MOST_FLOWS &&
              html`<li class="quiet">and ${count(link.flows.length - MOST_FLOWS)} more</li>`}
          </ul>`
    }
  </section>`;
}
