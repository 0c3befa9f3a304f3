// The versions of a value: what stood at a path of the display, moment after moment.
//
// <${Versions} kept=${Past} first=${number} last=${number} choice=${{steps, keys, size}} number=${number} go=${(number) => ...} />
//
// The service keeps displays, not values; so moments are looked at one after the other, newest first, a part at a time:
// at most 200 of them or 12 million characters, and more when one asks for it.
import { html, useEffect, useRef, useState } from "../../html.js";
import { aborted } from "../../api.js";
import { count, inline, plural, shortened } from "../../text.js";
import { ErrorNotice } from "../../components/notice.js";
import { pathText } from "./past-document.js";
import { versions } from "./past-moments.js";

const MOST_MOMENTS = 200;
const MOST_CHARACTERS = 12_000_000;
const MOST_ROWS = 200;

export function Versions({ kept, first, last, choice, number, go, close }) {
  const [by, setBy] = useState(choice.keys.length ? 0 : -1); // which key, or -1: by position
  const [state, setState] = useState({ found: [], looked: 0, next: null, busy: true, error: null });
  const stop = useRef(null);
  const key = by >= 0 ? choice.keys[by] : null;

  const look = async (from, before) => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    const to = Math.max(first, from - MOST_MOMENTS + 1);
    setState({ ...before, busy: true, error: null });
    try {
      let told = { versions: [], looked: 0, next: from };
      for await (told of versions(kept, { steps: choice.steps, key, from, to, signal: mine.signal })) {
        setState({
          found: joined(before.found, told.versions),
          looked: before.looked + told.looked,
          next: told.next,
          busy: true,
          error: null,
        });
        if (told.characters > MOST_CHARACTERS) break;
      }
      setState({
        found: joined(before.found, told.versions),
        looked: before.looked + told.looked,
        next: told.next >= first ? told.next : null,
        busy: false,
        error: null,
      });
    } catch (error) {
      if (!aborted(error)) setState((old) => ({ ...old, busy: false, error }));
    }
  };
  // a range around the moment that is shown: some of what came later, and what was before
  useEffect(() => {
    const later = Math.floor(Math.min(MOST_MOMENTS / 2, MOST_CHARACTERS / 4 / Math.max(1, choice.size)));
    look(Math.min(last, number + later), { found: [], looked: 0, next: null });
    return () => stop.current?.abort();
  }, [choice, by]);

  const box = useRef(null);
  useEffect(() => box.current.scrollIntoView({ block: "nearest" }), []); // on a phone it is below what was touched

  const shown = state.found.slice(0, MOST_ROWS);
  return html`<section class="panel" ref=${box} aria-labelledby="versions-title">
    <div class="panel-head">
      <h2 id="versions-title">Versions of a value</h2>
      <button type="button" class="button button-plain panel-end" aria-label="Close the versions" onClick=${close}>
        ✕
      </button>
    </div>
    <p><code class="versions-path">${inline(pathText(choice.steps))}</code></p>
    ${
      choice.keys.length > 0 &&
      html`<label class="field versions-by">
        <span>Follow it by</span>
        <select value=${String(by)} onChange=${(event) => setBy(Number(event.target.value))}>
          ${choice.keys.map((each, index) =>
            html`<option key=${index} value=${String(index)}>${inline(each.name)} = ${shortened(inline(each.value), 40)}</option>`)}
          <option value="-1">its position</option>
        </select>
      </label>`
    }
    <p class="quiet" role="status">
      ${plural(state.found.filter((each) => each.value !== null).length, "version")} in${" "}
      ${plural(state.looked, "moment")}${state.busy ? ", looking…" : ""}
    </p>
    <${ErrorNotice} error=${state.error} />
    <ol class="plain-list versions">
      ${shown.map(
        (each) =>
          html`<li
            key=${each.to}
            class=${number >= each.from && number <= each.to ? "version-now" : ""}
            aria-current=${number >= each.from && number <= each.to ? "true" : undefined}
          >
            <button type="button" class="version" onClick=${() => go(each.from)}>
              <span class="version-when quiet"
                >${each.from === each.to ? count(each.from) : `${count(each.from)} to ${count(each.to)}`}<span
                  class="version-at"
                  >since ${inline(each.at)}</span
                ></span
              >
              <${Value} value=${each.value} />
            </button>
          </li>`,
      )}
    </ol>
    ${state.found.length > MOST_ROWS && html`<p class="quiet">The newest ${count(MOST_ROWS)} are shown.</p>`}
    ${!state.busy && state.next !== null &&
      html`<p><button type="button" class="button" onClick=${() => look(state.next, state)}>Look further back</button></p>`}
  </section>`;
}

function Value({ value }) {
  if (!value) return html`<em class="quiet">${value === null ? "not there" : "empty"}</em>`;
  return html`<code>${shortened(inline(value), 200)}</code>`;
}

/** Two lists of versions one after the other; where they meet with the same value, that is one version. */
function joined(newer, older) {
  const last = newer.at(-1);
  if (!last || !older.length || last.value !== older[0].value) return [...newer, ...older];
  return [...newer.slice(0, -1), { ...older[0], to: last.to }, ...older.slice(1)];
}
