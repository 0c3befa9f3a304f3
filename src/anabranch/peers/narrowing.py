"""Sends parts of a stream's items: of JSON always, and of XML behind its accents.

Items of XML are laid out by the flow's own query, as a subscription of the peer, until the first accent comes.
Parts of items of JSON are lines that keep the types of what they hold (LAWS 7.1), which no query could write: so these
items are read again, selected by the flow's query, and their lines are written with the needed members only.
A member that is on the way to a needed one stays what it is, be it an object with less in it, the member of an array,
a number or `null`; so a reader finds, and finds not, by `/` and by `.` what it would in the whole item.

An accent changes what a condition means from there on, and that depends on when a subscription began (LAWS 3.6, 4).
So a flow is asked for each item in the units of everybody behind it: a subscription's units are those of the stream
when it began, and who began between the same two accents has the same.
An item that somebody selects is sent as it came, raw values and all; of its paths those of the flow, and those that
descriptions of accents and punctuations have named so far.
Accents travel as they came, so each reader follows them by itself: whether an item is sent is all that is decided on
the way, by the same canonical values that its reader sees.

Everything is sent as long as that cannot be shown:

* an item is bad for what was announced before it (LAWS 4.5): its readers set it aside, too;
* the path by which a stream's progress is measured has evolved;
* a peer has begun to make a flow for somebody who was there before, so it does not know in which units that one asks;
* a description names an attribute, or a name with a prefix, which parts of items do not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from anabranch.algebra.accents.sets import below
from anabranch.errors import DynamicError
from anabranch.language import parse
from anabranch.law.evolution.canonical import canonical
from anabranch.logic import leaves
from anabranch.peers.programs import MadeFlow
from anabranch.runtime.standing import standing
from anabranch.runtime.units import Units
from anabranch.sharing.tree import ITEM, Steps
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.evolution.views import KnownLog
from anabranch.stream.elements import Accent, DeadLetter, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.json_items import write_value
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element
from anabranch.values.objects.by_type import is_typed, member_path, with_typed
from anabranch.values.objects.parts import Members, members_at, with_members


def stays_whole(log: KnownLog, axes: Iterable[ProgressAxis]) -> str | None:
    """Why all of a stream is sent behind the events of its log; None where parts of items will do."""
    measured = [Path(tuple(axis.path.split("/")[1:])) for axis in axes]
    for each in log.events:
        for path in each.announced.paths:
            if any(below(path, axis) or below(axis, path) for axis in measured):
                return f"windows are measured by '{path}', which has evolved"
    for path in described(log):
        if any(step.startswith("@") or ":" in step for step in path.steps):
            return f"a description names '{path}'"
    return None


def described(log: KnownLog) -> list[Path]:
    """The paths that descriptions have named so far."""
    found: dict[Path, None] = {}
    for logged in log.events:
        match logged.announced.event:
            case Accent(where) | Punctuation(where):
                wheres = [where]
            case DeadLetter(doubts=doubts):
                wheres = [each.where for each in doubts]
        found |= dict.fromkeys(each.path for where in wheres if where is not None for each in leaves(where))
    return list(found)


class NarrowedItems:
    """The parts of a stream's items that a flow carries, behind the events of a log where there are any."""

    def __init__(
        self,
        made: MadeFlow,
        stream: KnownStream,
        log: KnownLog | None = None,
        first_epochs: Iterable[int] = (),
        partition: int = 0,
    ) -> None:
        """`first_epochs` are those of the subscriptions that depend on the flow."""
        self._root = stream.root()
        self._evolution = log.evolutions[partition] if log else None
        views = [log.view(each) for each in sorted(set(first_epochs))] if log else []
        self._views = list({id(each): each.evolutions[partition] for each in views}.values())
        self._select = evaluator(made.text)
        assert made.form is not None
        compared = {path[ITEM:] for path in made.form.paths if is_typed(path[ITEM:])}
        self._compared = sorted(compared) if made.kind == "lines" else []
        """The paths of what is looked up and compared."""
        paths = [path.steps for path in described(log)] if log else []
        self._written = _Lines(made, self._root, paths) if made.kind == "lines" else _Parts(made, self._root, paths)

    def is_bad(self, item: Element) -> bool:
        """Whether an item is bad for what was announced before it."""
        return self._evolution is not None and self._evolution.bad(item) is not None

    def text(self, item: Element) -> str | None:
        """What is sent of an item: nothing, a part of it, or all where a condition fails for it."""
        try:
            if not any(self._select.item(self._root, each).text for each in self._canonical(item)):
                return None
            return self._written.part(item)
        except DynamicError:
            return self._written.whole(item)

    def showing(self, item: Element, shows: Callable[[Element], object]) -> str:
        """What is sent of an item that has to show the stream's progress: all of it, unless a part does."""
        text = self.text(item)
        is_enough = text is not None and shows(self._written.narrowed(item)) == shows(item)
        return text if text is not None and is_enough else self._written.whole(item)

    def _canonical(self, item: Element) -> Sequence[Element]:
        """The item in the units of everybody, each once."""
        every = [canonical(item, view) for view in self._views] if self._evolution else [item]
        if self._compared:
            every = [with_typed(each, self._compared) for each in dict.fromkeys(every)]
        return list({id(each): each for each in every}.values())


class _Parts:
    """Parts of items as XML, by a query."""

    def __init__(self, made: MadeFlow, root: Element, paths: Iterable[Steps]) -> None:
        self._root = root
        self._project = evaluator(made.projection(paths))

    def part(self, item: Element) -> str:
        return self._project.item(self._root, item).text

    def whole(self, item: Element) -> str:
        return serialize(item)

    def narrowed(self, item: Element) -> Element:
        """An item with the needed parts only."""
        return parse_item(self.part(item).encode(), Limits(), self._root.namespaces)


class _Lines:
    """Parts of items as lines of JSON."""

    def __init__(self, made: MadeFlow, root: Element, paths: Iterable[Steps]) -> None:
        assert made.form is not None
        self._root = str(root.name)
        outputs = [each.path for each in made.form.outputs if each.whole]
        self._needed = [(path[:ITEM], member_path(path[ITEM:])) for path in outputs]
        self._described = tuple(paths)
        self._members: dict[str, Members | None] = {}
        """By the name of items: what is needed of them; None for all."""

    def part(self, item: Element) -> str:
        return f"{write_value(self.narrowed(item))}\n"

    def whole(self, item: Element) -> str:
        return f"{write_value(item)}\n"

    def narrowed(self, item: Element) -> Element:
        """An item with the needed members only, to be written or looked at."""
        name = str(item.name)
        if name not in self._members:
            needed = [path for steps, path in self._needed if steps == (self._root, name)]
            self._members[name] = members_at((*needed, *self._described))
        return with_members(item, self._members[name])


@lru_cache(maxsize=1_000)
def evaluator(text: str) -> Units:
    """The evaluator of a flow's query."""
    return Units(standing(parse(text)), {}, {})
