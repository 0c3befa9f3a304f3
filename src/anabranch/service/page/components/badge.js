// Badges: a word with a colour, which never says more than the word.
//
// <${Badge} tone="good" | "warn" | "bad" | "quiet" | "accent">running</>
// <${StateBadge} state="running" />    the state of a subscription or of the run, in its tone
import { html } from "../html.js";

const TONES = {
  running: "good",
  ready: "good",
  waiting: "quiet",
  starting: "quiet",
  stopping: "warn",
  ended: "warn",
  refused: "bad",
  failed: "bad",
};

export function Badge({ tone = "quiet", children, title }) {
  return html`<span class=${`badge badge-${tone}`} title=${title}>${children}</span>`;
}

export function StateBadge({ state, title }) {
  return html`<${Badge} tone=${TONES[state] ?? "quiet"} title=${title}>${state}<//>`;
}
