"""Elements of a partition as they pass, one after the other: what they say is taken in, and the bad ones are set aside.

Bad are, besides what could not even be read (LAWS 4.5): an accent that is not valid where it stands, an item that
carries a path which was dropped for it, an item that a punctuation said would not come.
"""

from __future__ import annotations

from anabranch.algebra.accents.evolution import Evolution, Refusal
from anabranch.algebra.accents.sets import description_of
from anabranch.predicate import NOTHING
from anabranch.stream.elements import LONGEST_RAW, Accent, DeadLetter, Doubt, Item, Punctuation, StreamElement
from anabranch.stream.reading.wire import write
from anabranch.stream.serialize import serialize


def judged(element: StreamElement | DeadLetter, evolution: Evolution) -> StreamElement | DeadLetter:
    """The element, if it may stand where it stands, else a dead letter; the evolution goes on behind it."""
    match element:
        case Item(tree, place):
            reason = evolution.bad(tree)
            return element if reason is None else DeadLetter(place, reason, serialize(tree)[:LONGEST_RAW])
        case Accent():
            refusal = evolution.apply(element)
            return element if refusal is None else _refused(refusal)
        case Punctuation(where):
            if where is not None:
                evolution.close(where)
        case DeadLetter():
            for doubt in element.doubts:
                evolution.mistrust(doubt.path, doubt.where)
        case _:
            pass
    return element


def _refused(refusal: Refusal) -> DeadLetter:
    doubts = (Doubt(refusal.accent.evolution.path, description_of(refusal.unknown)),)
    raw = write(refusal.accent)[:LONGEST_RAW]
    return DeadLetter(refusal.accent.place, refusal.reason, raw, doubts=doubts if refusal.unknown != NOTHING else ())


def is_change(element: StreamElement | DeadLetter) -> bool:
    """Whether an element says something of the items behind it."""
    match element:
        case Accent():
            return True
        case Punctuation(where):
            return where is not None
        case DeadLetter():
            return bool(element.doubts)
        case _:
            return False
