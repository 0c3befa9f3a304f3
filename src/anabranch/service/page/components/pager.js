// Pages by cursor: the service gives `next`, and the way back is remembered here.
//
// usePages(key)         a hook: {after, number, next(cursor), previous(), first()}; begins anew when `key`, a text that
//                       says what is being listed, changes. `after` goes into the request, `number` counts from 0.
// <${Pager} pages=${pages} next=${data.next} size=${100} shown=${rows.length} total=${total} what="subscriptions" />
//                       buttons and "101 to 200 of 1,011 subscriptions"; `total` may be missing
import { html, useState } from "../html.js";
import { count } from "../text.js";

export function usePages(key) {
  const [state, setState] = useState({ key, cursors: [null] });
  const cursors = state.key === key ? state.cursors : [null];
  const set = (changed) => setState({ key, cursors: changed });
  return {
    after: cursors[cursors.length - 1],
    number: cursors.length - 1,
    next: (cursor) => set([...cursors, cursor]),
    previous: () => cursors.length > 1 && set(cursors.slice(0, -1)),
    first: () => set([null]),
  };
}

export function Pager({ pages, next, size, shown, total, what = "" }) {
  const from = pages.number * size;
  const range = shown ? `${count(from + 1)} to ${count(from + shown)}` : "none";
  const known = typeof total === "number";
  return html`<nav class="pager" aria-label=${`Pages${what ? ` of ${what}` : ""}`}>
    <p class="pager-range" role="status">${range}${known ? ` of ${count(total)}` : ""} ${what}</p>
    <span class="pager-buttons">
      <button type="button" class="button" disabled=${pages.number === 0} onClick=${pages.first}>First</button>
      <button type="button" class="button" disabled=${pages.number === 0} onClick=${pages.previous}>Previous</button>
      <button type="button" class="button" disabled=${next === null || next === undefined} onClick=${() => pages.next(next)}>
        Next
      </button>
    </span>
  </nav>`;
}
