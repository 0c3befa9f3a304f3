// A table of rows that are all here, sorted as a whole and shown page by page.
//
// <${PagedTable} rows=${rows} size=${25} what="groups" sort=${{key, order}} listed="a text that says which rows" ...Table's own />
//     goes back to the first page when `listed` or the order changes; the pager is there where there is more than a page
import { html, useMemo, useState } from "../../html.js";
import { Pager, usePages } from "../../components/pager.js";
import { Table } from "../../components/table.js";

export function PagedTable({ rows, columns, size, what, sort: begin, listed = "", ...table }) {
  const [sort, setSort] = useState(begin);
  const pages = usePages(`${listed} ${sort.key} ${sort.order}`);
  const sorted = useMemo(() => {
    const column = columns.find((each) => each.key === sort.key);
    const value = column.value ?? ((row) => row[sort.key]);
    const sign = sort.order === "desc" ? -1 : 1;
    return rows
      .map((row) => ({ row, by: value(row) }))
      .sort((one, other) => compared(one.by, other.by, sign))
      .map((each) => each.row);
  }, [rows, sort]);
  const from = Math.min(Number(pages.after ?? 0), Math.floor(Math.max(0, sorted.length - 1) / size) * size);
  const shown = sorted.slice(from, from + size);
  const next = from + size < sorted.length ? String(from + size) : null;
  return html`<${Table} ...${table} columns=${columns} rows=${shown} sort=${sort} onSort=${setSort} />
    ${sorted.length > size &&
      html`<${Pager} pages=${pages} next=${next} size=${size} shown=${shown.length} total=${sorted.length} what=${what} />`}`;
}

const none = (value) => value === null || value === undefined;

function compared(one, other, sign) {
  if (none(one) || none(other)) return none(one) - none(other); // what has no value comes last
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * String(one).localeCompare(String(other), "en", { numeric: true });
}
