// Completion of stream names and of paths from what the service has learned of the newest items.
//
// completion(streams, learned)   -> hint(cm), as CodeMirror's show-hint wants it
//   streams   [{name, root, item}]
//   learned   {stream: [{path, values}]}, for the streams that the query reads
//
// Inside stream("...") it offers names of streams; behind a / or a dot, steps that go on from what stands in front of it;
// elsewhere, in SQL, names of streams and columns.

const STEP = /[\p{L}\p{N}_@*-]*$/u;

// The steps that stand in front of the cursor, as in `$p/coord/cel/r`: [["coord", "cel"], "r"]; null where there are none.
export function chain(before) {
  const typed = STEP.exec(before)[0];
  let rest = before.slice(0, before.length - typed.length);
  if (!/[/.]$/.test(rest)) return null;
  const steps = [];
  for (;;) {
    const found = /([\p{L}\p{N}_@-]+)?(?:\[[^\]]*\])?[/.]{1,2}$/u.exec(rest);
    if (!found) break;
    rest = rest.slice(0, found.index);
    if (!found[1]) break;
    if (/[$]$/.test(rest)) break; // a variable: what stands behind it is relative to an item
    steps.unshift(found[1]);
    if (rest === "") break;
  }
  return [steps, typed];
}

function endsWith(path, steps) {
  return steps.length <= path.length && steps.every((step, index) => path[path.length - steps.length + index] === step);
}

// The steps that may follow some steps, by the learned paths: [{step, values}].
export function following(paths, steps) {
  const found = new Map();
  for (const { path, values } of paths) {
    const parts = path.split("/");
    for (let length = 0; length < parts.length; length += 1) {
      if (length < steps.length || !endsWith(parts.slice(0, length), steps)) continue;
      if (steps.length === 0 && length > 0) break;
      const step = parts[length];
      const leaf = length === parts.length - 1;
      if (!found.has(step)) found.set(step, []);
      if (leaf) found.get(step).push(...values);
    }
  }
  return [...found].map(([step, values]) => ({ step, values }));
}

function row(text, beside) {
  return {
    text,
    render(element) {
      element.append(text);
      if (beside) {
        const small = document.createElement("span");
        small.className = "hint-beside";
        small.textContent = beside;
        element.append(small);
      }
    },
  };
}

export function completion(streams, learned) {
  return (cm) => {
    const cursor = cm.getCursor();
    const before = cm.getLine(cursor.line).slice(0, cursor.ch);
    const paths = Object.values(learned).flat();
    const quoted = /stream\s*\(\s*"([^"]*)$/.exec(before);
    let typed;
    let list;
    if (quoted) {
      typed = quoted[1];
      list = streams.map((stream) => row(stream.name, stream.item ? `${stream.root ?? ""}/${stream.item}` : ""));
    } else {
      const there = chain(before);
      if (there) {
        typed = there[1];
        const items = streams.filter((stream) => Object.hasOwn(learned, stream.name));
        const rooted = new Set(items.flatMap((stream) => [stream.root, stream.item]));
        const steps = there[0].filter((step) => !rooted.has(step));
        list = following(paths, steps).map(({ step, values }) => row(step, values.slice(0, 3).join(", ")));
        if (there[0].length === 0 && /\)\s*\/{0,2}[^/]*$/.test(before)) {
          list.unshift(...items.flatMap((stream) => (stream.root ? [row(stream.root, "root"), row(stream.item, "item")] : [row(stream.item, "item")])).filter((one) => one.text));
        }
      } else {
        typed = STEP.exec(before)[0];
        list = [
          ...streams.map((stream) => row(stream.name, "stream")),
          ...following(paths, []).map(({ step, values }) => row(step, values.slice(0, 3).join(", "))),
        ];
      }
    }
    const small = typed.toLowerCase();
    const seen = new Set();
    const left = list.filter((one) => one.text.toLowerCase().startsWith(small) && !seen.has(one.text) && seen.add(one.text));
    return { list: left.slice(0, 100), from: { line: cursor.line, ch: cursor.ch - typed.length }, to: cursor };
  };
}
