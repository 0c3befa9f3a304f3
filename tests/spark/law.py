"""What the reference says of streams on disk: the judge of trunks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.language import ast
from anabranch.law import Input, evaluate, stream_input
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source, read_partitions
from anabranch.stream.reading.split import Cut, DocumentSplitter

_PUNCTUATION = b'<s:punctuation xmlns:s="urn:anabranch:stream" where="true()"%s/>\n'
CLOSING = {True: _PUNCTUATION % b' at="1000000"' + _PUNCTUATION % b' at="1000001"', False: _PUNCTUATION % b""}
"""Closes all windows of a stream that is timed, or not; the second lets the merge take the first of the other inputs
(LAWS 1.2), where times of arrival do not.
"""
_HAS_TIME = re.compile(rb"<t>[0-9.-]+</t>|^<s:punctuation[^>]* at=")
_HAS_NONE = re.compile(rb"^<(?![^>]*[ :]at=)")


def elements_of(text: str) -> list[bytes]:
    """The items and punctuations of a document, each as it is written there."""
    splitter = DocumentSplitter(Limits())
    return [cut.raw for cut in (*splitter.feed(text.encode()), *splitter.finish())]


def known_times(elements: Sequence[bytes], *, timed: bool) -> list[bytes]:
    """Those whose times do not depend on when they arrive, for a stream without an end: the reference has no clock."""
    return [each for each in elements if (_HAS_TIME if timed else _HAS_NONE).search(each)]


@dataclass(frozen=True, slots=True)
class Law:
    """What is due."""

    text: str
    dead: Counter[DeadLetter]
    late: set[str]


def law_of(
    query: ast.Query, sources: Sequence[Source], *, endless: bool, late: Collection[str] = (), name: str = "q"
) -> Law:
    """What the reference answers; `late` are the streams that had begun before the subscription."""
    inputs: dict[str, Input] = {}
    dead: Counter[DeadLetter] = Counter()
    for source in sources:
        root, partitions = read_partitions(source, Limits())
        inputs[source.name], bad = stream_input(
            root,
            partitions,
            time=source.time,
            slack=source.slack,
            origin=source.origin,
            late=source.name in late,
            endless=endless,
        )
        dead.update(bad)
    answer = evaluate(query, inputs, name=name)
    return Law(answer.text, dead + Counter(answer.dead), set(map(_as_line, answer.late)))


def _as_line(place: Place) -> str:
    return json.dumps(asdict(place), ensure_ascii=False)


def good_lines(*parts: bytes) -> list[bytes]:
    """The parts of a partition of lines without the items that punctuations before them exclude (LAWS 4.5)."""
    evolution, reader = Evolution(), ElementReader("s", "lines", Limits(), parse_root(b"<r>"))
    found: list[bytes] = []
    for part in parts:
        kept = []
        for line in part.splitlines(keepends=True):
            (element,) = reader.elements([Cut(0, len(line), line)], "f")
            if isinstance(element, DeadLetter) or not isinstance(judged(element, evolution), DeadLetter):
                kept.append(line)
        found.append(b"".join(kept))
    return found
