// Before a query is registered: its answer over the newest items, and what it would share and cost.
//
// <${Tries} query=${text} language=${language} ready=${checked and ok} />
import { html, useState } from "../../html.js";
import { post } from "../../api.js";
import { ErrorNotice, Notice } from "../../components/notice.js";
import { count, inline, ms, plural, visible, shortened } from "../../text.js";
import { Shares } from "../subscriptions/one.js";

const ITEMS = 200;
const MOST = 100;

function useTry(ask) {
  const [state, setState] = useState({ data: null, error: null, busy: false, text: "" });
  const run = async (query, language) => {
    setState((old) => ({ ...old, busy: true, error: null }));
    try {
      const data = await ask({ query, ...(language ? { language } : {}) });
      setState({ data, error: null, busy: false, text: query });
    } catch (error) {
      setState({ data: null, error, busy: false, text: query });
    }
  };
  return [state, run];
}

function Stale({ of, query }) {
  return (of.data || of.error) && of.text !== query ? html`<span class="quiet small">of an earlier text</span>` : null;
}

function Preview({ data }) {
  const read = Object.entries(data.items ?? {}).map(([stream, n]) => `${plural(n, "item")} of ${inline(stream)}`);
  const aside = data.dead_letters ?? [];
  return html`<p class="quiet small">${plural(data.answers.length, "answer")}${data.more ? " and more" : ""} over the newest ${read.join(", ") || "items"}, in ${ms(data.ms)}</p>
    ${(data.notes ?? []).map((note, index) => html`<p key=${index} class="quiet small">${visible(note)}</p>`)}
    ${aside.length > 0 && html`<${Notice} kind="warning">${plural(aside.length, "item was", "items were")} set aside: ${inline(aside[0].reason ?? JSON.stringify(aside[0]))}<//>`}
    ${data.answers.length === 0
      ? html`<p>It answers nothing over these items.</p>`
      : html`<ol class="answers-list tried" tabindex="0" aria-label="Preview">${data.answers.slice(0, MOST).map((text, index) => html`<li class="answer" key=${index}><span class="answer-position quiet">${count(index + 1)}</span><pre>${visible(shortened(text, 1500))}</pre></li>`)}</ol>`}`;
}

function Explained({ data }) {
  return html`<dl class="facts">
      <dt>Pass</dt><dd>${visible(data.cost?.pass)}</dd>
      <dt>For each item</dt><dd>${visible(data.cost?.per_item)}</dd>
      <dt>Remembers</dt><dd>${visible(data.cost?.state)}</dd>
      <dt>In columns</dt><dd>${visible(data.columns)}</dd>
    </dl>
    ${(data.warnings ?? []).map((warning, index) => html`<${Notice} key=${index} kind="warning">${visible(warning)}<//>`)}
    <h3>It would share</h3>
    <${Shares} shares=${data.shares ?? []} />
    <details><summary>All that explain says</summary><pre class="code" tabindex="0" role="region" aria-label="Explanation">${visible(data.text)}</pre></details>`;
}

export function Tries({ query, language, ready }) {
  const [preview, runPreview] = useTry((body) => post("/preview", { ...body, items: ITEMS }));
  const [explained, runExplain] = useTry((body) => post("/explain", body));
  return html`<section class="panel" aria-labelledby="preview-head">
      <div class="panel-head">
        <h2 id="preview-head">Preview</h2><${Stale} of=${preview} query=${query} />
        <button type="button" class="button panel-end" disabled=${!ready || preview.busy} onClick=${() => runPreview(query, language)}>${preview.busy ? "Running…" : "Try it on the newest items"}</button>
      </div>
      <div aria-live="polite" aria-busy=${preview.busy ? "true" : undefined}>
        <${ErrorNotice} error=${preview.error} />
        ${preview.data ? html`<${Preview} data=${preview.data} />` : !preview.error && html`<p class="quiet">What it would answer, without registering it.</p>`}
      </div>
    </section>
    <section class="panel" aria-labelledby="explain-head">
      <div class="panel-head">
        <h2 id="explain-head">What it would cost</h2><${Stale} of=${explained} query=${query} />
        <button type="button" class="button panel-end" disabled=${!ready || explained.busy} onClick=${() => runExplain(query, language)}>${explained.busy ? "Asking…" : "Explain"}</button>
      </div>
      <div aria-live="polite" aria-busy=${explained.busy ? "true" : undefined}>
        <${ErrorNotice} error=${explained.error} />
        ${explained.data ? html`<${Explained} data=${explained.data} />` : !explained.error && html`<p class="quiet">What it would share with the subscriptions that run, and what it would add.</p>`}
      </div>
    </section>`;
}
