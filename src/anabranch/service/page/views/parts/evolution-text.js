// An accent as text, from the fields of a form, and the field that an error is about.
//
// accentText({kind, path, by, type, where}, json)   as it would stand in the stream, XML or JSON
// fieldOf(message)                                   "path" | "by" | "where" | null

const XML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;" };
const attribute = (name, value) => ` ${name}="${value.replace(/[&<>"\n\t\r]/g, (each) => XML[each])}"`;

export function accentText({ kind, path, by, type, where }, json) {
  const change =
    kind === "alter" ? { path, by } : kind === "add" && type.trim() ? { path, type: type.trim() } : { path };
  const items = where.trim();
  if (json) return JSON.stringify({ $accent: { ...(items ? { where: items } : {}), [kind]: change } });
  const inner = Object.entries(change)
    .map(([name, value]) => attribute(name, value))
    .join("");
  return `<s:accent xmlns:s="urn:anabranch:stream"${items ? attribute("where", items) : ""}><s:${kind}${inner}/></s:accent>`;
}

export function fieldOf(message) {
  if (/unit change|'by'/.test(message)) return "by";
  if (/'where'|description/.test(message)) return "where";
  if (/'path'|\bpath\b|bad 's:/.test(message)) return "path";
  return null;
}
