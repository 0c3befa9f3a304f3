// One subscription: its query, its answers as they come, its plan, what it shares and with whom, its errors.
//
// <${OneSubscription} name=${name} />
import { html, useState } from "../../html.js";
import { at, remove } from "../../api.js";
import { useFetched } from "../../live.js";
import { go, link } from "../../router.js";
import { may, refresh } from "../../site.js";
import { Badge, StateBadge } from "../../components/badge.js";
import { Code } from "../../components/code.js";
import { Confirm } from "../../components/dialog.js";
import { Letters } from "../../components/letters.js";
import { ErrorNotice, Notice } from "../../components/notice.js";
import { Empty, Loading } from "../../components/empty.js";
import { count, inline, moment, visible } from "../../text.js";
import { Answers } from "./answers.js";

const SHARED = { pass: "one pass", shape: "one shape", branch: "one state", twin: "the same query" };

export function Shares({ shares }) {
  if (shares.length === 0) return html`<p class="quiet">Nothing is shared with others.</p>`;
  return html`<ul class="shares">
    ${shares.map(
      (one, index) => html`<li key=${index}>
        <p><${Badge} tone="accent">${SHARED[one.what] ?? inline(one.what)}<//> <span>${visible(one.message)}</span></p>
        ${one.names.length > 0 &&
        html`<p class="small quiet">
          with ${one.names.slice(0, 8).map((name, place) => html`${place ? ", " : ""}<a key=${name} href=${link("subscriptions", [name])}>${inline(name)}</a>`)}
          ${one.count > Math.min(8, one.names.length) ? ` and ${count(one.count - Math.min(8, one.names.length))} more` : ""}
        </p>`}
      </li>`,
    )}
  </ul>`;
}

function Display({ name }) {
  const { data, error } = useFetched(`${at("subscriptions", name)}/display`, {}, { every: 2000 });
  return html`<section class="panel" aria-labelledby="display-head">
    <div class="panel-head">
      <h2 id="display-head">On display</h2>
      ${data && data.at !== null && html`<span class="quiet small">at ${inline(data.at)}</span>`}
      <a class="panel-end" href=${link("past", [name])}>its past</a>
    </div>
    ${error && html`<${ErrorNotice} error=${error} />`}
    ${data && html`<pre class="code display-text" tabindex="0" role="region" aria-label="What is displayed">${visible(data.text) || " "}</pre>`}
  </section>`;
}

function Facts({ one }) {
  return html`<dl class="facts">
    <dt>Kind</dt><dd>${inline(one.kind)}</dd>
    <dt>Reads</dt><dd>${one.streams.map((stream, index) => html`${index ? ", " : ""}<a key=${stream} href=${link("evolution", [stream])}>${inline(stream)}</a>`)}</dd>
    <dt>Since</dt><dd>${one.first_epoch === null ? "begins with the next epoch" : `epoch ${count(one.first_epoch)}`}${one.registered ? `, registered ${moment(one.registered)}` : ""}</dd>
    <dt>Answers</dt><dd>${count(one.answers)} since the service has started</dd>
    <dt>Sink</dt><dd>${one.sink ? inline(one.sink) : "none: the answer log only"}</dd>
    <dt>Policy</dt><dd>${inline(one.policy)}</dd>
    <dt>In columns</dt><dd>${visible(one.columns)}</dd>
  </dl>`;
}

function Query({ one }) {
  const [printed, setPrinted] = useState(false);
  const differs = one.printed && one.printed.trim() !== one.query.trim();
  return html`<section class="panel" aria-labelledby="query-head">
    <div class="panel-head">
      <h2 id="query-head">Query</h2>
      <${Badge}>${one.language === "sql" ? "SQL" : "XQuery"}<//>
      ${differs &&
      html`<div class="choice panel-end" role="group" aria-label="Which text">
        <button type="button" aria-pressed=${printed ? "false" : "true"} onClick=${() => setPrinted(false)}>as written</button>
        <button type="button" aria-pressed=${printed ? "true" : "false"} onClick=${() => setPrinted(true)}>as understood</button>
      </div>`}
    </div>
    <${Code} text=${printed ? one.printed : one.query} language=${printed ? "xquery" : one.language} />
    <${Facts} one=${one} />
  </section>`;
}

export function OneSubscription({ name }) {
  const path = at("subscriptions", name);
  const { data: one, error, again } = useFetched(path, {}, { every: 5000 });
  const [asking, setAsking] = useState(false);
  const [letters, setLetters] = useState(false);

  const cancel = async () => {
    await remove(path);
    setAsking(false);
    refresh();
    go("subscriptions");
  };
  const head = html`<p class="crumbs"><a href=${link("subscriptions")}>Subscriptions</a></p>`;
  if (!one) {
    return html`${head}<div class="head"><h1 tabindex="-1">${inline(name)}</h1></div>
      ${error ? (error.status === 404 ? html`<${Empty} title="There is no subscription of this name">It may have been cancelled.<//>` : html`<${ErrorNotice} error=${error} again=${again} />`) : html`<${Loading} />`}`;
  }
  const ours = one.origin === "service";
  return html`${head}
    <div class="head">
      <h1 tabindex="-1">${inline(name)}</h1>
      <${StateBadge} state=${one.state} />
      <span class="head-end">
        ${ours && may("subscribe") && html`<a class="button" href=${link("new", [], { edit: name })}>Change</a>
          <button type="button" class="button button-danger" onClick=${() => setAsking(true)}>Cancel it</button>`}
        ${!ours && html`<span class="quiet small">of SITE.toml, and read-only here</span> <a class="button" href=${link("new", [], { like: name })}>Write one like it</a>`}
      </span>
    </div>
    <div class="stack">
      ${error && html`<${ErrorNotice} error=${error} again=${again} />`}
      ${one.error && html`<${Notice} kind="error" title=${one.state === "refused" ? "It is refused" : "It has ended"}><p>${visible(one.error)}</p><//>`}
      ${(one.warnings ?? []).map((warning, index) => html`<${Notice} key=${index} kind="warning">${visible(warning)}<//>`)}
      <div class="one">
        <div class="stack">
          <${Query} one=${one} />
          <section class="panel" aria-labelledby="shares-head"><h2 id="shares-head">Shared</h2><${Shares} shares=${one.shares ?? []} /></section>
          <section class="panel" aria-labelledby="plan-head">
            <h2 id="plan-head">Plan</h2>
            <pre class="code" tabindex="0" role="region" aria-label="Plan">${visible(one.plan)}</pre>
          </section>
        </div>
        <div class="stack">
          ${one.answer === "display" && html`<${Display} name=${name} />`}
          <${Answers} name=${name} />
          <section class="panel" aria-labelledby="errors-head">
            <div class="panel-head">
              <h2 id="errors-head">Set aside for it</h2>
              <button type="button" class="link-button panel-end" aria-expanded=${letters ? "true" : "false"} onClick=${() => setLetters(!letters)}>${letters ? "hide" : "look for dead letters"}</button>
            </div>
            ${letters
              ? html`<${Letters} path="/dead-letters" query=${{ subscription: name }} empty="None was found." />`
              : html`<p class="quiet">Items whose evaluation failed, with their raw text and the reason.</p>`}
          </section>
        </div>
      </div>
    </div>
    <${Confirm} open=${asking} title=${`Cancel ${inline(name)}?`} verb="Cancel the subscription" danger onConfirm=${cancel} onClose=${() => setAsking(false)}>
      <p>It gets no more answers from the next epoch on. Its answer so far stays in the log.</p>
    <//>`;
}
