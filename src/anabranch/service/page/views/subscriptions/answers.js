// The live answers of a subscription: followed, paused, read back and forth (views/subscriptions/tail.js).
//
// <${Answers} name=${name} />
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../html.js";
import { Badge } from "../../components/badge.js";
import { ErrorNotice, Notice } from "../../components/notice.js";
import { count, inline, shortened, visible } from "../../text.js";
import { tailOf } from "./tail.js";

const LONG = 1500;
const STATES = {
  open: ["good", "live"],
  connecting: ["quiet", "connecting"],
  waiting: ["warn", "trying again"],
  resting: ["quiet", "resting"],
  ended: ["warn", "ended"],
};

function Answer({ entry }) {
  const [whole, setWhole] = useState(false);
  const long = entry.text.length > LONG;
  return html`<li class="answer">
    <span class="answer-position quiet" title="its position: the epoch, and the number within it">${inline(entry.position)}</span>
    <pre>${visible(whole || !long ? entry.text : shortened(entry.text, LONG))}</pre>
    ${long && html`<button type="button" class="link-button small" onClick=${() => setWhole(!whole)}>${whole ? "less" : `all ${count(entry.text.length)} characters`}</button>`}
  </li>`;
}

// Numbers that change quickly are said to screen readers once they rest.
function Said({ text }) {
  const [spoken, setSpoken] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSpoken(text), 1500);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<p class="unseen" role="status">${spoken}</p>`;
}

export function Answers({ name }) {
  const [, setTurn] = useState(0);
  const held = useRef(null);
  const box = useRef(null);
  const below = useRef(true); // whether the box is scrolled to its end
  useEffect(() => {
    held.current = tailOf(name, () => setTurn((turn) => turn + 1));
    setTurn((turn) => turn + 1);
    return () => held.current.close();
  }, [name]);
  const tail = held.current;
  const newest = tail?.entries[tail.entries.length - 1]?.position;
  useLayoutEffect(() => {
    if (box.current && tail?.mode === "following" && below.current) box.current.scrollTop = box.current.scrollHeight;
  }, [newest, tail?.mode]);
  if (!tail) return null;

  const paused = tail.mode === "paused";
  const [tone, word] = paused ? ["accent", "paused"] : STATES[tail.state];
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    below.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  const resume = () => {
    below.current = true;
    tail.resume();
  };
  const jump = () => {
    below.current = true;
    tail.newest();
  };
  return html`<section class="panel answers" aria-labelledby="answers-head">
    <div class="panel-head">
      <h2 id="answers-head">Answers</h2>
      <${Badge} tone=${tone}>${word}<//>
      ${paused && html`<span class="answers-skipped small">${count(tail.skipped)} skipped</span>`}
      ${!paused && tail.unseen > 0 && html`<span class="quiet small">${count(tail.unseen)} skipped: too fast to show</span>`}
      <${Said} text=${paused ? `paused, ${count(tail.skipped)} skipped` : word} />
      <span class="panel-end answers-buttons">
        ${paused && tail.skipped > 0 && html`<button type="button" class="button" onClick=${jump}>Jump to the newest</button>`}
        ${paused
          ? html`<button type="button" class="button button-main" onClick=${resume}>Resume</button>`
          : html`<button type="button" class="button" onClick=${tail.pause}>Pause</button>`}
      </span>
    </div>
    ${tail.error && html`<${ErrorNotice} error=${tail.error} />`}
    ${tail.reason !== null && html`<${Notice} kind="warning">It has ended: ${inline(tail.reason)}<//>`}
    ${tail.entries.length === 0
      ? html`<p class="quiet answers-none">No answer yet. The first comes with the epoch that finds one.</p>`
      : html`<div class="answers-box" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${`Answers of ${inline(name)}`}>
          ${tail.older && html`<p class="answers-more"><button type="button" class="link-button" onClick=${tail.back}>earlier answers</button></p>`}
          ${!tail.older && tail.opening && html`<pre class="answers-frame quiet">${visible(tail.opening)}</pre>`}
          <ol class="answers-list">
            ${tail.entries.map((entry) => html`<${Answer} key=${entry.position} entry=${entry} />`)}
          </ol>
          ${paused && tail.skipped > 0 && html`<p class="answers-more"><button type="button" class="link-button" onClick=${tail.forth}>next page of ${count(tail.skipped)} skipped</button></p>`}
        </div>`}
  </section>`;
}
