"""We beside others that match many standing queries: `anabranch bench peers`.

`ratios` are ours over theirs, by `PEER/WORKLOAD/N`: how many times as many items a second, with N queries.

Conjunctions of two or three ranges over photons (`matching.py`), N = 1, 100, 10,000 and 100,000: `json-one` is JSON
with one answer per item, `json-ten` with ten, `xml-one` and `xml-ten` are the same over XML.
Ours are whole triggers with answers committed; theirs are matching alone, with the items in memory.
With `-written` behind it, as in `json-one-written`, theirs have their matches written to files, too.
The peers: `ruler` is Event Ruler, `lucene` Lucene Monitor, `opensearch` the percolator of OpenSearch, `esper` Esper,
`flink` Flink SQL; a file of each says how it is used, and why so.

`windows` as a workload, as in `flink/windows/80`: 80 different windows of event time over XML (`windows.py`), ours with
answers committed.
`joins`, as in `flink/joins/10`: 10 interval joins of photons of XML that differ in a constant (`joins.py`), likewise.

`missing` says why a ratio is not there: a peer that does not install, or does not hold so many queries within the time
and memory that it has; nothing is estimated.
`setup` has the seconds and the heap that the queries of a peer take, `peers` its version and its settings.

It needs Maven and a JDK (17 for some, 21 or newer for others), and fetches hundreds of megabytes the first time, so it
is not among those of `make bench`; `make bench-peers` runs it.
`--only` takes the names of peers, for their conjunctions, `windows` and `joins`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures
from anabranch.bench.peers.building import require_tools
from anabranch.bench.peers.esper import ESPER
from anabranch.bench.peers.event_ruler import EVENT_RULER
from anabranch.bench.peers.flink import FLINK
from anabranch.bench.peers.joins import FULL_JOINS, QUICK_JOINS, joins_beside
from anabranch.bench.peers.lucene_monitor import LUCENE_MONITOR
from anabranch.bench.peers.matching import FULL, QUICK, MatchingBench
from anabranch.bench.peers.opensearch_percolator import OPENSEARCH_PERCOLATOR
from anabranch.bench.peers.peer import PeerEngine
from anabranch.bench.peers.windows import FULL_WINDOWS, QUICK_WINDOWS, windows_beside

PEERS: Mapping[str, PeerEngine] = {
    each.name: each for each in (EVENT_RULER, LUCENE_MONITOR, OPENSEARCH_PERCOLATOR, ESPER, FLINK)
}
"""All peers, by name."""
_WINDOWS, _JOINS = "windows", "joins"


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or the parts of some peers."""
    chosen = chosen_parts((*PEERS, _WINDOWS, _JOINS), only)
    require_tools()
    with workshop() as (spark, folder):
        bench = MatchingBench(spark, folder, QUICK if quick else FULL)
        bench.measure([PEERS[name] for name in chosen if name in PEERS])
        if _WINDOWS in chosen:
            windows_beside(bench, list(PEERS.values()), QUICK_WINDOWS if quick else FULL_WINDOWS)
        if _JOINS in chosen:
            joins_beside(bench, list(PEERS.values()), QUICK_JOINS if quick else FULL_JOINS)
    return {
        "items": bench.scale.items,
        "ratios": bench.ratios,
        "spread": bench.spreads,
        "setup": bench.setups,
        "peers": bench.peers,
        "missing": bench.missing,
    }


def markdown(figures: Any) -> str:
    """The ratios as tables, one for each peer, with what is missing."""
    lines = [line for name, peer in figures["peers"].items() for line in _table(name, peer, figures)]
    absent = (f"No figure for `{key}`: {reason}." for key, reason in figures["missing"].items() if "/" not in key)
    return "\n".join([*lines, *absent]) + "\n"


def _table(name: str, peer: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[str]:
    ratios = {tuple(key.split("/")[1:]): each for key, each in figures["ratios"].items() if key.startswith(f"{name}/")}
    numbers = sorted({int(number) for _, number in ratios})
    yield f"{peer['title']} {peer['version']} on Java {peer['java']}: {peer.get('settings', 'not measured')}."
    yield ""
    yield f"| workload | {' | '.join(f'{number:,}' for number in numbers)} |"
    yield f"| --- |{' --- |' * len(numbers)}"
    for workload in dict.fromkeys(workload for workload, _ in ratios):
        cells = (ratios.get((workload, str(number))) for number in numbers)
        yield f"| {workload} | {' | '.join('' if each is None else f'{each:.2g}' for each in cells)} |"
    yield ""
    missing = {key: each for key, each in figures["missing"].items() if key.startswith(f"{name}/")}
    for key, reason in missing.items():
        yield f"No figure for `{key}`: {reason}."
    if missing:
        yield ""
