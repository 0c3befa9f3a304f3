// Where everything stands in the picture of the shared plan: streams left, groups in the middle, counts right.
//
// chosen(groups)                 {drawn, folded}: the groups with the most subscriptions, and the others
// layout(data, open, width)      the places of all that is drawn; `open` is a set of ids of groups
//
// A stream is read once and shown to each of its groups whole: so all bands of a stream begin at the same place, on top
// of each other, and have its width; a picture that divided the width among them would tell a lie.
// Widths are the root of the rate, the same scale for items and answers, so that a thousandth can still be seen.
// The order of groups depends on streams and counts of subscriptions only, never on rates: nothing jumps while one looks.

export const MOST_DRAWN = 40;
const ROW = 48;
const NARROW_ROW = 72;
const GAP = 6;
const PANEL = 348;
const WIDEST = 22;
const STREAM = 78; // the height of a stream's card

const byCount = (one, other) => other.subscriptions - one.subscriptions || (one.id < other.id ? -1 : 1);

export function chosen(groups, most = MOST_DRAWN) {
  const ranked = [...groups].sort(byCount);
  if (ranked.length <= most) return { drawn: ranked, folded: [] };
  // the largest of each stream first, so that no stream stands there without a group
  const first = new Set();
  const seen = new Set();
  for (const group of ranked) {
    if (first.size < most / 2 && group.streams.some((name) => !seen.has(name))) {
      group.streams.forEach((name) => seen.add(name));
      first.add(group);
    }
  }
  const kept = new Set([...first, ...ranked.filter((group) => !first.has(group)).slice(0, most - first.size)]);
  return { drawn: ranked.filter((group) => kept.has(group)), folded: ranked.filter((group) => !kept.has(group)) };
}

export function sum(groups, key) {
  return groups.reduce((total, group) => total + (group[key] ?? 0), 0);
}

export function layout(data, open, width) {
  const narrow = width < 620;
  const row = narrow ? NARROW_ROW : ROW;
  const { drawn, folded } = chosen(data.groups);
  const order = new Map(data.streams.map((stream, index) => [stream.name, index]));
  const centre = (group) =>
    sumOf(group.streams.map((name) => order.get(name) ?? 0)) / Math.max(1, group.streams.length);
  const sorted = [...drawn].sort((one, other) => centre(one) - centre(other) || byCount(one, other));

  const columns = narrow
    ? { stream: [0, width], left: 40, right: width }
    : {
        stream: [0, Math.min(170, width * 0.2)],
        left: Math.min(170, width * 0.2) + Math.min(150, width * 0.13),
        right: width - Math.min(250, width * 0.27),
      };

  const top = narrow ? data.streams.length * 46 + 14 : 0;
  let y = top;
  const rows = sorted.map((group) => {
    const height = row + (open.has(group.id) ? PANEL : 0);
    const placed = { group, y, height, middle: y + row / 2, head: row };
    y += height + GAP;
    return placed;
  });
  const fold = folded.length
    ? {
        groups: folded,
        y,
        height: row,
        middle: y + row / 2,
        subscriptions: sum(folded, "subscriptions"),
        rate: sum(folded, "answers_per_second"),
      }
    : null;
  if (fold) y += row + GAP;

  const most = Math.max(
    1e-9,
    ...data.streams.map((each) => each.items_per_second),
    ...drawn.map((each) => each.answers_per_second),
    fold?.rate ?? 0,
  );
  const across = (rate) => (rate > 0 ? Math.max(1.5, WIDEST * Math.sqrt(rate / most)) : 0);

  const streams = narrow ? streamsAbove(data.streams) : streamsBeside(data.streams, rows, fold, y);
  const height = Math.max(y - GAP, ...streams.map((each) => each.y + each.height), 0);
  const bands = [];
  for (const from of streams) {
    const thick = across(from.stream.items_per_second);
    const targets = rows.filter((each) => each.group.streams.includes(from.stream.name));
    const into =
      fold && fold.groups.some((each) => each.streams.includes(from.stream.name)) ? [...targets, fold] : targets;
    for (const to of into) {
      const path = narrow
        ? elbow(10 + 8 * (order.get(from.stream.name) % 3), from.y + from.height, columns.left, to.middle, thick)
        : river(columns.stream[1], from.y + from.height / 2, columns.left, to.middle, thick);
      bands.push({
        key: `${from.stream.name} ${to.group?.id ?? "fold"}`,
        tint: order.get(from.stream.name),
        path,
        still: thick === 0,
      });
    }
  }
  const answers = narrow
    ? []
    : [...rows, ...(fold ? [fold] : [])].map((each) => {
        const rate = each.group ? each.group.answers_per_second : each.rate;
        const thick = across(rate);
        const tint = order.get((each.group ?? each.groups[0]).streams[0]) ?? 0;
        return {
          key: each.group?.id ?? "fold",
          tint,
          path: river(columns.right, each.middle, columns.right + 34, each.middle, thick),
          still: thick === 0,
        };
      });
  return { narrow, width, height, columns, rows, fold, streams, bands, answers };
}

const sumOf = (numbers) => numbers.reduce((total, each) => total + each, 0);

function streamsAbove(streams) {
  return streams.map((stream, index) => ({ stream, tint: index, y: index * 46, height: 40 }));
}

/** Each stream near the first of its groups, where the eye begins, and none on top of another. */
function streamsBeside(streams, rows, fold, bottom) {
  const placed = streams.map((stream, index) => {
    const middles = rows
      .filter((each) => each.group.streams.includes(stream.name))
      .map((each) => each.middle)
      .slice(0, 7);
    if (!middles.length && fold) middles.push(fold.middle);
    const middle = middles.length ? sumOf(middles) / middles.length : STREAM / 2;
    return { stream, tint: index, y: middle - STREAM / 2, height: STREAM };
  });
  const down = [...placed].sort((one, other) => one.y - other.y);
  let least = 0;
  for (const each of down) {
    each.y = Math.max(least, each.y);
    least = each.y + STREAM + 12;
  }
  let last = Math.max(bottom - GAP, least - 12);
  for (const each of down.reverse()) {
    each.y = Math.min(each.y, last - STREAM);
    last = each.y - 12;
  }
  return placed;
}

/** A band from one place to another, as a river winds; without width, the line in its middle. */
function river(x0, y0, x1, y1, thick) {
  const bend = (x0 + x1) / 2;
  if (!thick) return `M${x0} ${y0}C${bend} ${y0} ${bend} ${y1} ${x1} ${y1}`;
  const half = thick / 2;
  return (
    `M${x0} ${y0 - half}C${bend} ${y0 - half} ${bend} ${y1 - half} ${x1} ${y1 - half}` +
    `V${y1 + half}C${bend} ${y1 + half} ${bend} ${y0 + half} ${x0} ${y0 + half}Z`
  );
}

/** A band that falls along the left edge and turns into a row, for narrow screens. */
function elbow(x, y0, x1, y1, thick) {
  const wide = Math.min(thick, 8);
  const half = wide / 2;
  if (!thick) return `M${x} ${y0}V${y1 - 10}Q${x} ${y1} ${x + 10} ${y1}H${x1}`;
  return (
    `M${x - half} ${y0}V${y1 - 10}Q${x - half} ${y1 + half} ${x + 10} ${y1 + half}H${x1}` +
    `V${y1 - half}H${x + 10}Q${x + half} ${y1 - half} ${x + half} ${y1 - 10}V${y0}Z`
  );
}
