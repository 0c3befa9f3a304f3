// Notices: what went wrong or needs care, with its hint.
//
// <${ErrorNotice} error=${error} again=${fn} title="..." />   an ApiError or Error, its hint, its place in a query, and a
//                                                             button to try again where `again` is given
// <${Notice} kind="info" | "warning" | "error" | "good" title="...">...</>   any other; children are its text
import { html } from "../html.js";
import { visible } from "../text.js";

export function Notice({ kind = "info", title, children, role }) {
  return html`<div class=${`notice notice-${kind}`} role=${role ?? (kind === "error" ? "alert" : undefined)}>
    ${title && html`<p class="notice-title">${title}</p>`}
    <div class="notice-body">${children}</div>
  </div>`;
}

export function ErrorNotice({ error, again, title }) {
  if (!error) return null;
  const place = error.line ? `line ${error.line}${error.column ? `, column ${error.column}` : ""}` : "";
  return html`<${Notice} kind="error" title=${title}>
    <p>${visible(error.message ?? error)}</p>
    ${(place || error.code) && html`<p class="quiet">${[place, error.code].filter(Boolean).join(" · ")}</p>`}
    ${error.hint && html`<p class="quiet">${visible(error.hint)}</p>`}
    ${again && html`<p><button type="button" class="button" onClick=${again}>Try again</button></p>`}
  <//>`;
}
