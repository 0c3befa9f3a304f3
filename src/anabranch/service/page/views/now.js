// What the run does now: rates and lag, phases of epochs, why something is late, sinks, state, the log.
//
// It is told after each epoch (views/now/feed.js) and drawn at most once a frame.
import { html, useEffect } from "../html.js";
import { ErrorNotice } from "../components/notice.js";
import { Badge } from "../components/badge.js";
import { Loading } from "../components/empty.js";
import { clock } from "../text.js";
import { shown, watch } from "./now/feed.js";
import { Late } from "./now/late.js";
import { Streams } from "./now/streams.js";
import { Epochs } from "./now/epochs.js";
import { Figures, Sinks, State, Log } from "./now/rest.js";

export const title = "Now";

const STATES = {
  open: ["good", "live"],
  connecting: ["quiet", "connecting"],
  waiting: ["warn", "trying again"],
  resting: ["quiet", "resting"],
  ended: ["bad", "ended"],
};

export default function Now() {
  useEffect(watch, []);
  const { now, state, error, turn } = shown.value;
  const [tone, word] = STATES[state];
  return html`<div class="head">
      <h1 tabindex="-1">Now</h1>
      <span class="head-end now-state" role="status"><${Badge} tone=${tone}>${word}<//></span>
      ${now && html`<span class="quiet small now-time">as of ${clock(now.time)}</span>`}
    </div>
    ${error && (!now || state !== "open") && html`<${ErrorNotice} error=${error} />`}
    ${!now && !error && html`<${Loading} />`}
    ${now &&
    html`<div class="stack">
      <${Figures} now=${now} turn=${turn} />
      <${Late} late=${now.late} />
      <${Streams} streams=${now.streams} turn=${turn} />
      <${Epochs} epochs=${now.epochs} />
      <div class="columns">
        <${Sinks} sinks=${now.sinks} />
        <${State} state=${now.state} />
      </div>
      <${Log} events=${now.events} />
    </div>`}`;
}
