// What was set aside, with its raw text: dead letters, and items that came too late.
//
// <${Letters} path="/dead-letters" query=${{ subscription }} empty="..." />
// A page of the service that filters may be short: further ones are asked for until something was found, at most PAGES
// of them at a time.
import { html, useEffect, useState } from "../html.js";
import { get, aborted } from "../api.js";
import { count, inline, visible, shortened } from "../text.js";
import { link } from "../router.js";
import { Badge } from "./badge.js";
import { ErrorNotice } from "./notice.js";
import { Loading } from "./empty.js";

const SIZE = 50;
const PAGES = 10;
const RAW = 2000;

async function page(path, query, after, signal) {
  let cursor = after;
  const found = [];
  for (let turn = 0; turn < PAGES; turn += 1) {
    const got = await get(path, { query: { ...query, after: cursor, limit: SIZE - found.length }, signal });
    found.push(...got.letters);
    cursor = got.next;
    if (!got.more || found.length === SIZE) return { letters: found, next: cursor, more: got.more };
  }
  return { letters: found, next: cursor, more: true };
}

function Letter({ letter }) {
  return html`<li class="letter">
    <p>
      ${letter.code && html`<${Badge} tone="warn">${inline(letter.code)}<//> `}${inline(letter.reason)}
    </p>
    <p class="quiet small">
      ${inline(letter.stream)}, partition ${inline(letter.partition)}, at ${inline(letter.offset)}, epoch ${inline(letter.position).split("-")[0]}
      ${letter.subscription && html`, for <a href=${link("subscriptions", [letter.subscription])}>${inline(letter.subscription)}</a>`}
    </p>
    ${letter.raw && html`<pre class="raw">${visible(shortened(letter.raw, RAW))}</pre>`}
  </li>`;
}

export function Letters({ path, query = {}, empty = "Nothing was set aside." }) {
  const [pages, setPages] = useState([null]);
  const [state, setState] = useState({ data: null, error: null });
  const key = JSON.stringify([path, query]);
  const after = pages[pages.length - 1];
  useEffect(() => {
    const stop = new AbortController();
    page(path, query, after, stop.signal)
      .then((data) => setState({ data, error: null }))
      .catch((error) => aborted(error) || setState({ data: null, error }));
    return () => stop.abort();
  }, [key, after]);
  if (state.error) return html`<${ErrorNotice} error=${state.error} />`;
  if (!state.data) return html`<${Loading} />`;
  const { letters, next, more } = state.data;
  return html`${letters.length === 0 ? html`<p class="quiet">${empty}</p>` : html`<ol class="letters">${letters.map((letter, index) => html`<${Letter} key=${`${letter.position} ${index}`} letter=${letter} />`)}</ol>`}
    ${(more || pages.length > 1) &&
    html`<p class="pager-buttons">
      <button type="button" class="button" disabled=${pages.length === 1} onClick=${() => setPages(pages.slice(0, -1))}>Earlier</button>
      <button type="button" class="button" disabled=${!more} onClick=${() => setPages([...pages, next])}>Later</button>
      <span class="quiet small">page ${count(pages.length)}</span>
    </p>`}`;
}
