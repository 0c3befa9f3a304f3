// The moments of a display, and what it showed at them, fetched when they are asked for and kept within bounds.
//
// const kept = new Past(name)
// kept.moment(number, signal)    -> {number, at, epoch, edits} or null; a page of moments is fetched around it
// kept.known(number)             the same if it is here already, else null
// kept.shown(number, signal)     -> {at, text, changes}
// kept.has(number)               whether that would need no request
// versions(kept, wanted)         an async generator that looks at one moment after the other for the value at a path
//
// The newest of a display may be at work still, but a moment that has been never changes; so nothing here gets old.
import { at, get } from "../../api.js";
import { find, parse, valueOf } from "./past-document.js";

const PAGE = 500;
const MOST_PAGES = 12;
const MOST_SHOWN = 300;
const MOST_CHARACTERS = 8_000_000; // of all displays together
const ASIDE = 4; // requests at a time
const LARGE = 50_000; // characters that take a while to be read
const breath = () => new Promise((done) => setTimeout(done));

export class Past {
  constructor(name) {
    this.path = at("subscriptions", name);
    this.pages = new Map(); // first number -> moments, the one used last at the end
    this.displays = new Map(); // number -> display, likewise
    this.characters = 0;
  }

  #page(number) {
    const first = Math.floor(number / PAGE) * PAGE;
    const page = this.pages.get(first);
    if (page) {
      this.pages.delete(first);
      this.pages.set(first, page);
    }
    return page ?? null;
  }

  known(number) {
    return this.#page(number)?.get(number) ?? null;
  }

  async moment(number, signal) {
    const known = this.known(number);
    if (known) return known;
    const first = Math.floor(number / PAGE) * PAGE;
    const { moments } = await get(`${this.path}/moments`, {
      query: { after: first > 0 ? first - 1 : undefined, limit: PAGE },
      signal,
    });
    this.pages.set(first, new Map(moments.map((each) => [each.number, each])));
    if (this.pages.size > MOST_PAGES) this.pages.delete(this.pages.keys().next().value);
    return this.known(number);
  }

  has(number) {
    return this.displays.has(number);
  }

  async shown(number, signal) {
    const known = this.displays.get(number);
    if (known) {
      this.displays.delete(number);
      this.displays.set(number, known);
      return known;
    }
    const display = await get(`${this.path}/display`, { query: { moment: String(number) }, signal });
    if (!this.displays.has(number)) {
      this.displays.set(number, display);
      this.characters += display.text.length;
    }
    while (this.displays.size > MOST_SHOWN || (this.characters > MOST_CHARACTERS && this.displays.size > 1)) {
      const [oldest, dropped] = this.displays.entries().next().value;
      this.displays.delete(oldest);
      this.characters -= dropped.text.length;
    }
    return display;
  }
}

/** Values at a path from one moment down to another: {looked, characters, versions: [{value, from, to, at}]}, newest first.
 *
 * A version is a stretch of moments with the same value; `value` is null where there was nothing at the path.
 * `characters` is what had to be read for it; the caller stops where that is too much.
 */
export async function* versions(kept, { steps, key, from, to, signal }) {
  const found = [];
  let looked = 0;
  let characters = 0;
  for (let high = from; high >= to; high -= ASIDE) {
    const numbers = [];
    for (let each = high; each >= to && each > high - ASIDE; each--) numbers.push(each);
    const displays = await Promise.all(numbers.map((each) => kept.shown(each, signal)));
    for (let each = 0; each < numbers.length; each++) {
      const { text, at: time } = displays[each];
      const node = find(text, parse(text), steps, key);
      const value = node ? valueOf(text, node) : null;
      const last = found.at(-1);
      if (last && last.value === value) Object.assign(last, { from: numbers[each], at: time });
      else found.push({ value, from: numbers[each], to: numbers[each], at: time });
      looked++;
      characters += text.length;
      if (text.length > LARGE) await breath(); // keys and clicks come between
    }
    yield { looked, characters, versions: [...found], next: numbers.at(-1) - 1 };
  }
}
