"""What is on display after every moment of some streams of updates, and at their end.

The display is the answer of the query over the documents as they stand, with the time of the latest element as now; it
is found anew at each moment.
It is brought into the units that the display has by then (`display_units.py`).
Where a query fails as a whole (a sum over what is no number, say) nothing is on display; the dead letters say why.
Before the first moment the display is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from typing import Unpack

from anabranch.algebra.accents.events import judged
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.law.answer import Answer, NoAnswer, ShownAnswer
from anabranch.law.env import Env
from anabranch.law.evolution.vantage import Change
from anabranch.law.history.admission import UpdateAdmission
from anabranch.law.history.display_units import DisplayUnits
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.evaluate import Around, HistoryEvaluator, form_around, refuse_joined_windows
from anabranch.law.history.units import opened
from anabranch.law.inputs import texts_at
from anabranch.stream.elements import Accent, DeadLetter, Item, Region, StreamElement, StreamToken, Update
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Element
from anabranch.values.placing import seconds_at


@dataclass(frozen=True, slots=True)
class Arriving:
    """An element on its way to the document of its stream, with its time (LAWS 1.3)."""

    stream: str
    partition: int
    element: StreamElement
    at: Fraction


def answer(
    query: ast.Query,
    documents: Mapping[str, EditedDocument],
    units: DisplayUnits | None = None,
    **around: Unpack[Around],
) -> Answer:
    """Answer a checked query over documents as they stand, in these units, or in those of its start.

    Now is the time of the latest element of the streams that are given.
    `NoAnswer` where the query fails as a whole.
    """
    refuse_joined_windows(query, around.get("text"))
    form = form_around(query, around)
    query = with_json_results(query, form, edited=True)
    now = max((each.now for each in documents.values()), default=Fraction(0))
    contents = {name: each.contents for name, each in documents.items()}
    evaluator = HistoryEvaluator(query, contents, now, **around)
    try:
        values = evaluator.top(query.body, Env.of(query))
        values = values if units is None else units.forward(values)
        return Answer(values, evaluator.dead, [], around.get("name"), form == "json")
    except DynamicError as error:
        raise NoAnswer(error, [*dict.fromkeys(evaluator.dead), evaluator.failed(error)]) from error


def displays(
    query: ast.Query,
    documents: Mapping[str, EditedDocument],
    arriving: Iterable[Arriving],
    dead: list[DeadLetter],
    units: DisplayUnits | None = None,
    **around: Unpack[Around],
) -> Iterator[ShownAnswer]:
    """What is on display after every moment, also where that is the same, while elements arrive in their merged order.

    `documents` are taken as they stand and follow what arrives; `units` follow the accents, before these are taken.
    `dead` receives each failure in the query once, and one letter whenever the query begins to fail as a whole.
    """
    why: DynamicError | None = None
    for each in arriving:
        for moment in documents[each.stream].take(each.element, each.at, each.partition):
            letters: list[DeadLetter] = []
            failed = why is not None
            try:
                found = answer(query, documents, units, **around)
                letters = found.dead
                now, why = found.text, None
            except DynamicError as error:
                letter = DeadLetter(each.element.place, error.message, "", error.code, around.get("name"))
                letters = letters if failed else [*letters, letter]
                now, why = "", error
            dead += [letter for letter in dict.fromkeys(letters) if letter not in dead]
            yield ShownAnswer(max(moment, *(each.now for each in documents.values())), now, why)


def arrivals(
    documents: Mapping[str, EditedDocument],
    streams: Mapping[str, Sequence[Iterable[StreamElement | DeadLetter]]],
    times: Mapping[str, Path | None] | None = None,
    ends: Callable[[str, int, Change], bool] = lambda stream, partition, change: False,
) -> Iterator[Arriving]:
    """The good elements of some streams, given partition by partition, in the order of LAWS 1.2; for `displays`.

    Each must be applied to its document before the next is asked for, because the next is judged by it; accents are
    applied here.
    `times` are the streams' time paths; nothing more arrives behind a change of a stream that `ends` the query.
    """
    partitions = (
        _timed(documents[stream].admission, stream, number, elements, (times or {}).get(stream))
        for stream, several in streams.items()
        for number, elements in enumerate(several)
    )
    for each in merge(*partitions, key=lambda each: each.at):
        change = each.letter if isinstance(each, _Doubtful) else each.element
        if isinstance(change, Accent | DeadLetter):
            if (evolution := documents[each.stream].admission.evolutions.get(each.partition)) is not None:
                judged(change, evolution)
            if ends(each.stream, each.partition, change):
                return
        if isinstance(each, Arriving):
            yield each


@dataclass(frozen=True, slots=True)
class _Doubtful:
    """A dead letter that leaves paths in doubt; it has no time of its own, and does not advance its partition."""

    stream: str
    partition: int
    letter: DeadLetter
    at: Fraction


def _timed(
    admission: UpdateAdmission,
    stream: str,
    partition: int,
    elements: Iterable[StreamElement | DeadLetter],
    path: Path | None,
) -> Iterator[Arriving | _Doubtful]:
    for each in elements:
        if isinstance(each, DeadLetter):
            yield _Doubtful(stream, partition, each, admission.reached(partition))
            continue
        at = time_of(each, path, admission.reached(partition))
        if admission.judge(each, at, partition) is not None:
            yield Arriving(stream, partition, each, at)


def time_of(element: StreamElement, path: Path | None, before: Fraction) -> Fraction:
    """The time of an element (LAWS 1.3); a time path looks through regions, and into what they hold between items."""
    if element.at is not None:
        return Fraction(element.at)
    match element:
        case Item(tree):
            items: Sequence[Child] = (tree,)
        case Region(_, content) | Update(_, _, _, content) | StreamToken(_, _, content):
            items = content
        case _:
            items = ()
    found = (texts_at(each, path) for node in items for each in opened(node) if isinstance(each, Element) and path)
    times = (seconds_at(text, path) for texts in found for text in texts if path)
    return next((time for time in times if time is not None), before)
