// The text of a display as a tree that knows its places: XML or JSON, one element, member or value a node.
//
// The browser's own parsers forget where in the text a node stood, and changes are told by positions in the text;
// so this is a scanner of our own.
// It never fails: what is not well formed stands there as text.
// It works with a stack and in one pass, so depth and length of what comes in cost no more than time linear in them.
//
// A node: {name, start, openEnd, closeStart, end, parent, children, index, of}.
// `index` counts the nodes of the same name among their siblings, from 1; `of` is how many of them there are.
// A node of text (`name` null) has no children.

const NAME_END = /[\s/>]/g;
const SPECIAL = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
  ["<?", "?>"],
  ["<!", ">"],
];

/** The nodes of a text, outermost first: XML where the text begins with '<', JSON where it is JSON, else text. */
export function parse(text) {
  const first = /\S/.exec(text)?.[0];
  if (first === undefined) return [];
  if (first === "<") return parseXml(text);
  if (first === "{" || first === "[" || first === '"') return parseJson(text) ?? [plain(0, text.length, null)];
  return parseXml(text);
}

function plain(start, end, parent) {
  return { name: null, start, openEnd: start, closeStart: end, end, parent, children: [], index: 1, of: 1 };
}

function parseXml(text) {
  const roots = [];
  const names = new Map(); // how many elements of a name we are in
  let open = null; // the innermost of them
  let at = 0;
  const add = (node) => (open ? open.children : roots).push(node);
  const addText = (start, end) => {
    if (end > start && text.slice(start, end).trim()) add(plain(start, end, open));
  };
  while (at < text.length) {
    const tag = text.indexOf("<", at);
    if (tag < 0) break;
    addText(at, tag);
    const special = specialEnd(text, tag);
    if (special > 0) {
      addText(tag, special);
      at = special;
      continue;
    }
    const end = tagEnd(text, tag);
    if (end < 0) {
      at = tag;
      break;
    }
    if (text[tag + 1] === "/") {
      const name = text.slice(tag + 2, end - 1).trim();
      if (names.get(name)) {
        for (; open.name !== name; open = open.parent) leave(names, open, tag, tag);
        leave(names, open, tag, end);
        open = open.parent;
      } else {
        addText(tag, end);
      }
    } else {
      NAME_END.lastIndex = tag + 1;
      const name = text.slice(tag + 1, NAME_END.exec(text).index);
      const node = {
        name,
        start: tag,
        openEnd: end,
        closeStart: end,
        end,
        parent: open,
        children: [],
        index: 1,
        of: 1,
      };
      add(node);
      if (text[end - 2] !== "/") {
        open = node;
        names.set(name, (names.get(name) ?? 0) + 1);
      }
    }
    at = end;
  }
  addText(at, text.length);
  for (; open; open = open.parent) finish(open, text.length, text.length);
  number(roots);
  return roots;
}

function leave(names, node, closeStart, end) {
  names.set(node.name, names.get(node.name) - 1);
  finish(node, closeStart, end);
}

function finish(node, closeStart, end) {
  node.closeStart = closeStart;
  node.end = end;
  number(node.children);
}

/** The end of a comment, a CDATA section, a processing instruction or a declaration; 0 where there is none. */
function specialEnd(text, at) {
  if (text[at + 1] !== "!" && text[at + 1] !== "?") return 0;
  for (const [opening, closing] of SPECIAL) {
    if (text.startsWith(opening, at)) {
      const end = text.indexOf(closing, at + opening.length);
      return end < 0 ? text.length : end + closing.length;
    }
  }
  return 0;
}

/** Where a tag ends, behind its '>'; a '>' within quotes is none. */
function tagEnd(text, at) {
  let quote = "";
  for (let each = at + 1; each < text.length; each++) {
    const character = text[each];
    if (quote) {
      if (character === quote) quote = "";
    } else if (character === '"' || character === "'") quote = character;
    else if (character === ">") return each + 1;
    else if (character === "<") return -1;
  }
  return -1;
}

function number(siblings) {
  if (siblings.length < 2) return;
  const count = new Map();
  for (const each of siblings) {
    const index = (count.get(each.name) ?? 0) + 1;
    count.set(each.name, index);
    each.index = index;
  }
  for (const each of siblings) each.of = count.get(each.name);
}

const JSON_TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|([-+.\w]+)|([{}[\],:]))/gy;

/** JSON values one after the other; members are named by their keys, all else is an 'item'. Null where it is no JSON. */
function parseJson(text) {
  const roots = [];
  let open = null;
  let key = null; // {name, start} of the member that we are in
  JSON_TOKEN.lastIndex = 0;
  let end = 0;
  for (;;) {
    const token = JSON_TOKEN.exec(text);
    if (!token) break;
    end = JSON_TOKEN.lastIndex;
    const start = end - (token[1] ?? token[2] ?? token[3]).length;
    if (token[3] === "," || token[3] === ":") continue;
    if (token[3] === "}" || token[3] === "]") {
      if (!open) return null;
      finish(open, start, end);
      open = open.parent;
      continue;
    }
    if (token[1] !== undefined && open?.object && !key && /\s*:/y.test(text.slice(end, end + 40))) {
      key = { name: unquoted(token[1]), start };
      continue;
    }
    const node = {
      name: key?.name ?? "item",
      start: key?.start ?? start,
      openEnd: start,
      closeStart: end,
      end,
      parent: open,
      children: [],
      index: 1,
      of: 1,
    };
    key = null;
    (open ? open.children : roots).push(node);
    if (token[3]) {
      node.object = token[3] === "{";
      node.openEnd = end;
      open = node;
    }
  }
  if (open || /\S/.test(text.slice(end))) return null;
  number(roots);
  return roots;
}

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(1, -1);
  }
}

const ENTITIES = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** What a node says: its text without tags, in one line. */
export function valueOf(text, node) {
  if (text[node.start] === "<" && node.name !== null) {
    const inner = text.slice(node.openEnd, node.closeStart).replace(/<[^>]*>/g, " ");
    return inner
      .replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
        const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : null;
        if (code !== null) return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
        return ENTITIES[name] ?? whole;
      })
      .replace(/\s+/g, " ")
      .trim();
  }
  return text.slice(node.object === undefined ? node.openEnd : node.openEnd - 1, node.end);
}

/** The steps from the outermost node to this one. */
export function stepsTo(node) {
  const steps = [];
  for (let each = node; each; each = each.parent) steps.unshift({ name: each.name, index: each.index, of: each.of });
  return steps;
}

/** A path as people write it: 'quote[2]/name'. */
export function pathText(steps) {
  return steps.map((each) => (each.of > 1 ? `${each.name}[${each.index}]` : each.name)).join("/");
}

/** By what the node could be told apart from its like: children of the nearest repeated one around it, with a value of their own. */
export function keysOf(text, roots, node) {
  let repeated = node;
  while (repeated && repeated.of === 1) repeated = repeated.parent;
  if (!repeated || repeated === node) return [];
  const like = (repeated.parent?.children ?? roots).filter((each) => each.name === repeated.name);
  const keys = [];
  for (const child of repeated.children) {
    if (child.name === null || child.of > 1 || holds(child, node) || child.children.some((each) => each.name !== null))
      continue;
    const value = valueOf(text, child);
    const same = like.filter((each) =>
      each.children.some((one) => one.name === child.name && valueOf(text, one) === value),
    );
    if (same.length === 1 && value.length <= 80)
      keys.push({ level: stepsTo(repeated).length - 1, name: child.name, value });
    if (keys.length === 3) break;
  }
  return keys;
}

function holds(outer, node) {
  for (let each = node; each; each = each.parent) if (each === outer) return true;
  return false;
}

/** The node at a path in another text, or null; with a key, the repeated one is found by it and not by its position. */
export function find(text, roots, steps, key) {
  let level = roots;
  let found = null;
  for (let each = 0; each < steps.length; each++) {
    const like = level.filter((node) => node.name === steps[each].name);
    found =
      (key && key.level === each
        ? like.find((node) => node.children.some((one) => one.name === key.name && valueOf(text, one) === key.value))
        : like[steps[each].index - 1]) ?? null;
    if (!found) return null;
    level = found.children;
  }
  return found;
}
