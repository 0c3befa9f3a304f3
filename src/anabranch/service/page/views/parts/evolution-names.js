// What subscriptions did about an accent, or would do: how many by each deed, and their names.
//
// <${Reactions} reactions=${[{deed, count, subscriptions}]} others=${1001} reasons=${{name: why}} all=${(deed) => path} />
//     `all` gives the path of the service that has all names of a deed, page by page; without it the first are shown.
import { html, useState } from "../../html.js";
import { useFetched } from "../../live.js";
import { link } from "../../router.js";
import { count, inline, plural, shortened } from "../../text.js";
import { ErrorNotice } from "../../components/notice.js";
import { Pager, usePages } from "../../components/pager.js";

const PAGE = 100;
const TONES = { "passes it on": "pass", "reckons with it": "reckon", ends: "end" };
const MEANING = {
  "passes it on": "its answer says that it changes, too",
  "reckons with it": "its values are converted; its answer stays as it is",
  ends: "it cannot go on without what has changed",
};
const DEEDS = Object.keys(TONES);

export function Reactions({ reactions, others = null, reasons = {}, all = null }) {
  const total = reactions.reduce((sum, each) => sum + each.count, 0);
  const ordered = [...reactions].sort((one, other) => DEEDS.indexOf(one.deed) - DEEDS.indexOf(other.deed));
  if (total === 0) {
    return html`<p class="quiet">
      No subscription is concerned${others ? `: ${plural(others, "other")} read something else` : ""}.
    </p>`;
  }
  return html`<div class="reactions">
    <div class="reactions-bar" aria-hidden="true">
      ${ordered.map((each) =>
        html`<span key=${each.deed} class=${`deed-${TONES[each.deed] ?? "other"}`} style=${{ flexGrow: each.count }}></span>`)}
    </div>
    <ul class="plain-list">
      ${ordered.map((each) =>
        html`<${Reaction} key=${each.deed} each=${each} reasons=${reasons} path=${all && each.count > each.subscriptions.length ? all(each.deed) : null} />`)}
    </ul>
    ${others !== null &&
      html`<p class="quiet">${others === 0 ? "Nobody else reads the stream." : `${plural(others, "other is", "others are")} not concerned.`}</p>`}
  </div>`;
}

function Reaction({ each, reasons, path }) {
  const [open, setOpen] = useState(each.count <= 8 || each.deed === "ends");
  return html`<li class="reaction">
    <button
      type="button"
      class="reaction-head"
      aria-expanded=${open ? "true" : "false"}
      onClick=${() => setOpen(!open)}
    >
      <span class="chevron" aria-hidden="true"></span>
      <span class=${`swatch deed-${TONES[each.deed] ?? "other"}`} aria-hidden="true"></span>
      <strong>${count(each.count)}</strong> <span>${each.count === 1 ? each.deed : plurally(each.deed)}</span>
      <span class="quiet reaction-meaning">${MEANING[each.deed] ?? ""}</span>
    </button>
    ${open && (path
        ? html`<${AllNames} each=${each} path=${path} />`
        : html`<${Names} names=${each.subscriptions} reasons=${reasons} more=${each.count - each.subscriptions.length} />`)}
  </li>`;
}

const plurally = (deed) =>
  ({ "passes it on": "pass it on", "reckons with it": "reckon with it", ends: "end" })[deed] ?? deed;

function Names({ names, reasons = {}, more = 0 }) {
  return html`<ul class="plain-list names">
    ${names.map(
      (name) =>
        html`<li key=${name}>
          <a href=${link("subscriptions", [name])}>${shortened(inline(name), 60)}</a>
          ${Object.hasOwn(reasons, name) && html`<span class="quiet">: ${inline(reasons[name])}</span>`}
        </li>`,
    )}
    ${more > 0 && html`<li class="quiet">and ${count(more)} more</li>`}
  </ul>`;
}

function AllNames({ each, path }) {
  const pages = usePages(path);
  const { data, error, again } = useFetched(path, { after: pages.after, limit: PAGE });
  const names = data?.subscriptions ?? each.subscriptions;
  return html`<${ErrorNotice} error=${error} again=${again} />
    <${Names} names=${names} />
    <${Pager}
      pages=${pages}
      next=${data?.next ?? null}
      size=${PAGE}
      shown=${names.length}
      total=${each.count}
      what="subscriptions"
    />`;
}
