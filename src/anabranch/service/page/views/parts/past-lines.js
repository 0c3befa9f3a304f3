// What a display shows as lines, with what has changed marked on them.
//
// An element without elements inside is one line, any other is a line for its beginning, those of its content, and one
// for its end; so a display of a megabyte is some ten thousand lines, of which a screen shows forty.
// A line is {depth, start, end, node} where `node` is what it begins, or null; one that has changed has a `mark`, and
// `parts`: pieces of text, each {text, mark} with `mark` "", "insert" or "remove".
// What was removed stands where it was: within a line, or as lines of its own between two.
import { parse } from "./past-document.js";
import { placed } from "./past-edits.js";

const LONGEST = 2000; // characters of a line that are drawn
const MOST_REMOVED = 400; // lines of removed text between two others

/** The lines of a text, without marks and parts. */
export function linesOf(roots, text, depth = 0) {
  const lines = [];
  const stack = [{ nodes: roots, at: 0, depth, node: null }];
  while (stack.length) {
    const top = stack.at(-1);
    if (top.at === top.nodes.length) {
      stack.pop();
      if (top.node) lines.push({ depth: top.depth - 1, start: top.node.closeStart, end: top.node.end, node: null });
      continue;
    }
    const node = top.nodes[top.at++];
    if (node.children.some((each) => each.name !== null)) {
      lines.push({ depth: top.depth, start: node.start, end: node.openEnd, node });
      stack.push({ nodes: node.children, at: 0, depth: top.depth + 1, node });
    } else {
      lines.push({ depth: top.depth, start: node.start, end: node.end, node: node.name === null ? null : node });
    }
  }
  return filled(
    lines.filter((each) => each.end > each.start),
    text,
  );
}

/** What stands between two lines, as the commas of JSON do, belongs to the one before it: no character is left out. */
function filled(lines, text) {
  if (!lines.length) return lines;
  lines[0].start -= text.slice(0, lines[0].start).trimStart().length;
  for (let each = 0; each < lines.length; each++) {
    const next = each + 1 < lines.length ? lines[each + 1].start : text.length;
    if (next > lines[each].end) lines[each].end += text.slice(lines[each].end, next).trimEnd().length;
  }
  return lines;
}

/** The lines of a display with its changes against the moment before: {roots, lines, changed: [numbers of lines], more}. */
export function markedLines(text, changes = []) {
  const roots = parse(text);
  const plain = linesOf(roots, text);
  const { inserts, removes, more } = placed(text, changes);
  const begun = new Map(inserts.map((each) => [each.start, each]));
  for (const each of removes) narrow(text, each, begun.get(each.at));
  const gone = removes.filter((each) => each.text);
  const lines = [];
  const changed = [];
  let insert = 0;
  let remove = 0;
  const push = (line) => {
    if (line.mark) changed.push(lines.length);
    lines.push(line);
  };
  for (const line of plain) {
    for (; remove < gone.length && gone[remove].at <= line.start; remove++)
      removedLines(gone[remove].text, line.depth).forEach(push);
    while (insert < inserts.length && inserts[insert].end <= line.start) insert++;
    const within = [];
    for (; remove < gone.length && gone[remove].at < line.end; remove++) within.push(gone[remove]);
    if (within.length || (insert < inserts.length && inserts[insert].start < line.end))
      Object.assign(line, partsOf(text, line, inserts, insert, within));
    push(line);
  }
  for (; remove < gone.length; remove++) removedLines(gone[remove].text, 0).forEach(push);
  return { roots, lines, changed, more };
}

/** What was removed and put back at the same place has not changed: only what differs between the two is marked.
 *
 * The service tells which entry was replaced; of an entry of ten values one may be another.
 * Both ends are cut where a tag or a word ends, so that '102' to '105' is not '2' to '5'.
 */
function narrow(text, removed, insert) {
  if (!insert) return;
  const inserted = text.slice(insert.start, insert.end);
  const least = Math.min(inserted.length, removed.text.length);
  let front = 0;
  while (front < least && inserted[front] === removed.text[front]) front++;
  while (front > 0 && front < Math.max(inserted.length, removed.text.length) && !EDGE.test(inserted[front - 1]))
    front--;
  let back = 0;
  while (back < least - front && inserted.at(-1 - back) === removed.text.at(-1 - back)) back++;
  while (back > 0 && !EDGE.test(inserted.at(-back))) back--;
  removed.at += front;
  removed.text = removed.text.slice(front, removed.text.length - back);
  insert.start += front;
  insert.end -= back;
}

const EDGE = /[<>\s"',:{}[\]]/;

function removedLines(text, depth) {
  const lines = linesOf(parse(text), text, depth);
  const shown = lines.slice(0, MOST_REMOVED).map((each) => ({
    depth: each.depth,
    start: -1,
    end: -1,
    node: null,
    mark: "remove",
    parts: [{ text: cut(text.slice(each.start, each.end)), mark: "remove" }],
  }));
  if (lines.length > MOST_REMOVED) {
    const more = `… ${lines.length - MOST_REMOVED} more lines were removed`;
    shown.push({ depth, start: -1, end: -1, node: null, mark: "remove", parts: [{ text: more, mark: "" }] });
  }
  return shown;
}

/** What is drawn of a line; most have no mark, and are cut out of the text only when they are seen. */
export function drawn(text, line) {
  return line.parts ?? [{ text: cut(text.slice(line.start, line.end)), mark: "" }];
}

/** The pieces of a line, and its mark: that of the line as a whole, or "change" where only a part of it is another. */
function partsOf(text, line, inserts, from, removes) {
  const parts = [];
  let at = line.start;
  const upTo = (end, mark) => {
    if (end > at) parts.push({ text: text.slice(at, end), mark });
    at = Math.max(at, end);
  };
  const edges = [];
  for (let each = from; each < inserts.length && inserts[each].start < line.end; each++)
    edges.push({ at: inserts[each].start, insert: inserts[each] });
  for (const each of removes) edges.push({ at: each.at, remove: each });
  edges.sort((one, other) => one.at - other.at || (one.remove ? -1 : 1));
  let inserted = line.start;
  for (const edge of edges) {
    upTo(Math.min(inserted, edge.at), "insert");
    upTo(Math.min(edge.at, line.end), "");
    if (edge.remove) parts.push({ text: edge.remove.text, mark: "remove" });
    else inserted = Math.min(edge.insert.end, line.end);
  }
  upTo(inserted, "insert");
  upTo(line.end, "");
  const marks = new Set(parts.map((each) => each.mark));
  const mark = marks.size === 1 ? [...marks][0] : marks.size ? "change" : "";
  let left = LONGEST;
  const shown = [];
  for (const each of parts) {
    if (left <= 0) break;
    shown.push({ text: cut(each.text, left), mark: each.mark });
    left -= each.text.length;
  }
  return { parts: shown, mark };
}

function cut(text, most = LONGEST) {
  return text.length > most ? `${text.slice(0, most)} … ${text.length - most} characters more` : text;
}
