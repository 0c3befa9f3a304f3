"""The document of a stream for who begins late, by the law: as it stands, with lives that begin there (LAWS 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import count

from anabranch.branch.document.projection import LateStart
from anabranch.law.history.chains import Chain, Content, Lived, Version
from anabranch.law.history.document import EditedDocument


def begun_at(document: EditedDocument, now: Fraction) -> EditedDocument:
    """A document of its own, with what shows of another."""
    fresh = EditedDocument(document.root)
    fresh.now = now
    fresh.admission.times = dict.fromkeys(document.admission.times, now)
    chains: dict[Chain, Chain] = {}
    numbers = fresh._numbers
    fresh.entries = _begun(document.entries, now, numbers, chains)
    fresh.admission.evolutions = document.admission.evolutions
    known = document.admission.register
    for chain in known.known:
        if chain not in chains:
            chains[chain] = _gone(chain, now)
    known.copied_to(fresh.admission.register, chains)
    fresh.admission.open = deepcopy(document.admission.open)
    return fresh


def late_start(document: EditedDocument, now: Fraction) -> LateStart:
    """The same for what production keeps."""
    return LateStart(document.contents, document.admission, now)


def _begun(content: Sequence[Content], now: Fraction, numbers: count[int], chains: dict[Chain, Chain]) -> list[Content]:
    """What shows of some content, as if it came now."""
    host: list[Content] = []
    for each in content:
        match each:
            case Lived(node, namespaces, _, place, inner):
                host.append(Lived(node, namespaces, now, place, _begun(inner, now, numbers, chains)))
            case Chain(depth, between, _, versions):
                chain = chains[each] = Chain(depth, between, host, inside=each.inside, is_open_end=each.is_open_end)
                host.append(chain)
                shown = _begun(versions[-1].content, now, numbers, chains)
                chain.versions.append(Version(now, next(numbers), shown))
    return host


def _gone(chain: Chain, now: Fraction) -> Chain:
    """A region that stands in what was replaced: still known, never to be seen."""
    gone = Chain(chain.depth, chain.between, [], [Version(now, 0)])
    gone.host.append(gone)
    return gone
