// What keeps a busy view calm: work put off to the next frame, rows with an end, requests that give way to newer ones.
//
// Ring(size)              the newest `size` values: push(value), values() oldest first, last(), length, clear()
// onFrame(work)           -> schedule(): runs `work` once in the next animation frame however often it was asked for;
//                         schedule.cancel() drops it. Where the page is hidden it runs when it is seen again.
//                         A drawing that takes long is followed by a rest of twice that time, so that whatever comes,
//                         input has most of the time for itself.
// useFetched(path, query, {every})   a hook: {data, error, loading, again()}; asks again when path or query changes,
//                         gives up the request before, and keeps the old data while the new ones are on their way;
//                         `every` asks again after that many milliseconds, unless the page is hidden.
//                         A path of null asks nothing.
// useDebounced(value, ms) a hook: the value, once it has not changed for so long
import { useState, useEffect, useRef, useCallback } from "./html.js";
import { get, aborted } from "./api.js";

export class Ring {
  constructor(size) {
    this.size = size;
    this.clear();
  }

  clear() {
    this.kept = [];
    this.next = 0; // where the next value goes once all places are taken
  }

  push(value) {
    if (this.kept.length < this.size) this.kept.push(value);
    else {
      this.kept[this.next] = value;
      this.next = (this.next + 1) % this.size;
    }
  }

  get length() {
    return this.kept.length;
  }

  last() {
    if (this.kept.length < this.size) return this.kept[this.kept.length - 1];
    return this.kept[(this.next + this.size - 1) % this.size];
  }

  values() {
    return this.kept.slice(this.next).concat(this.kept.slice(0, this.next));
  }
}

export function onFrame(work) {
  let frame = 0;
  let timer = 0;
  let wanted = false;
  let rested = 0; // when the next drawing may begin
  const begin = () => {
    timer = 0;
    frame = requestAnimationFrame((began) => {
      frame = 0;
      wanted = false;
      work();
      // behind the drawing, which preact puts off to the end of this task, and behind the painting
      setTimeout(() => {
        const now = performance.now();
        rested = now + Math.min(500, 2 * (now - began));
        if (wanted) schedule();
      }, 0);
      rested = Infinity;
    });
  };
  const schedule = () => {
    wanted = true;
    if (frame || timer || rested === Infinity) return;
    const wait = rested - performance.now();
    if (wait > 4) timer = setTimeout(begin, wait);
    else begin();
  };
  schedule.cancel = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = 0;
    timer = 0;
    wanted = false;
  };
  return schedule;
}

export function useFetched(path, query = {}, { every = 0 } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify([path, query]);
  const known = useRef(key);
  useEffect(() => {
    if (path === null) {
      setState({ data: null, error: null, loading: false });
      return undefined;
    }
    const stop = new AbortController();
    let timer = 0;
    const fresh = known.current !== key;
    known.current = key;
    if (fresh) setState((old) => ({ ...old, loading: true }));
    const ask = async () => {
      try {
        if (!document.hidden || every === 0) {
          const data = await get(path, { query, signal: stop.signal });
          setState({ data, error: null, loading: false });
        }
      } catch (error) {
        if (aborted(error)) return;
        setState((old) => ({ data: fresh ? null : old.data, error, loading: false }));
      }
      if (every && !stop.signal.aborted) timer = setTimeout(ask, every);
    };
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, turn, every]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  return { ...state, again };
}

export function useDebounced(value, ms) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
