"""The law and Saxon side by side, after every moment of random streams."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

from lxml import etree

from anabranch.law.history.timeline import answer, arrivals
from history import saxon
from history.annotated import Annotated
from history.asking import Asked
from history.writing import Writer
from oracle.saxon import canonical

ROOT = '<root xmlns:s="urn:anabranch:stream">{}</root>'


def case(number: int) -> tuple[str, dict[str, str]]:
    """A query and the streams that it is asked about, mostly one."""
    random = Random(number)
    names = ("s",) if random.random() < 0.8 else ("s", "t")
    streams = {name: Writer(random).stream(random.randint(3, 10) // len(names)) for name in names}
    return Writer(random).query(*names), streams


def differences(query: str, streams: dict[str, str], judged: float = 1) -> Iterator[str]:
    """Where the law and Saxon differ; `judged` is the part of the moments that are looked at."""
    asked = Asked(query, **streams)
    annotated = {name: Annotated() for name in streams}
    written = {name: iter(etree.fromstring(ROOT.format(text))) for name, text in streams.items()}
    chosen = Random(query)
    for each in arrivals(asked.documents, asked.streams):
        ours = asked.documents[each.stream].take(each.element, each.at)
        theirs = annotated[each.stream].take(next(written[each.stream]))
        for moment, reached in zip(ours, theirs, strict=True):
            assert moment == Fraction(reached), (query, streams)
            if chosen.random() < judged:
                yield from _difference(asked, annotated)
    assert not any(each.admission.dead for each in asked.documents.values()), (query, streams)


def _difference(asked: Asked, annotated: dict[str, Annotated]) -> Iterator[str]:
    """Where the law and Saxon differ at one moment."""
    now = max(each.now for each in annotated.values())
    thens = (None, *saxon.moments(asked.query, now))
    documents = {name: {then: each.text(then) for then in thens} for name, each in annotated.items()}
    ours = canonical(answer(asked.query, asked.documents).text)
    theirs = saxon.judge(asked.query, now, documents)
    if ours != theirs:
        yield f"at {now}\nlaw:   {ours}\nsaxon: {theirs}"
