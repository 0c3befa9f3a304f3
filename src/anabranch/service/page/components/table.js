// A table of rows: sorting, the keyboard, numbers on their own edge.
//
// <${Table}
//   caption="Streams"            said to screen readers; showCaption puts it on the screen
//   columns=${[{key: "name", label: "Name", sortable: true, numeric: false, wide: false,
//               cell: (row) => html`...`, value: (row) => row.name, title: "what it means"}]}
//   rows=${rows}  rowKey=${(row) => row.name}
//   sort=${{key, order: "asc" | "desc"}} onSort=${(sort) => ...}
//   empty="nothing here"         what stands there without rows
//   selected=${key}              the row that is shown elsewhere
// />
// `cell` draws a row's cell (else the value is shown as inert text); `value` is what is sorted by (else row[key]).
// `wide` columns are left out on narrow screens. Columns that are sortable have a button in their head.
// Without `onSort` the table sorts its rows itself; with it, whoever gave them does (as the service does for pages).
// Where it is wider than its place it can be scrolled, and has the focus for that.
// Arrow up and down, Home and End move between the rows' first links or buttons; Tab goes on as usual.
import { html, useEffect, useState, useMemo, useRef } from "../html.js";
import { inline, count } from "../text.js";

function compared(a, b) {
  const none = (v) => v === null || v === undefined;
  if (none(a) || none(b)) return none(a) - none(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function shown(column, row) {
  if (column.cell) return column.cell(row);
  const value = column.value ? column.value(row) : row[column.key];
  return column.numeric && typeof value === "number" ? count(value) : inline(value ?? "–");
}

// Whether a box holds more than fits in.
export function useOverflow(box) {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const look = () => box.current && setOver(box.current.scrollWidth > box.current.clientWidth + 1);
    const sized = new ResizeObserver(look);
    sized.observe(box.current);
    sized.observe(box.current.firstElementChild);
    return () => sized.disconnect();
  }, []);
  return over;
}

export function Table({ caption, showCaption = false, columns, rows, rowKey, sort, onSort, empty, selected, busy }) {
  const [own, setOwn] = useState(null);
  const body = useRef(null);
  const box = useRef(null);
  const over = useOverflow(box);
  const current = onSort ? sort : (own ?? sort ?? null);
  const ordered = useMemo(() => {
    if (onSort || !current) return rows;
    const column = columns.find((one) => one.key === current.key);
    if (!column) return rows;
    const value = column.value ?? ((row) => row[column.key]);
    const sign = current.order === "desc" ? -1 : 1;
    return [...rows].sort((a, b) => sign * compared(value(a), value(b)));
  }, [rows, current?.key, current?.order, onSort]);

  const choose = (column) => {
    const first = column.numeric ? "desc" : "asc";
    const other = first === "asc" ? "desc" : "asc";
    const order = current?.key === column.key && current.order === first ? other : first;
    (onSort ?? setOwn)({ key: column.key, order });
  };

  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const stops = [...body.current.rows].map((row) => row.querySelector("a, button")).filter(Boolean);
    const here = stops.findIndex((stop) => stop.closest("tr") === event.target.closest("tr"));
    if (here < 0) return;
    event.preventDefault();
    stops[Math.max(0, Math.min(stops.length - 1, here + step))].focus();
  };

  return html`<div class="table-box" ref=${box} tabindex=${over ? "0" : undefined} role=${over ? "region" : undefined} aria-label=${over ? caption : undefined}>
    <table class="table" aria-busy=${busy ? "true" : undefined}>
      <caption class=${showCaption ? "" : "unseen"}>${caption}</caption>
      <thead>
        <tr>
          ${columns.map((column) => {
            const active = current?.key === column.key;
            const state = active ? (current.order === "desc" ? "descending" : "ascending") : undefined;
            return html`<th
              key=${column.key}
              scope="col"
              class=${`${column.numeric ? "number " : ""}${column.wide ? "wide-only" : ""}`}
              aria-sort=${state}
              title=${column.title}
            >
              ${column.sortable
                ? html`<button type="button" class="sort" onClick=${() => choose(column)}>
                    ${column.label}<span class="sort-mark" aria-hidden="true">${active ? (state === "descending" ? "↓" : "↑") : ""}</span>
                  </button>`
                : column.label}
            </th>`;
          })}
        </tr>
      </thead>
      <tbody ref=${body} onKeyDown=${move}>
        ${ordered.map((row) => {
          const key = rowKey(row);
          return html`<tr key=${key} class=${selected === key ? "selected" : ""} aria-current=${selected === key ? "true" : undefined}>
            ${columns.map(
              (column) => html`<td
                key=${column.key}
                class=${`${column.numeric ? "number " : ""}${column.wide ? "wide-only" : ""}`}
              >
                ${shown(column, row)}
              </td>`,
            )}
          </tr>`;
        })}
        ${ordered.length === 0 && empty && html`<tr><td class="table-empty quiet" colspan=${columns.length}>${empty}</td></tr>`}
      </tbody>
    </table>
  </div>`;
}
