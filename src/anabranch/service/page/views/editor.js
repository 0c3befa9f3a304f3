// The editor of a subscription: a new one, one like another, or another query for one that is there.
//
// #/new    #/new?like=NAME    #/new?edit=NAME    #/new?query=TEXT
//
// The text is checked while it is typed, and errors are underlined at their place; streams and paths are completed from
// what the newest items hold; it can be tried and explained before it is registered; and it can be spelled otherwise.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { at, get, post, put } from "../api.js";
import { useFetched } from "../live.js";
import { go, link } from "../router.js";
import { may, refresh } from "../site.js";
import { Badge } from "../components/badge.js";
import { Editor } from "../components/editor.js";
import { ErrorNotice, Notice } from "../components/notice.js";
import { Empty, Loading } from "../components/empty.js";
import { inline, visible } from "../text.js";
import { completion } from "./editor/completion.js";
import { useCheck } from "./editor/checking.js";
import { Tries } from "./editor/tries.js";

export const title = (params) => (params.query.edit ? `Change ${inline(params.query.edit)}` : "New subscription");

const SPELLINGS = { xquery: "XQuery", dots: "dots", sql: "SQL" };
const POLICIES = { "": "as the site", accumulate: "accumulate", abort: "abort", absorb: "absorb" };

// A text to begin with, for the first stream that there is.
function example(streams) {
  const stream = streams.find((one) => !one.updates) ?? streams[0];
  if (!stream) return "";
  const path = [stream.root, stream.item].filter(Boolean).join("/");
  return `for $i in stream("${stream.name}")/${path}\nreturn $i\n`;
}

function Switch({ spelling, busy, onChoose }) {
  return html`<div class="choice" role="group" aria-label="Spelling">
    ${Object.entries(SPELLINGS).map(
      ([key, label]) => html`<button key=${key} type="button" disabled=${busy} aria-pressed=${key === spelling ? "true" : "false"} onClick=${() => onChoose(key)}>${label}</button>`,
    )}
  </div>`;
}

function Verdict({ query, check, onPlace }) {
  const { checked, checking, failure } = check;
  if (failure) return html`<${ErrorNotice} error=${failure} />`;
  if (query.trim() === "") return html`<p class="quiet">Write a query; it is checked as you type.</p>`;
  if (!checked) return html`<p class="quiet">Checking…</p>`;
  if (!checked.ok) {
    return html`<ul class=${`verdict-errors${checking ? " stale" : ""}`}>
      ${checked.errors.map(
        (error, index) => html`<li key=${index}>
          <p>
            ${error.line ? html`<button type="button" class="link-button" onClick=${() => onPlace(error)}>line ${error.line}, column ${error.column}</button>: ` : ""}${visible(error.message)}
            ${error.code ? html` <span class="quiet small">${inline(error.code)}</span>` : ""}
          </p>
          ${error.hint && html`<p class="quiet small">${visible(error.hint)}</p>`}
        </li>`,
      )}
    </ul>`;
  }
  return html`<p class=${checking ? "stale" : ""}>
      <${Badge} tone="good">it can be answered<//> <span>${inline(checked.kind)}, answers in ${inline(checked.answer)}, reads ${checked.streams.map(inline).join(", ") || "no stream"}</span>
    </p>
    ${(checked.warnings ?? []).map((warning, index) => html`<${Notice} key=${index} kind="warning">${visible(warning)}<//>`)}`;
}

// What the newest items of some streams hold, by stream; asked for once for each.
function useLearned(names) {
  const [learned, setLearned] = useState({});
  const key = JSON.stringify(names);
  useEffect(() => {
    const stop = new AbortController();
    for (const name of names) {
      if (Object.hasOwn(learned, name)) continue;
      get(at("streams", name), { signal: stop.signal })
        .then((stream) => setLearned((old) => ({ ...old, [name]: stream.learned ?? [] })))
        .catch(() => {}); // then its paths are not completed
    }
    return () => stop.abort();
  }, [key]);
  return learned;
}

function Form({ start, edit }) {
  const [query, setQuery] = useState(start.query);
  const newest = useRef(start.query); // also while what was typed last is not drawn yet
  const [given, setGiven] = useState({ text: start.query, turn: 0 });
  const [name, setName] = useState(start.name);
  const [language, setLanguage] = useState(start.language);
  const [dots, setDots] = useState(false);
  const [policy, setPolicy] = useState(start.policy ?? "");
  const [from, setFrom] = useState("");
  const [file, setFile] = useState("");
  const [place, setPlace] = useState(null);
  const [spelled, setSpelled] = useState({ busy: false, error: null, note: null });
  const [sent, setSent] = useState({ busy: false, error: null });

  const check = useCheck(query, language);
  const ok = Boolean(check.checked?.ok) && !check.checking;
  const read = useMemo(() => {
    // streams that the text names, also while it is not a query yet
    const quoted = [...query.matchAll(/stream\s*\(\s*["']([^"']+)["']/g)].map((found) => found[1]);
    const known = start.streams.map((stream) => stream.name);
    const words = language === "sql" ? known.filter((one) => query.includes(one)) : quoted;
    return [...new Set([...words, ...(check.checked?.streams ?? [])])].filter((one) => known.includes(one)).slice(0, 8);
  }, [query, language, check.checked]);
  const learned = useLearned(read);
  const hint = useMemo(() => completion(start.streams, learned), [learned]);
  const spelling = language === "sql" ? "sql" : dots ? "dots" : "xquery";

  const respell = async (to) => {
    if (to === spelling) return;
    const turn = (text) => {
      setLanguage(to === "sql" ? "sql" : "xquery");
      setDots(to === "dots");
      if (text === null) return;
      newest.current = text;
      setQuery(text);
      setGiven((old) => ({ text, turn: old.turn + 1 }));
    };
    const asked = newest.current;
    if (asked.trim() === "") {
      turn(null);
      return;
    }
    setSpelled({ busy: true, error: null, note: null });
    try {
      const answer = await post("/spelling", { query: asked, language, to });
      if (newest.current !== asked) throw new Error("the text has changed meanwhile");
      turn(answer.query);
      const note = answer.exact === false ? `Written in ${SPELLINGS[to]} it is not quite the same: look at it again.` : null;
      setSpelled({ busy: false, error: null, note });
    } catch (error) {
      setSpelled({ busy: false, error, note: null, to });
    }
  };
  const register = async (event) => {
    event.preventDefault();
    setSent({ busy: true, error: null });
    const body = { query: newest.current, language };
    if (policy) body.policy = policy;
    if (from) body.from = from;
    if (file.trim()) body.sink = { sink: "files", path: file.trim() };
    try {
      if (edit) await put(at("subscriptions", edit), body);
      else await post("/subscriptions", { name: name.trim(), ...body });
      refresh();
      go("subscriptions", [edit ?? name.trim()]);
    } catch (error) {
      setSent({ busy: false, error });
    }
  };
  const typed = (text) => {
    if (text === newest.current) return;
    newest.current = text;
    setQuery(text);
    setSpelled({ busy: false, error: null, note: null });
    setSent({ busy: false, error: null });
  };
  const errors = check.checked && !check.checked.ok && !check.checking ? check.checked.errors : [];
  const showPlace = (error) => setPlace((old) => ({ line: error.line, column: error.column, turn: (old?.turn ?? 0) + 1 }));

  return html`<form class="editing" onSubmit=${register}>
    <div class="stack">
      <section class="panel" aria-labelledby="text-head">
        <div class="panel-head">
          <h2 id="text-head">Query</h2>
          <span class="panel-end"><${Switch} spelling=${spelling} busy=${spelled.busy} onChoose=${respell} /></span>
        </div>
        ${spelled.error && html`<${ErrorNotice} title=${`It cannot be written ${spelled.to === "dots" ? "with dots" : `in ${SPELLINGS[spelled.to]}`}`} error=${spelled.error} />`}
        ${spelled.note && html`<${Notice} kind="warning">${spelled.note}<//>`}
        <${Editor} given=${given} onChange=${typed} language=${language} label="Query" errors=${errors} hint=${hint} place=${place} />
        <div class="verdict" role="status"><${Verdict} query=${query} check=${check} onPlace=${showPlace} /></div>
        <p class="quiet small editor-keys">Ctrl-Space completes streams and paths; Tab leaves the editor.</p>
      </section>
      <section class="panel" aria-labelledby="register-head">
        <h2 id="register-head">${edit ? "Change" : "Register"}</h2>
        <div class="fields">
          ${!edit &&
          html`<label class="field"><span>Name</span>
            <input name="name" required autocomplete="off" spellcheck=${false} value=${name} onInput=${(event) => setName(event.currentTarget.value)} /></label>`}
          <label class="field"><span>Accents it cannot pass on</span>
            <select name="policy" value=${policy} onChange=${(event) => setPolicy(event.currentTarget.value)}>
              ${Object.entries(POLICIES).map(([key, label]) => html`<option key=${key} value=${key}>${label}</option>`)}
            </select></label>
          <label class="field"><span>Answers</span>
            <select name="from" value=${from} onChange=${(event) => setFrom(event.currentTarget.value)}>
              <option value="">from now on</option><option value="beginning">as if from the beginning</option>
            </select></label>
          ${may("administer") &&
          html`<label class="field"><span>File for the answers, if any</span>
            <input name="file" autocomplete="off" spellcheck=${false} placeholder="out/NAME.xml" value=${file} onInput=${(event) => setFile(event.currentTarget.value)} /></label>`}
        </div>
        ${edit && html`<p class="quiet small">Another query begins another answer under the same name.</p>`}
        ${start.sink && html`<${Notice} kind="warning">It has a sink, ${inline(start.sink)}: name it again, or its answers are in the answer log only.<//>`}
        <${ErrorNotice} title=${edit ? "It was not changed" : "It was not registered"} error=${sent.error} />
        <p class="fields-end">
          <button type="submit" class="button button-main" disabled=${!ok || sent.busy || (!edit && name.trim() === "")}>${edit ? "Change it" : "Register"}</button>
          <a class="button" href=${edit ? link("subscriptions", [edit]) : link("subscriptions")}>Leave it</a>
        </p>
      </section>
    </div>
    <div class="stack"><${Tries} query=${query} language=${language} ready=${ok} /></div>
  </form>`;
}

export default function EditorView({ params }) {
  const { edit, like, query } = params.query;
  const streams = useFetched("/streams");
  const model = useFetched(edit || like ? at("subscriptions", edit ?? like) : null);
  const head = html`<p class="crumbs"><a href=${link("subscriptions")}>Subscriptions</a></p>
    <div class="head"><h1 tabindex="-1">${title(params)}</h1></div>`;
  const error = streams.error ?? model.error;
  if (error) return html`${head}<${ErrorNotice} error=${error} />`;
  if (!streams.data || ((edit || like) && !model.data)) return html`${head}<${Loading} />`;
  if (!may("subscribe")) return html`${head}<${Empty} title="Your token may look, not subscribe" />`;
  const found = streams.data.streams;
  const start = {
    streams: found,
    query: model.data?.query ?? query ?? example(found),
    language: model.data?.language ?? "xquery",
    policy: edit ? model.data?.policy : "",
    sink: edit ? model.data?.sink : null,
    name: "",
  };
  return html`${head}<${Form} key=${JSON.stringify([edit, like, query])} start=${start} edit=${edit ?? null} />`;
}
