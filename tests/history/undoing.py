"""The accents in the update stream of a display, undone in its text: a reader apart from the engine (LAWS 4.9 e).

A display is read as XML by the standard library, its outermost elements as items; a number at a path that alters have
named is taken back by all of them, in fractions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from xml.etree import ElementTree

from anabranch.algebra.display.replay import DisplayReader, Replay
from anabranch.spark.answers.log import AnswerLog
from anabranch.stream.elements import Accent, Alter

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?(E-?[0-9]+)?")


def undone(log: AnswerLog, name: str) -> list[tuple[Fraction, str]]:
    """What the log of a subscription shows, moment by moment, with the alters before each moment undone."""
    return _changes((at, taken_back(text, units)) for at, text, units in moments(log, name))


def in_fractions(shown: Iterable[tuple[Fraction, str]]) -> list[tuple[Fraction, str]]:
    """The same of displays that have changed no units."""
    return _changes((at, taken_back(text, {})) for at, text in shown)


def moments(log: AnswerLog, name: str) -> list[tuple[Fraction, str, dict[str, tuple[Fraction, Fraction]]]]:
    """The displays of a subscription, each with the units that its update stream has told until then, by path."""
    subscription = log.subscription(name)
    assert subscription is not None
    replay, reader = Replay(), DisplayReader()
    units: dict[str, tuple[Fraction, Fraction]] = {}
    found = []
    for manifest in log.manifests.since(subscription.first):
        for chunk in log.chunks(manifest, subscription.id):
            for moment in log.text(chunk).splitlines(keepends=True):
                for element in reader.elements(moment):
                    if isinstance(element, Accent):
                        assert isinstance(element.evolution, Alter)
                        a, b = units.get(str(element.evolution.path), (Fraction(1), Fraction(0)))
                        by = element.evolution.by
                        units[str(element.evolution.path)] = a * by.a, b * by.a + by.b
                for each in replay.feed(moment):
                    found.append((Fraction(each.at), replay.text, dict(units)))
    return found


def taken_back(text: str, units: Mapping[str, tuple[Fraction, Fraction]]) -> str:
    """A display in the units of its start, with all numbers of elements and attributes as fractions."""
    root = ElementTree.fromstring(f"<answer>{text}</answer>")
    for item in root:
        _take_back(item, (), units)
    return ElementTree.tostring(root, encoding="unicode")


def _take_back(
    element: ElementTree.Element, steps: tuple[str, ...], units: Mapping[str, tuple[Fraction, Fraction]]
) -> None:
    for name, value in element.attrib.items():
        element.set(name, _number(value, units.get("/".join((*steps, f"@{name}")))))
    if not len(element) and element.text:
        element.text = _number(element.text, units.get("/".join(steps) or "."))
    for child in element:
        _take_back(child, (*steps, child.tag), units)


def _number(text: str, unit: tuple[Fraction, Fraction] | None) -> str:
    if not _NUMBER.fullmatch(text):
        return text
    a, b = unit or (Fraction(1), Fraction(0))
    return str((Fraction(Decimal(text)) - b) / a)


def _changes(shown: Iterable[tuple[Fraction, str]]) -> list[tuple[Fraction, str]]:
    found: list[tuple[Fraction, str]] = []
    for at, text in shown:
        if text != (found[-1][1] if found else "<answer />"):
            found.append((at, text))
    return found
