// The places of peers and links on the map, and the widths of links.
//
// layout(network, width, height)   {nodes: [{peer, x, y, side}], links: [{link, x1, y1, x2, y2, planned, measured}]}
//
// Peers that have a place stand there; those without stand around the peer that they are joined with, or else all
// around. Widths are the root of bytes per second, one scale for planned and measured, so that both can be compared.

const MARGIN = 56;
const WIDEST = 18;
const MOST_STRETCHED = 1.8; // one direction of the map against the other

export function layout(network, width, height) {
  const { peers, links } = network;
  const placed = new Map();
  const known = peers.filter((each) => Number.isFinite(each.x) && Number.isFinite(each.y));
  const box = boundsOf(known);
  const apart = known.length > 1 && (box.across > 0 || box.down > 0);
  if (apart) {
    const margin = MARGIN + (known.length < peers.length ? 34 : 0);
    // as large as fits, in the middle
    const wide = (width - 2 * margin) / (box.across || 1e-9);
    const high = (height - 2 * margin) / (box.down || 1e-9);
    const [across, down] = [Math.min(wide, MOST_STRETCHED * high), Math.min(high, MOST_STRETCHED * wide)];
    const left = (width - box.across * across) / 2;
    const top = (height - box.down * down) / 2;
    for (const each of known)
      placed.set(each.name, { x: left + (each.x - box.left) * across, y: top + (each.y - box.top) * down });
  }
  const rest = peers.filter((each) => !placed.has(each.name));
  const hosts = new Map();
  const lonely = [];
  for (const peer of rest) {
    const link = links.find(
      (each) => (each.from === peer.name && placed.has(each.to)) || (each.to === peer.name && placed.has(each.from)),
    );
    if (!link || peer.super) lonely.push(peer);
    else {
      const host = link.from === peer.name ? link.to : link.from;
      hosts.set(host, [...(hosts.get(host) ?? []), peer]);
    }
  }
  circle(lonely, placed, width, height, apart);
  for (const [host, guests] of hosts) {
    const { x, y } = placed.get(host);
    const taken = links.flatMap((each) => {
      const other = placed.get(each.from === host ? each.to : each.to === host ? each.from : "");
      return other ? [Math.atan2(other.y - y, other.x - x)] : [];
    });
    guests.forEach((peer) => {
      const angle = freest(taken);
      taken.push(angle);
      placed.set(peer.name, {
        x: inside(x + 62 * Math.cos(angle), width),
        y: inside(y + 62 * Math.sin(angle), height),
      });
    });
  }
  const most = Math.max(1e-9, ...links.map((each) => Math.max(each.planned ?? 0, each.measured ?? 0)));
  const across = (bytes) => (bytes > 0 ? Math.max(1.5, WIDEST * Math.sqrt(bytes / most)) : 0);
  return {
    nodes: peers.map((peer) => ({ peer, ...placed.get(peer.name) })),
    links: links.flatMap((link) => {
      const [from, to] = [placed.get(link.from), placed.get(link.to)];
      if (!from || !to) return [];
      return [
        {
          link,
          x1: from.x,
          y1: from.y,
          x2: to.x,
          y2: to.y,
          planned: across(link.planned),
          measured: across(link.measured),
        },
      ];
    }),
  };
}

/** The direction that is farthest from those that are taken. */
function freest(taken) {
  const room = (angle) =>
    Math.min(Math.PI, ...taken.map((each) => Math.acos(Math.max(-1, Math.min(1, Math.cos(each - angle))))));
  const angles = Array.from({ length: 16 }, (_, index) => (index * Math.PI) / 8 - Math.PI / 2);
  return angles.reduce((best, each) => (room(each) > room(best) + 1e-9 ? each : best));
}

function inside(place, size) {
  return Math.max(24, Math.min(size - 24, place));
}

function boundsOf(peers) {
  const xs = peers.map((each) => each.x);
  const ys = peers.map((each) => each.y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  return { left, top, across: Math.max(...xs) - left, down: Math.max(...ys) - top };
}

function circle(peers, placed, width, height, aside) {
  const radius = Math.min(width, height) / 2 - (aside ? 20 : MARGIN);
  peers.forEach((peer, index) => {
    const angle = (2 * Math.PI * index) / peers.length - Math.PI / 2;
    const across = peers.length > 1 || aside ? radius : 0;
    placed.set(peer.name, {
      x: width / 2 + across * Math.cos(angle) * Math.min(1.5, width / height),
      y: height / 2 + across * Math.sin(angle),
    });
  });
}
