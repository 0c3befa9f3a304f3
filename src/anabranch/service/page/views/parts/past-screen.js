// What a display showed, line by line, of which only those on the screen are in the page.
//
// <${Screen} text=${text} marked=${markedLines(...)} chosen=${key} onChoose=${(node) => ...} jump=${{line, turn}} />
//     `chosen` is the path of the element that is chosen, as pathText writes it; `jump` brings a line into sight.
//
// A listbox: arrow keys move from line to line, Enter chooses the element that begins there, so that whoever cannot see
// the text hears it line by line, with what was inserted or removed said in words. Marks have a sign and a line under
// or through the text, not only a colour.
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../../html.js";
import { inline } from "../../text.js";
import { pathText, stepsTo } from "./past-document.js";
import { drawn } from "./past-lines.js";

const LINE = 22; // pixels
const AROUND = 12; // lines beyond the edges
const MOST_HIGH = 24; // lines that are shown at once
const SIGNS = { insert: "+", remove: "−", change: "±" };
const SAID = { insert: "inserted: ", remove: "removed: ", change: "changed: " };

export function Screen({ text, marked, lines, chosen, onChoose, jump }) {
  const box = useRef(null);
  const id = useId();
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const high = Math.min(MOST_HIGH, Math.max(4, lines.length)) * LINE + 2;
  const current = Math.min(active, Math.max(0, lines.length - 1));

  useLayoutEffect(() => {
    // a shorter text may end above what was in sight
    if (box.current && box.current.scrollTop !== top) setTop(box.current.scrollTop);
  });
  useEffect(() => {
    if (jump && jump.line < lines.length) {
      setActive(jump.line);
      box.current.scrollTop = Math.max(0, (jump.line - 4) * LINE);
    }
  }, [jump]);

  const reveal = (line) => {
    const view = box.current;
    if (line * LINE < view.scrollTop) view.scrollTop = line * LINE;
    else if ((line + 1) * LINE > view.scrollTop + view.clientHeight)
      view.scrollTop = (line + 1) * LINE - view.clientHeight;
  };
  const move = (event) => {
    const step = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: MOST_HIGH - 2,
      PageUp: 2 - MOST_HIGH,
      Home: -Infinity,
      End: Infinity,
    }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const line = Math.max(0, Math.min(lines.length - 1, current + step));
      setActive(line);
      reveal(line);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (lines[current]?.node) onChoose(lines[current].node);
    }
  };
  const from = Math.max(0, Math.floor(top / LINE) - AROUND);
  const to = Math.min(lines.length, Math.ceil((top + high) / LINE) + AROUND);
  const shown = lines.slice(from, to);
  return html`<div
    ref=${box}
    class="screen"
    role="listbox"
    tabindex="0"
    aria-label="What the display showed"
    aria-activedescendant=${lines.length && current >= from && current < to ? `${id}-${current}` : undefined}
    style=${{ height: `${high}px` }}
    onScroll=${(event) => setTop(event.currentTarget.scrollTop)}
    onKeyDown=${move}
  >
    <div class="screen-all" role="presentation" style=${{ height: `${lines.length * LINE}px` }}>
      <div class="screen-part" role="presentation" style=${{ transform: `translateY(${from * LINE}px)` }}>
        ${shown.map((line, index) => {
          const number = from + index;
          const path = line.node ? pathText(stepsTo(line.node)) : null;
          return html`<div
            key=${number}
            id=${`${id}-${number}`}
            role="option"
            aria-selected=${path !== null && path === chosen ? "true" : "false"}
            aria-setsize=${lines.length}
            aria-posinset=${number + 1}
            class=${`line ${line.mark ? `line-${line.mark}` : ""} ${number === current ? "line-active" : ""} ${line.node ? "line-node" : ""}`}
            title=${path ? `versions of ${inline(path)}` : undefined}
            onClick=${() => {
              setActive(number);
              if (line.node) onChoose(line.node);
            }}
          >
            <span class="line-sign" aria-hidden="true">${line.gap ? "⋮" : (SIGNS[line.mark] ?? "")}</span>
            ${line.mark && html`<span class="unseen">${SAID[line.mark]}</span>`}
            <span class="line-text" style=${{ paddingLeft: `${Math.min(line.depth, 24) * 1.4}em` }}>
              ${drawn(text, line).map((part) =>
                part.mark === "insert"
                  ? html`<ins>${inline(part.text)}</ins>`
                  : part.mark === "remove"
                    ? html`<del>${inline(part.text)}</del>`
                    : inline(part.text),
              )}
            </span>
          </div>`;
        })}
      </div>
    </div>
  </div>`;
}
