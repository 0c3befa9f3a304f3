// What stands where there is nothing (yet).
//
// <${Empty} title="No subscriptions">what one can do about it</>
// <${Loading} what="streams" />   said politely to screen readers; shows after a moment, so that fast answers do not flicker
import { html } from "../html.js";

export function Empty({ title, children }) {
  return html`<div class="empty">
    <svg class="empty-mark" viewBox="0 0 48 24" aria-hidden="true">
      <path d="M2 12h8c7 0 7-8 14-8s7 8 14 8h8M10 12c7 0 7 8 14 8s7-8 14-8" />
    </svg>
    <p class="empty-title">${title}</p>
    ${children && html`<div class="quiet">${children}</div>`}
  </div>`;
}

export function Loading({ what = "" }) {
  return html`<p class="loading quiet" role="status">Loading${what ? ` ${what}` : ""}…</p>`;
}
