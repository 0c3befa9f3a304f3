// 'Why is it late?': what is behind, worst first, each with its numbers and with what one can do about it.
//
// <${Late} late=${now.late} />
import { html, useEffect, useState } from "../../html.js";
import { Badge } from "../../components/badge.js";
import { bytes, byteRate, count, inline, ms, plural, rate, seconds } from "../../text.js";
import { link } from "../../router.js";

const MOST = 20;

// The name of a number tells its unit.
export function numbered(name, value) {
  if (typeof value !== "number") return inline(value);
  if (/bytes_per_second/.test(name)) return byteRate(value);
  if (/per_second/.test(name)) return rate(value);
  if (/bytes/.test(name)) return bytes(value);
  if (/(^|_)ms$/.test(name)) return ms(value);
  if (/seconds/.test(name)) return seconds(value);
  return count(value);
}

function Where({ one }) {
  if (one.what === "branch") return html`<a href=${link("subscriptions", [one.name])}>${inline(one.name)}</a>`;
  return html`<strong>${inline(one.name)}</strong>`;
}

export function Late({ late }) {
  const said = late.length === 0 ? "Nothing is late." : `${plural(late.length, "thing is", "things are")} late.`;
  const [spoken, setSpoken] = useState(said);
  useEffect(() => {
    // said to screen readers once it has stayed so, not with every epoch
    const timer = setTimeout(() => setSpoken(said), 3000);
    return () => clearTimeout(timer);
  }, [said]);
  return html`<section class="panel late" aria-labelledby="late-head">
    <div class="panel-head">
      <h2 id="late-head">Why is it late?</h2>
      <p class="unseen" role="status">${spoken}</p>
    </div>
    ${late.length === 0
      ? html`<p class="late-none"><${Badge} tone="good">on time<//> Nothing waits: every stream is read to its end, and every sink has what was answered.</p>`
      : html`<ol class="late-list">
          ${late.slice(0, MOST).map(
            (one, index) => html`<li key=${`${one.what} ${one.name} ${index}`}>
              <p class="late-line"><${Badge} tone="warn">${inline(one.what)}<//> <${Where} one=${one} /> <span>${inline(one.message)}</span></p>
              <dl class="late-numbers">
                ${Object.entries(one.numbers ?? {}).map(
                  ([name, value]) => html`<div key=${name}><dt>${inline(name).replaceAll("_", " ")}</dt><dd>${numbered(name, value)}</dd></div>`,
                )}
              </dl>
              ${one.hint && html`<p class="quiet small">${inline(one.hint)}</p>`}
            </li>`,
          )}
        </ol>
        ${late.length > MOST && html`<p class="quiet small">and ${count(late.length - MOST)} more</p>`}`}
  </section>`;
}
