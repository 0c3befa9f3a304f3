// Hash routes: #/VIEW/PARAMETER...?KEY=VALUE, all parts percent-encoded.
//
// route                   a signal: {view: "subscriptions", parts: ["vela"], query: {search: "x"}, path: "/subscriptions/vela"}
// link(view, parts, query)  the address of a view, for href: link("subscriptions", ["a b"]) is "#/subscriptions/a%20b"
// go(view, parts, query)  go there, as a new entry of the history
// replace(view, parts, query)  the same without a new entry: for filters and tabs
import { signal } from "./html.js";

const FIRST = "now";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a hash that a person has typed
  }
}

function read() {
  const hash = location.hash.replace(/^#\/?/, "");
  const mark = hash.indexOf("?");
  const path = mark < 0 ? hash : hash.slice(0, mark);
  const [view, ...parts] = path.split("/").filter((part) => part !== "").map(decoded);
  const query = Object.fromEntries(new URLSearchParams(mark < 0 ? "" : hash.slice(mark + 1)));
  return { view: view ?? FIRST, parts, query, path: `/${path || FIRST}` };
}

export const route = signal(read());

window.addEventListener("hashchange", () => {
  route.value = read();
});

export function link(view, parts = [], query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const behind = new URLSearchParams(kept).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${behind ? `?${behind}` : ""}`;
}

export function go(view, parts, query) {
  location.hash = link(view, parts, query);
}

export function replace(view, parts, query) {
  history.replaceState(null, "", link(view, parts, query));
  route.value = read();
}
