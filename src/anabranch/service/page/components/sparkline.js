// A small curve beside its number, never instead of it.
//
// <${Sparkline} of=${() => [1, 2, null, 3]} turn=${turn} label="items a second" />
// From zero to the largest value; null is a gap. The values are asked for and drawn anew when `turn` changes.
import { html, useMemo } from "../html.js";

function pathOf(values) {
  const top = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const step = values.length > 1 ? 100 / (values.length - 1) : 0;
  let drawn = false;
  return values
    .map((value, index) => {
      if (value === null || value === undefined) {
        drawn = false;
        return "";
      }
      const point = `${drawn ? "L" : "M"}${(index * step).toFixed(1)} ${(20 - (value / top) * 18).toFixed(1)}`;
      drawn = true;
      return point;
    })
    .join("");
}

export function Sparkline({ of, turn, label, hue = 1 }) {
  const path = useMemo(() => pathOf(of()), [turn]);
  return html`<svg class=${`sparkline line-${hue}`} viewBox="0 0 100 21" preserveAspectRatio="none" role="img" aria-label=${label}>
    <path d=${path} vector-effect="non-scaling-stroke" />
  </svg>`;
}
