// The edits of a moment, brought to places in the text that they have led to.
//
// placed(text, changes)   {inserts: [{start, end}], removes: [{at, text}], more}: by place, in the units of JavaScript's
//                         strings; `more` where there are too many edits to follow
//
// The service tells edits one after the other, each with a position in the text as it was before that edit, counted in
// characters. They are applied to a list of pieces: of what was there before, of what has come, of what has gone; what
// came and went within the moment leaves nothing. Then the pieces tell where everything is.

const MOST_EDITS = 4000;
const characters = (text) => (/[\ud800-\udbff]/.test(text) ? Array.from(text).length : text.length);
const cut = (text, from, to) =>
  /[\ud800-\udbff]/.test(text) ? Array.from(text).slice(from, to).join("") : text.slice(from, to);

export function placed(text, changes) {
  if (changes.length > MOST_EDITS) return { inserts: [], removes: [], more: true };
  let length = characters(text);
  for (const each of changes) length += each.kind === "insert" ? -each.length : each.length;
  const pieces = [{ kind: "kept", length: Math.max(0, length) }];
  for (const each of changes) {
    if (each.kind === "insert") pieces.splice(split(pieces, each.position), 0, { kind: "insert", length: each.length });
    else remove(pieces, each);
  }
  return { ...read(text, joined(pieces)), more: false };
}

/** The index of the piece that begins at a position; a piece that reaches over it is divided. */
function split(pieces, position) {
  let at = 0;
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index];
    if (piece.kind === "remove") continue;
    if (at >= position) return index;
    if (at + piece.length > position) {
      pieces.splice(index, 1, { ...piece, length: position - at }, { ...piece, length: at + piece.length - position });
      return index + 1;
    }
    at += piece.length;
  }
  return pieces.length;
}

function remove(pieces, edit) {
  const from = split(pieces, edit.position);
  const to = split(pieces, edit.position + edit.length);
  const within = pieces.slice(from, to);
  let at = 0;
  const left = [];
  for (const piece of within) {
    if (piece.kind === "remove") left.push(piece);
    else {
      if (piece.kind === "kept")
        left.push({ kind: "remove", length: piece.length, text: cut(edit.text, at, at + piece.length) });
      at += piece.length;
    }
  }
  pieces.splice(from, to - from, ...left);
}

/** Neighbours of a kind are one piece, and what has gone stands in front of what has come in its place. */
function joined(pieces) {
  const found = [];
  let gone = null;
  let come = null;
  const flush = () => {
    if (gone) found.push(gone);
    if (come) found.push(come);
    gone = come = null;
  };
  for (const piece of pieces) {
    if (!piece.length) continue;
    if (piece.kind === "remove") gone = { kind: "remove", text: (gone?.text ?? "") + piece.text };
    else if (piece.kind === "insert") come = { kind: "insert", length: (come?.length ?? 0) + piece.length };
    else {
      flush();
      found.push(piece);
    }
  }
  flush();
  return found;
}

function read(text, pieces) {
  const inserts = [];
  const removes = [];
  const astral = /[\ud800-\udbff]/.test(text);
  let at = 0; // in units
  const behind = (length) => {
    if (!astral) return at + length;
    let end = at;
    for (let left = length; left > 0 && end < text.length; left--) end += text.codePointAt(end) > 0xffff ? 2 : 1;
    return end;
  };
  for (const piece of pieces) {
    if (piece.kind === "remove") removes.push({ at, text: piece.text });
    else {
      const end = behind(piece.length);
      if (piece.kind === "insert") inserts.push({ start: at, end });
      at = end;
    }
  }
  return { inserts, removes };
}
