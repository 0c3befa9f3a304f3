// Texts and numbers for people.
//
// visible(text)       a text of others: control, bidirectional and invisible characters are shown as escapes
//                     (\x1b, \u202e), so that data cannot act on the page or hide in it; newlines and tabs stay
// inline(text)        the same on one line: newlines and tabs are shown, too (↵, ⇥)
// shortened(text, n)  the first n characters, with an ellipsis where there are more
// count(n)            1,234,567          rate(n)      12.3 k/s     amount(n)   12.3 k
// bytes(n)            1.2 MB             byteRate(n)  1.2 MB/s     percent(x)  99.8 %
// seconds(s)          0.4 s, 3 min 20 s  ms(n)        140 ms, 1.4 s
// clock(time)         14:03:22, the local time of an ISO text or of seconds since 1970; moment(time) with its date
// plural(n, one, many)  "1 item", "2 items"
// Numbers that are missing (null, undefined, NaN) are shown as a dash.

const DASH = "–";
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function missing(n) {
  return typeof n !== "number" || !Number.isFinite(n);
}

// C0 and C1 controls, soft hyphen, zero-width and bidirectional characters, line separators, fillers, the BOM,
// interlinear and tag characters, and halves of surrogate pairs.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

function escaped(character) {
  const point = character.codePointAt(0);
  if (point < 0x100) return `\\x${point.toString(16).padStart(2, "0")}`;
  return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, "0")}`;
}

export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, escaped);
}

export function inline(text) {
  return visible(text).replaceAll("\n", "↵").replaceAll("\t", "⇥");
}

export function shortened(text, length) {
  const whole = String(text ?? "");
  if (whole.length <= length) return whole;
  const cut = whole.slice(0, length);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

export function count(n) {
  return missing(n) ? DASH : grouped.format(n);
}

function scaled(n, base, units) {
  let size = Math.abs(n);
  let unit = 0;
  while (size >= base * 0.9995 && unit < units.length - 1) {
    size /= base;
    unit += 1;
  }
  return [three.format(n < 0 ? -size : size), units[unit]];
}

export function amount(n) {
  if (missing(n)) return DASH;
  const [size, unit] = scaled(n, 1000, ["", "k", "M", "G", "T"]);
  return unit ? `${size} ${unit}` : size;
}

export function rate(n) {
  return missing(n) ? DASH : `${amount(n)}/s`;
}

export function bytes(n) {
  if (missing(n)) return DASH;
  const [size, unit] = scaled(n, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);
  return `${size} ${unit}`;
}

export function byteRate(n) {
  return missing(n) ? DASH : `${bytes(n)}/s`;
}

export function percent(x) {
  return missing(x) ? DASH : `${three.format(x * 100)} %`;
}

export function ms(n) {
  if (missing(n)) return DASH;
  return n < 1000 ? `${three.format(n)} ms` : seconds(n / 1000);
}

export function seconds(s) {
  if (missing(s)) return DASH;
  if (s < 60) return `${three.format(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

function dated(time) {
  const date = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  return Number.isNaN(date.getTime()) ? null : date;
}

export function clock(time) {
  const date = time === null || time === undefined ? null : dated(time);
  return date ? date.toLocaleTimeString("en-GB") : DASH;
}

export function moment(time) {
  const date = time === null || time === undefined ? null : dated(time);
  return date ? `${date.toLocaleDateString("en-CA")} ${date.toLocaleTimeString("en-GB")}` : DASH;
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}
