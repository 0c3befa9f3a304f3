// The lanes of a stream's evolution: which rows there are, where on the axis an epoch is, which accents are one mark.
//
// rowsOf(evolution, partition, search)   a row for each path and described subset, in the order of paths:
//                                        [{key, path, items, partition, first, stretches, accents}]
// scaleOf(evolution, rows, even)         {place(epoch) -> 0..1, ticks: [{epoch, place}]}
// crowded(evolution, rows)               whether changes stand so close that an axis by epochs would hide them
// marksOf(row, place, width)             [{place, accents}]: accents that would cover each other are one mark
//
// An axis by epochs shows when things happened; one by changes gives each change the same room, so that three accents
// within a minute of a year can be told apart.

const MOST_TICKS = 8;
const NEAR = 26; // pixels between two marks
const EVERYTHING = "all items";

export function rowsOf(evolution, partition, search) {
  const wanted = search.trim().toLowerCase();
  const rows = new Map();
  const row = (path, items, part) => {
    const key = JSON.stringify([path, part, items]);
    if (!rows.has(key)) rows.set(key, { key, path, items, partition: part, stretches: [], accents: [] });
    return rows.get(key);
  };
  const kept = (path, part) => (partition === null || part === partition) && path.toLowerCase().includes(wanted);
  for (const lane of evolution.lanes) {
    if (!kept(lane.path, lane.partition)) continue;
    for (const stretch of lane.stretches) row(lane.path, stretch.items, lane.partition).stretches.push(stretch);
  }
  for (const accent of evolution.accents) {
    if (kept(accent.path, accent.partition)) row(accent.path, accent.items, accent.partition).accents.push(accent);
  }
  const sorted = [...rows.values()].sort(
    (one, other) =>
      one.path.localeCompare(other.path, "en", { numeric: true }) ||
      one.partition - other.partition ||
      (other.items === EVERYTHING) - (one.items === EVERYTHING) ||
      beginning(one) - beginning(other) ||
      one.items.localeCompare(other.items, "en", { numeric: true }),
  );
  let before = null;
  for (const each of sorted) {
    each.first = !before || before.path !== each.path || before.partition !== each.partition;
    before = each;
  }
  return sorted;
}

function beginning(row) {
  return Math.min(...row.stretches.map((each) => each.from_epoch), ...row.accents.map((each) => each.epoch));
}

/** The epochs where anything changes, with both ends of the axis. */
function stopsOf(evolution, rows) {
  const { first, last } = evolution.epochs;
  const stops = new Set([first, last]);
  for (const row of rows) {
    for (const each of row.stretches) {
      stops.add(each.from_epoch);
      if (each.to_epoch !== null) stops.add(each.to_epoch);
    }
    for (const each of row.accents) stops.add(each.epoch);
  }
  return [...stops].filter((each) => each >= first && each <= last).sort((one, other) => one - other);
}

export function crowded(evolution, rows) {
  const stops = stopsOf(evolution, rows);
  const span = Math.max(1, stops.at(-1) - stops[0]);
  return stops.some((each, index) => index > 0 && (each - stops[index - 1]) / span < 0.04);
}

export function scaleOf(evolution, rows, even) {
  const { first, last } = evolution.epochs;
  const span = Math.max(1, last - first);
  if (!even) {
    const place = (epoch) => Math.min(1, Math.max(0, (epoch - first) / span));
    return { place, ticks: roundTicks(first, last).map((epoch) => ({ epoch, place: place(epoch) })) };
  }
  const stops = stopsOf(evolution, rows);
  const parts = Math.max(1, stops.length - 1);
  const place = (epoch) => {
    let low = 0;
    let high = stops.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (stops[middle] <= epoch) low = middle;
      else high = middle - 1;
    }
    const next = stops[low + 1];
    const within = next === undefined ? 0 : Math.max(0, epoch - stops[low]) / (next - stops[low]);
    return Math.min(1, (low + within) / parts);
  };
  const each = Math.ceil(stops.length / MOST_TICKS);
  return {
    place,
    ticks: stops.filter((_, index) => index % each === 0).map((epoch) => ({ epoch, place: place(epoch) })),
  };
}

function roundTicks(first, last) {
  const span = Math.max(1, last - first);
  const rough = span / (MOST_TICKS - 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? 1);
  const ticks = [];
  for (let each = Math.ceil(first / step) * step; each <= last; each += step) ticks.push(each);
  return ticks;
}

export function marksOf(row, place, width) {
  const marks = [];
  for (const accent of [...row.accents].sort((one, other) => one.epoch - other.epoch || one.number - other.number)) {
    const at = place(accent.epoch);
    const last = marks.at(-1);
    if (last && (at - last.place) * width < NEAR) last.accents.push(accent);
    else marks.push({ place: at, accents: [accent] });
  }
  return marks;
}
