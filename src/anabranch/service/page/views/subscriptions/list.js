// The list of subscriptions: searched, filtered and sorted by the service, a page at a time.
//
// <${SubscriptionList} query=${params.query} />
//
// There may be 100,000 of them, so the page never holds more than one page of the list. Typing waits for a moment before
// it asks, and a newer question takes the place of one that is under way. What is chosen stands in the address.
import { html, useEffect, useState } from "../../html.js";
import { useFetched, useDebounced } from "../../live.js";
import { link, replace } from "../../router.js";
import { may } from "../../site.js";
import { Table } from "../../components/table.js";
import { Pager, usePages } from "../../components/pager.js";
import { StateBadge } from "../../components/badge.js";
import { ErrorNotice } from "../../components/notice.js";
import { Empty, Loading } from "../../components/empty.js";
import { count, inline, shortened } from "../../text.js";

const SIZE = 100;
const FILTERS = {
  state: { label: "State", choices: ["waiting", "running", "ended", "refused"] },
  origin: { label: "Origin", choices: ["site", "service"] },
  kind: {
    label: "Kind",
    choices: ["items", "windows", "sessions", "step join", "interval join", "display", "past", "plan", "whole"],
  },
};

function Filter({ name, label, choices, value, onChoose }) {
  return html`<label class="field">
    <span>${label}</span>
    <select name=${name} value=${value ?? ""} onChange=${(event) => onChoose(event.currentTarget.value)}>
      <option value="">all</option>
      ${choices.map((choice) => html`<option key=${choice} value=${choice}>${inline(choice)}</option>`)}
    </select>
  </label>`;
}

const COLUMNS = [
  { key: "name", label: "Name", sortable: true, cell: (row) => html`<a href=${link("subscriptions", [row.name])}>${inline(shortened(row.name, 80))}</a>` },
  { key: "state", label: "State", cell: (row) => html`<${StateBadge} state=${row.state} title=${row.error ? inline(row.error) : undefined} />` },
  { key: "kind", label: "Kind", wide: true },
  { key: "streams", label: "Reads", wide: true, cell: (row) => inline(shortened(row.streams.join(", "), 60)) },
  { key: "language", label: "Language", wide: true, cell: (row) => (row.language === "sql" ? "SQL" : "XQuery") },
  { key: "origin", label: "Origin", wide: true },
  { key: "sink", label: "Sink", wide: true, cell: (row) => (row.sink ? inline(shortened(row.sink, 40)) : "–") },
  { key: "first_epoch", label: "Since epoch", numeric: true, sortable: true, wide: true, cell: (row) => count(row.first_epoch) },
  { key: "answers", label: "Answers", numeric: true, sortable: true, cell: (row) => count(row.answers), title: "since the service has started" },
];

export function SubscriptionList({ query }) {
  const [typed, setTyped] = useState(query.search ?? "");
  const search = useDebounced(typed, 150);
  const streams = useFetched("/streams");
  const change = (changed) => replace("subscriptions", [], { ...query, ...changed });
  useEffect(() => {
    if (search !== (query.search ?? "")) change({ search });
  }, [search]);

  const sort = { key: query.sort ?? "name", order: query.order ?? "asc" };
  const chosen = { search: query.search, stream: query.stream, kind: query.kind, origin: query.origin, state: query.state, sort: sort.key, order: sort.order };
  const pages = usePages(JSON.stringify(chosen));
  const { data, error, loading, again } = useFetched("/subscriptions", { ...chosen, after: pages.after, limit: SIZE }, { every: 5000 });
  const filtered = Boolean(query.search || query.stream || query.kind || query.origin || query.state);
  const names = (streams.data?.streams ?? []).map((stream) => stream.name);

  return html`<div class="head">
      <h1 tabindex="-1">Subscriptions</h1>
      ${data && html`<span class="quiet">${count(data.total)}${filtered ? " found" : ""}</span>`}
      ${may("subscribe") && html`<span class="head-end"><a class="button button-main" href=${link("new")}>New subscription</a></span>`}
    </div>
    <section class="panel" aria-label="List">
      <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
        <label class="field filter-search">
          <span>Search</span>
          <input type="search" name="search" placeholder="in names and queries" autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} />
        </label>
        <${Filter} name="stream" label="Stream" choices=${names} value=${query.stream} onChoose=${(value) => change({ stream: value })} />
        ${Object.entries(FILTERS).map(([name, one]) => html`<${Filter} key=${name} name=${name} ...${one} value=${query[name]} onChoose=${(value) => change({ [name]: value })} />`)}
        ${filtered && html`<button type="button" class="button" onClick=${() => { setTyped(""); replace("subscriptions", [], { sort: query.sort, order: query.order }); }}>Show all</button>`}
      </form>
      ${error && html`<${ErrorNotice} error=${error} again=${again} />`}
      ${!data && loading && html`<${Loading} what="subscriptions" />`}
      ${data &&
      (data.total === 0 && !filtered
        ? html`<${Empty} title="No subscriptions yet">Write one with <a href=${link("new")}>New subscription</a>, or put it into SITE.toml.<//>`
        : html`<${Table} caption="Subscriptions" columns=${COLUMNS} rows=${data.subscriptions} rowKey=${(row) => row.name} sort=${sort} busy=${loading}
              onSort=${(next) => change({ sort: next.key, order: next.order })} empty="Nothing is found." />
            <${Pager} pages=${pages} next=${data.next} size=${SIZE} shown=${data.subscriptions.length} total=${data.total} what="subscriptions" />`)}
    </section>`;
}
