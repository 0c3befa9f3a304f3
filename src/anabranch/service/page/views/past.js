// The view Past: a display, moment by moment: what it showed, what had changed, and the versions of a value.
//
// Moments and displays are fetched as one looks at them and kept within bounds (parts/past-moments.js); of a display
// only the lines on the screen are in the page (parts/past-screen.js). So a display of a megabyte with a hundred
// thousand moments is as light as a small one.
// The slider is the browser's own: arrows, page keys, Home and End work, and screen readers are told the moment in words.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { aborted, at } from "../api.js";
import { useDebounced, useFetched } from "../live.js";
import { go, link, replace } from "../router.js";
import { count, inline, plural } from "../text.js";
import { Empty, Loading } from "../components/empty.js";
import { ErrorNotice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { keysOf, pathText, stepsTo } from "./parts/past-document.js";
import { markedLines } from "./parts/past-lines.js";
import { Past as Kept } from "./parts/past-moments.js";
import { Screen } from "./parts/past-screen.js";
import { Versions } from "./parts/past-versions.js";

export const title = (params) => (params.name ? `Past of ${params.name}` : "Past");
const EVERY = 3000;
const LISTED = 100;
const AROUND = 30; // moments left and right of the one that is shown, in the strip
const SPEEDS = [1, 4, 16];
const CONTEXT = 2; // lines around a change, where only changes are shown

export default function PastView({ params }) {
  const [search, setSearch] = useState("");
  const wanted = useDebounced(search, 200);
  const { data, error, again } = useFetched("/subscriptions", { kind: "display", search: wanted, limit: LISTED });
  const displays = data ? data.subscriptions.filter((each) => each.answer === "display") : null;
  const name = params.name ?? displays?.[0]?.name ?? null;
  return html`<div class="head">
      <h1 tabindex="-1">Past</h1>
      ${
        displays &&
        (displays.length > 0 || name) &&
        html`<label class="pick"
          ><span class="unseen">Display</span>
          <select value=${name} onChange=${(event) => go("past", [event.target.value])}>
            ${name && !displays.some((each) => each.name === name) &&
              html`<option value=${name}>${inline(name)}</option>`}
            ${displays.map((each) => html`<option key=${each.name} value=${each.name}>${inline(each.name)}</option>`)}
          </select>
        </label>`
      }
      ${(search || data?.next) &&
        html`<input type="search" placeholder="Search displays" aria-label="Search displays" value=${search} onInput=${(event) => setSearch(event.target.value)} />`}
      ${name && html`<a class="head-end small" href=${link("subscriptions", [name])}>its subscription</a>`}
    </div>
    <${ErrorNotice} error=${error} again=${again} />
    ${!displays && !error && html`<${Loading} what="displays" />`}
    ${
      displays &&
      !name &&
      html`<${Empty} title="No subscription has a display">
        <p>
          A display is an answer that is corrected: of a query over a stream of updates, or about the past of items, as${" "}
          <code>stream("tickers")//quote#1</code>. <a href=${link("new")}>Register one</a>, and its moments are kept.
        </p>
      <//>`
    }
    ${name && html`<${Display} key=${name} name=${name} asked=${params.query.moment ?? null} />`}`;
}

function Display({ name, asked }) {
  const { data, error, again } = useFetched(`${at("subscriptions", name)}/moments`, { limit: 1 }, { every: EVERY });
  const known = useRef({ total: 0, kept: new Kept(name) });
  // a subscription whose query was changed begins another display
  if (data && data.total < known.current.total) known.current.kept = new Kept(name);
  if (data) known.current.total = data.total;
  if (!data)
    return error
      ? html`<${Present} name=${name} error=${error} again=${again} />`
      : html`<${Loading} what="moments" />`;
  if (data.total === 0) {
    return html`<${Empty} title="It has shown nothing yet">
      <p>A moment appears here each time that the answer of <em>${inline(name)}</em> changes.</p>
    <//>`;
  }
  const first = data.moments[0].number; // older ones are counted, but no longer kept
  return html`<${ErrorNotice} error=${error} again=${again} />
    <${Moments}
      name=${name}
      kept=${known.current.kept}
      first=${first}
      last=${Math.max(first, data.total - 1)}
      asked=${asked}
    />`;
}

/** Where the past is no longer kept, what the display shows now, with the reason. */
function Present({ name, error, again }) {
  const { data } = useFetched(error.status === 404 ? `${at("subscriptions", name)}/display` : null);
  return html`<div class="stack">
    <${ErrorNotice} error=${error} again=${again} />
    ${data &&
      html`<${Shown} seen=${{ display: { text: data.text, changes: null } }} late=${false} choice=${null} setChoice=${null} />`}
  </div>`;
}

function Moments({ name, kept, first, last, asked }) {
  const begin = asked === null || !/^\d+$/.test(asked) ? null : Number(asked);
  const [chosen, setChosen] = useState(begin); // null follows the newest
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [seen, setSeen] = useState(null); // {number, moment, display}
  const [error, setError] = useState(null);
  const [choice, setChoice] = useState(null);
  const [turn, setTurn] = useState(0);
  const number = chosen === null ? last : Math.max(first, Math.min(last, chosen));

  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      try {
        const [moment, display] = await Promise.all([
          kept.moment(number, stop.signal),
          kept.shown(number, stop.signal),
        ]);
        if (stop.signal.aborted) return;
        setSeen({ number, moment, display });
        setError(null);
      } catch (failure) {
        if (!aborted(failure) && !stop.signal.aborted) {
          setError(failure);
          setPlaying(false);
        }
      }
    };
    // while the slider is dragged only where it rests for a moment is fetched
    const timer = setTimeout(load, kept.has(number) ? 0 : 40);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [kept, number, turn]);

  useEffect(() => {
    if (!playing || seen?.number !== number) return undefined;
    if (number >= last) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => setChosen(number + 1), 1000 / speed);
    return () => clearTimeout(timer);
  }, [playing, seen, number, speed]);

  const rested = useDebounced(chosen, 500);
  useEffect(() => {
    if (rested !== begin) replace("past", [name], { moment: rested });
  }, [rested]);

  const to = (next) => {
    setPlaying(false);
    setChosen(next);
  };
  const play = () => {
    if (!playing && number >= last) setChosen(first);
    setPlaying(!playing);
  };
  const follow = () => {
    setPlaying(false);
    setChosen(null);
  };
  const moment = kept.known(number) ?? seen?.moment;
  const words = moment
    ? `moment ${count(number)}, at ${inline(moment.at)}, epoch ${count(moment.epoch)}`
    : `moment ${count(number)}`;
  return html`<div class="stack">
    <section class="panel" aria-label="Time">
      <${Strip} kept=${kept} number=${number} first=${first} last=${last} seen=${seen} to=${to} />
      <div class="past-time">
        <button type="button" class="button past-play" aria-label=${playing ? "Pause" : "Play"} onClick=${play}>
          <span class=${playing ? "icon-pause" : "icon-play"} aria-hidden="true"></span>${playing ? "Pause" : "Play"}
        </button>
        <input
          type="range"
          class="past-slider"
          min=${first}
          max=${last}
          step="1"
          value=${number}
          aria-label="Moment"
          aria-valuetext=${words}
          onInput=${(event) => to(Number(event.target.value))}
        />
        <label class="check"
          >speed
          <select value=${String(speed)} onChange=${(event) => setSpeed(Number(event.target.value))}>
            ${SPEEDS.map((each) => html`<option key=${each} value=${String(each)}>${each}/s</option>`)}
          </select>
        </label>
        <button type="button" class="button" aria-pressed=${chosen === null ? "true" : "false"} onClick=${follow}>
          Newest
        </button>
      </div>
      <p class="past-words">
        <strong>${words}</strong>
        <span class="quiet">
          of ${count(first)} to${" "}
          ${count(last)}${moment ? `, ${plural(moment.edits, "edit")}` : ""}${chosen === null ? "; follows what comes" : ""}</span
        >
      </p>
    </section>
    <${ErrorNotice} error=${error} again=${() => setTurn((old) => old + 1)} />
    <div class=${`past-both ${choice ? "past-three" : ""}`}>
      ${seen
          ? html`<${Shown} seen=${seen} late=${seen.number !== number} choice=${choice} setChoice=${setChoice} />` : !error &&
        html`<${Loading} what="the display" />`}
      ${
        choice &&
        html`<${Versions}
          key=${choice.id}
          kept=${kept}
          first=${first}
          last=${last}
          choice=${choice}
          number=${number}
          go=${to}
          close=${() => setChoice(null)}
        />`
      }
      <${Nearby} kept=${kept} number=${number} first=${first} last=${last} seen=${seen} to=${to} />
    </div>
  </div>`;
}

/** How much each moment around this one has changed, as bars; the slider and the table say the same. */
function Strip({ kept, number, first, last, seen, to }) {
  const from = Math.max(first, Math.min(number - AROUND, last - 2 * AROUND));
  const until = Math.min(last, from + 2 * AROUND);
  const bars = useMemo(() => {
    const found = [];
    for (let each = from; each <= until; each++) found.push({ number: each, edits: kept.known(each)?.edits ?? 0 });
    return found;
  }, [from, until, seen]);
  const most = Math.max(1, ...bars.map((each) => each.edits));
  return html`<div
    class="strip"
    aria-hidden="true"
    onClick=${(event) => event.target.dataset.number && to(Number(event.target.dataset.number))}
  >
    ${bars.map((each) =>
      html`<span key=${each.number} data-number=${each.number} class=${each.number === number ? "bar bar-now" : "bar"} style=${{ "--high": `${10 + 90 * Math.sqrt(each.edits / most)}%` }}></span>`)}
  </div>`;
}

let choices = 0;

function Shown({ seen, late, choice, setChoice }) {
  const { text, changes } = seen.display;
  const [only, setOnly] = useState(false);
  const [jump, setJump] = useState(null);
  const marked = useMemo(() => markedLines(text, changes ?? []), [text, changes]);
  const lines = useMemo(() => (only ? aroundChanges(marked) : marked.lines), [marked, only]);
  const changed = useMemo(() => lines.flatMap((line, index) => (line.mark ? [index] : [])), [lines]);
  const at_ = useRef(-1);
  useEffect(() => {
    at_.current = -1;
  }, [lines]);
  const next = () => {
    const place = changed.find((each) => each > at_.current) ?? changed[0];
    at_.current = place;
    setJump({ line: place });
  };
  const choose = (node) => {
    if (!setChoice) return; // there are no moments to look at
    const steps = stepsTo(node);
    choices += 1;
    setChoice({ id: choices, steps, keys: keysOf(text, marked.roots, node), size: text.length });
  };
  return html`<section
    class=${`panel past-shown ${late ? "past-late" : ""}`}
    aria-labelledby="shown-title"
    aria-busy=${late ? "true" : undefined}
  >
    <div class="panel-head">
      <h2 id="shown-title">${changes ? "What it showed" : "What it shows now"}</h2>
      ${changes && html`<p class="quiet" role="status">${summary(marked, changes)}</p>`}
      ${
        changes &&
        html`<span class="panel-end past-tools">
          <label class="check"
            ><input type="checkbox" checked=${only} onChange=${(event) => setOnly(event.target.checked)} /> only what
            changed</label
          >
          <button type="button" class="button" disabled=${changed.length === 0} onClick=${next}>Next change</button>
        </span>`
      }
    </div>
    ${
      lines.length
        ? html`<${Screen}
            text=${text}
            lines=${lines}
            chosen=${choice ? pathText(choice.steps) : null}
            onChoose=${choose}
            jump=${jump}
          />`
        : html`<p class="quiet past-none">${marked.lines.length ? "Nothing changed." : "It was empty."}</p>`
    }
    ${
      changes &&
      html`<p class="legend quiet">
        <span><ins>inserted</ins></span> <span><del>removed</del></span>
        <span>choose an element to see its versions</span>
      </p>`
    }
  </section>`;
}

/** What has changed, in words. */
function summary(marked, changes) {
  if (marked.more) return `${plural(changes.length, "edit")} against the moment before, too many to mark`;
  const counts = { insert: 0, remove: 0, change: 0 };
  for (const each of marked.changed) counts[marked.lines[each].mark] += 1;
  const told = Object.entries({ insert: "inserted", remove: "removed", change: "changed" }).filter(
    ([mark]) => counts[mark],
  );
  if (!told.length) return "nothing changed against the moment before";
  return `against the moment before: ${told.map(([mark, word]) => `${plural(counts[mark], "line")} ${word}`).join(", ")}`;
}

function aroundChanges(marked) {
  const kept = new Set();
  for (const each of marked.changed) for (let line = each - CONTEXT; line <= each + CONTEXT; line++) kept.add(line);
  const lines = [];
  let before = -1;
  for (const each of [...kept]
    .filter((line) => line >= 0 && line < marked.lines.length)
    .sort((one, other) => one - other)) {
    lines.push(each > before + 1 ? { ...marked.lines[each], gap: true } : marked.lines[each]);
    before = each;
  }
  return lines;
}

function Nearby({ kept, number, first, last, seen, to }) {
  const rows = useMemo(() => {
    const found = [];
    for (let each = Math.min(last, number + 6); each >= Math.max(first, number - 6); each--) {
      const moment = kept.known(each);
      if (moment) found.push(moment);
    }
    return found;
  }, [number, last, seen]);
  return html`<section class="panel past-nearby">
    <h2>Moments around it</h2>
    <${Table}
      caption="Moments around the one that is shown"
      columns=${[
        {
          key: "number",
          label: "Moment",
          numeric: true,
          cell: (row) =>
            html`<button type="button" class="word-button" onClick=${() => to(row.number)}>
              ${count(row.number)}
            </button>`,
        },
        { key: "at", label: "At", cell: (row) => inline(row.at) },
        { key: "epoch", label: "Epoch", numeric: true },
        { key: "edits", label: "Edits", numeric: true },
      ]}
      rows=${rows}
      rowKey=${(row) => row.number}
      selected=${number}
    />
  </section>`;
}
