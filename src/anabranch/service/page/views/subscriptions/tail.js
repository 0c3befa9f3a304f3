// The answers of one subscription as they come: what is shown of them, and where that is in the whole.
//
// tailOf(name, onChange)   -> a tail; onChange() is called, at most once a frame, when what it shows has changed
//   tail.entries           [{position, text}], in the order of the answer, at most WINDOW of them
//   tail.mode              "following" | "paused"
//   tail.skipped           while it is paused: how many answers have come behind those that are shown
//   tail.unseen            while it follows: how many answers came too fast to be shown, since it has begun to follow
//   tail.state, tail.error as `events` of api.js
//   tail.opening           what stands in front of the first answer
//   tail.older             whether there may be answers in front of those that are shown
//   tail.reason            why the subscription has ended, or null
//   tail.pause(), .resume() (goes on behind what is shown: nothing is left out), .newest() (jumps to the end)
//   tail.back(), .forth()  the page in front of, or behind, what is shown; both pause
//   tail.close()
//
// What is shown is a window on the answer, and a position says where it stands, so nothing can be lost: whatever is not
// shown can be asked for. Memory is bounded by the window, however fast answers come and however long it is paused.
import { at, get, events, aborted } from "../../api.js";
import { onFrame } from "../../live.js";

export const WINDOW = 200;
const FIRST = 50;
const AGAIN = 2000; // milliseconds

export function tailOf(name, onChange) {
  const path = `${at("subscriptions", name)}/answers`;
  const stop = new AbortController();
  let close = () => {};
  let timer = 0;
  let pending = []; // came since the last frame
  let dropped = 0; // of these, how many there was no room for

  const tail = {
    entries: [],
    mode: "following",
    skipped: 0,
    unseen: 0,
    state: "connecting",
    error: null,
    reason: null,
    opening: "",
    older: false,
    close() {
      stop.abort();
      clearTimeout(timer);
      close();
      draw.cancel();
    },
    pause() {
      flush();
      tail.mode = "paused";
      draw();
    },
    resume() {
      tail.mode = "following";
      tail.skipped = 0;
      follow(last());
    },
    async newest() {
      clearTimeout(timer);
      const loaded = await load({ last: FIRST }, (page) => {
        tail.entries = page.answers;
        tail.older = page.answers.length === FIRST;
        tail.mode = "following";
        tail.skipped = 0;
        follow(page.next);
      });
      // a run that is starting, or a service that is away, may answer later
      if (!loaded && !stop.signal.aborted && ![401, 403, 404].includes(tail.error.status)) timer = setTimeout(tail.newest, AGAIN);
    },
    async back() {
      const first = tail.entries[0]?.position;
      if (first === undefined) return;
      tail.pause();
      await load({ before: first, limit: WINDOW / 2 }, (page) => {
        const all = [...page.answers, ...tail.entries];
        const left = all.length - WINDOW;
        if (left > 0) tail.skipped += left; // they lie behind what is shown now
        tail.entries = all.slice(0, WINDOW);
        tail.older = page.answers.length === WINDOW / 2;
      });
    },
    async forth() {
      tail.pause();
      await load({ after: last(), limit: WINDOW / 2 }, (page) => {
        tail.entries = [...tail.entries, ...page.answers].slice(-WINDOW);
        tail.skipped = Math.max(0, tail.skipped - page.answers.length);
        if (!page.more) tail.skipped = 0;
        tail.older = true;
      });
    },
  };

  function last() {
    return tail.entries[tail.entries.length - 1]?.position ?? null;
  }

  function flush() {
    const came = pending;
    const unseen = dropped + Math.max(0, came.length - WINDOW);
    pending = [];
    dropped = 0;
    if (came.length === 0 || tail.mode === "paused") return;
    const all = unseen > 0 ? came : tail.entries.concat(came); // only what is next to each other is shown together
    tail.unseen += unseen;
    tail.older ||= unseen > 0 || all.length > WINDOW;
    tail.entries = all.slice(-WINDOW);
  }

  const draw = onFrame(() => {
    flush();
    onChange();
  });

  function take({ id, event, data }) {
    if (event === "end") {
      tail.reason = data;
      draw();
      return;
    }
    if (tail.mode === "paused") {
      tail.skipped += 1;
      draw();
      return;
    }
    pending.push({ position: id, text: data });
    if (pending.length > 2 * WINDOW) {
      dropped += pending.length - WINDOW;
      pending = pending.slice(-WINDOW);
    }
    draw();
  }

  async function load(query, put) {
    try {
      const page = await get(path, { query, signal: stop.signal });
      tail.opening = page.opening ?? "";
      tail.error = null;
      put(page);
      draw();
      return true;
    } catch (error) {
      if (!aborted(error)) {
        tail.error = error;
        draw();
      }
      return false;
    }
  }

  function follow(after) {
    close();
    pending = [];
    dropped = 0;
    tail.unseen = 0;
    close = events(path, {
      after,
      signal: stop.signal,
      onEvent: take,
      onState: (state, error) => {
        tail.state = state;
        tail.error = error;
        draw();
      },
    });
  }

  tail.newest();
  return tail;
}
