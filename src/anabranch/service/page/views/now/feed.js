// What the run does, as it is told after each epoch, and the little of it that is remembered.
//
// watch()      begins to listen; returns a function that ends it. The newest object of /api/now is in `shown`,
//              at most once for each frame of the screen, however fast epochs are.
// shown        a signal: {now, state, error, turn}; `state` as in `events` of api.js; `turn` grows a few times a second,
//              which is as often as curves are drawn anew
// history      what curves are drawn from: history.times() and history.values(stream, measure), each with at most LENGTH
//              entries; measures are "items", "bytes", "seconds", "lag"; the stream "" has the whole run's "items", "bytes", "answers"
//
// Memory is bounded: a ring for each measure of each stream, for the streams that there were lately.
import { signal } from "../../html.js";
import { get, events, aborted } from "../../api.js";
import { Ring, onFrame } from "../../live.js";

const LENGTH = 240;
const GAP = 20; // seconds without a word after which a curve is interrupted
const CURVES_MS = 250;
const MOST = 200; // streams whose history is kept

export const shown = signal({ now: null, state: "connecting", error: null, turn: 0 });

function lagOf(stream) {
  return stream.lag?.bytes ?? stream.lag?.offsets ?? null;
}

class History {
  constructor() {
    this.moments = new Ring(LENGTH);
    this.rings = new Map(); // stream and measure -> ring of [moment, value]
  }

  times() {
    return this.moments.values();
  }

  values(stream, measure) {
    const ring = this.rings.get(`${measure} ${stream}`);
    const known = new Map(ring ? ring.values() : []);
    return this.times().map((time) => known.get(time) ?? null);
  }

  newest(stream, measure, length) {
    const ring = this.rings.get(`${measure} ${stream}`);
    return ring ? ring.values().slice(-length).map(([, value]) => value) : [];
  }

  take(now) {
    const time = Date.parse(now.time) / 1000;
    const last = this.moments.last();
    if (!Number.isFinite(time) || (last !== undefined && time <= last)) return;
    if (last !== undefined && time - last > GAP) this.moments.push(last + 0.001); // a moment without values
    this.moments.push(time);
    const put = (stream, measure, value) => {
      const key = `${measure} ${stream}`;
      if (!this.rings.has(key)) this.rings.set(key, new Ring(LENGTH));
      this.rings.get(key).push([time, value ?? null]);
    };
    put("", "items", now.rates.items);
    put("", "bytes", now.rates.bytes);
    put("", "answers", now.rates.answers);
    const streams = now.streams.slice(0, MOST);
    for (const stream of streams) {
      put(stream.name, "items", stream.items_per_second);
      put(stream.name, "bytes", stream.bytes_per_second);
      put(stream.name, "seconds", stream.lag?.seconds);
      put(stream.name, "lag", lagOf(stream));
    }
    if (this.rings.size > 4 * (streams.length + 1)) {
      const there = new Set(["", ...streams.map((stream) => stream.name)]);
      for (const key of this.rings.keys()) {
        if (!there.has(key.slice(key.indexOf(" ") + 1))) this.rings.delete(key);
      }
    }
  }
}

export const history = new History();

export function watch() {
  const stop = new AbortController();
  let newest = shown.peek().now;
  let state = "connecting";
  let error = null;
  let drawn = -CURVES_MS; // when curves were drawn last
  const draw = onFrame(() => {
    const time = performance.now();
    const due = time - drawn >= CURVES_MS;
    if (due) drawn = time;
    shown.value = { now: newest, state, error, turn: shown.peek().turn + (due ? 1 : 0) };
  });
  const take = (now) => {
    newest = now;
    history.take(now);
    draw();
  };
  get("/now", { signal: stop.signal })
    .then((now) => {
      if (newest === null) take(now);
    })
    .catch((failure) => {
      if (!aborted(failure) && newest === null) {
        error = failure;
        draw();
      }
    });
  events("/now/events", {
    signal: stop.signal,
    onEvent: ({ event, data }) => {
      if (event !== "message" && event !== "now") return;
      let now;
      try {
        now = JSON.parse(data);
      } catch {
        return; // a half of an object, where the service ended while it was sent
      }
      error = null;
      take(now);
    },
    onState: (next, failure) => {
      state = next;
      if (failure) error = failure;
      draw();
    },
  });
  return () => {
    stop.abort();
    draw.cancel();
  };
}
