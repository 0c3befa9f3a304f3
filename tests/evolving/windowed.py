"""Window queries over accented streams: streams on disk, and what the law says, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path as Folder
from random import Random

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import nodes
from anabranch.algebra.reactions.signature import Policy
from anabranch.errors import Aborted, DynamicError
from anabranch.language import ast, check, parse
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.evolution.canonical import canonical
from anabranch.law.rounds.windows import Progress, amount_on, count_windows, extent_of, sessions, time_windows
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.runtime.evolution.outlet import Outlet, accent_text
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.evolution.views import views
from anabranch.runtime.standing import standing
from anabranch.runtime.units import Units
from anabranch.stream.cover import passed
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path, TimeScale
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import Attribute, Element, copy
from partitions import read_partitions

NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
TO_CELSIUS = "(. - 32) * 5 div 9"
HERE = Place("s", "0", 0)
OVER = 'for $w in stream("s")/r/i'


def alter(path: str, by: str, where: str = "") -> str:
    return _accent(f'<s:alter path="{path}" by="{by}"/>', where)


def drop(path: str, where: str = "") -> str:
    return _accent(f'<s:drop path="{path}"/>', where)


def add(path: str, where: str = "") -> str:
    return _accent(f'<s:add path="{path}"/>', where)


def _accent(evolution: str, where: str) -> str:
    told = f' where="{where}"' if where else ""
    return f"<s:accent {NAMESPACE}{told}>{evolution}</s:accent>"


def closing(where: str) -> str:
    return f'<s:punctuation {NAMESPACE} where="{where}"/>'


def item(n: object, **values: object) -> str:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in {"n": n, **values}.items())
    return f"<i>{inner}</i>"


def lay(folder: Folder, partitions: Sequence[Sequence[str]], **settings: object) -> Source:
    """A stream of lines on disk, each partition a directory with one file."""
    for number, lines in enumerate(partitions):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "0").write_text("".join(f"{each}\n" for each in lines))
    first, *more = (folder / str(number) for number in range(len(partitions)))
    return Source("s", first, "lines", root="r", more=tuple(more), **settings)  # type: ignore[arg-type]


class Law:
    """The answer of a window query over a stream, as far as it was read: windows hold their items.

    Partitions are read one after the other.
    """

    def __init__(self, query: str, source: Source, policy: Policy = "accumulate") -> None:
        self._source = source
        self._standing = standing(check(parse(query), query, inputs={"s": None}).query)
        (clause,) = self._standing.fors
        assert clause.window is not None
        self._clause, self._scale = clause, TimeScale(origin=source.origin)
        self._is_timed = not isinstance(clause.window, ast.CountWindow)
        self._units, self._root = Units(self._standing), parse_root(b"<r>")
        self._evolutions = [Evolution.of(source) for _ in source.partitions]
        """What the partitions make of their elements."""
        self._views = [Evolution.of(source) for _ in source.partitions]
        """What values mean to the query."""
        self._late = False
        parts = len(source.partitions)
        domains = [Evolution.of(source).domains]
        self._outlet = Outlet(lineage_of(self._standing), policy=policy, domains=domains, partitions=[parts])
        self._progress = Progress(source.slack, parts)
        self._held: list[tuple[Fraction, Item, int, object]] = []
        """The nodes that were selected, each by its value, its item, its number there, and the key of its session."""
        self._next = 0
        self.texts: list[str] = []
        self.aborted: str | None = None

    def read(self, late: int = 0, *, ends: bool = True) -> str:
        """All of the stream, for a query that begins behind so many of its elements; the answer."""
        _, partitions = read_partitions(self._source, Limits())
        for partition, elements in enumerate(partitions):
            for number, element in enumerate(elements):
                if late and number == late:
                    self._begin_late()
                found = judged(element, self._evolutions[partition])
                if number >= late and self.aborted is None:
                    judged(found, self._views[partition])
                    self._hear(found, partition)
            if ends:
                self._progress.passed(partition, math.inf)
        if self.aborted is None:
            self._answer()
        return "".join(self.texts)

    def _begin_late(self) -> None:
        (found,) = views(self._evolutions, [HERE])
        self._views, self._late = [found.evolution], True
        for each in found.accents:
            if self.aborted is None:
                self._hear(each if isinstance(each, Accent) else DeadLetter(HERE, "unknown", "", doubts=(each,)), 0)

    def _hear(self, element: object, partition: int) -> None:
        try:
            match element:
                case Item(tree, place, at):
                    self._take(Item(canonical(tree, self._views[partition]), place, at), partition)
                case Punctuation(where, place):
                    self._pass(element, partition)
                    if where is not None:
                        self._answer()
                        self._tell(self._outlet.punctuation(0, where, place, partition))
                case Accent():
                    self._answer()
                    self._tell(self._outlet.accent(0, element, partition))
                case DeadLetter(doubts=doubts, reason=reason):
                    self._answer()
                    for doubt in doubts:
                        self._outlet.doubt(0, doubt.path, reason)
        except Aborted as error:
            self.aborted = error.message

    def _take(self, item: Item, partition: int) -> None:
        found = self._units.candidates(0, self._root, item, self._scale)
        for number, each in enumerate(found.nodes):
            late = self._is_timed and each.value is not None and self._progress.is_late(partition, each.value)
            is_placed = each.value is not None or not self._is_timed
            if each.selected and not late and is_placed and not isinstance(each.key, DynamicError):
                self._held.append((each.value or Fraction(0), item, number, each.key))

    def _pass(self, punctuation: Punctuation, partition: int) -> None:
        if isinstance(self._clause.window, ast.TimeWindow | ast.SessionWindow):
            path = path_in_item(self._clause.source, self._clause.window.reference, Spelling())
            value = passed(punctuation, path, None)
            if value is not None:
                self._progress.passed(partition, value - Fraction(self._source.origin))

    def _tell(self, accents: Sequence[Accent]) -> None:
        self.texts += map(accent_text, accents)
        for purge in self._outlet.purges:
            self._held = [(value, _without(item, purge.path), number, key) for value, item, number, key in self._held]

    def _answer(self) -> None:
        """The windows that are complete and were not answered yet."""
        reached, window = self._progress.reached, self._clause.window
        nodes = [(value, (item, number)) for value, item, number, _ in self._held]
        first = self._progress.first if self._late else None
        match window:
            case ast.SessionWindow(_, gap):
                keyed = [(key, value, (item, number)) for value, item, number, key in self._held]
                complete = [*sessions(amount_on(gap, self._scale), keyed, first)]
            case ast.TimeWindow():
                extent = extent_of(window, self._scale)
                complete = [*time_windows(extent, nodes, 0 if first is None else extent.from_start(first))]
            case ast.CountWindow():
                complete = [*count_windows(extent_of(window, self._scale), [node for _, node in nodes])]
        if self._is_timed:
            complete = [each for each in complete if reached is not None and each.end <= reached]
        for each in complete[self._next :]:
            content = [self._units.nodes(0, self._root, item)[number] for item, number in each.content]
            values = WindowValues(content, WindowBounds(each.start, each.end, self._scale, each.is_time))
            self.texts.append(self._units.window(values, forward=self._outlet.forward).text)
        self._next = len(complete)


def _without(element: Item, path: Path) -> Item:
    tree = copy(element.tree)
    assert isinstance(tree, Element)
    for node in list(nodes(tree, path)):
        assert isinstance(node.parent, Element)
        held: list[object] = node.parent.attributes if isinstance(node, Attribute) else node.parent.children  # type: ignore[assignment]
        held.remove(node)
    return Item(tree, element.place, element.at)


# --- random streams -------------------------------------------------------------------------------------------

MAPS = (". * 2", ". + 10", ". * 3 div 2 - 1", ". div 4", TO_CELSIUS)


def spelled(value: Fraction) -> str | None:
    """A number in digits, if it has any."""
    for places in range(12):
        if (value * 10**places).denominator == 1:
            return str(Decimal(int(value * 10**places)).scaleb(-places))
    return None


def elements(random: Random, count: int, *, gone: Sequence[str] = (), slack: int = 0, n: int = 0) -> list[str]:
    """Items whose values are random in the units of the start, and accents between them.

    Paths that may be `gone` are dropped and added, too; `n` is the value of the window's path at the start.
    """
    evolution = Evolution()
    found: list[str] = []
    while len(found) < count:
        if random.random() < 0.15:
            where = random.choice(("", "", "s = 1", "s = 2", "not(s = 1)"))
            line = alter(random.choice("txn"), random.choice(MAPS), where)
            if gone and random.random() < 0.5:
                line = random.choice((drop, add))(random.choice(gone), where)
            if _is_valid(line, evolution):
                found.append(line)
            continue
        n += random.choice((0, 1, 1, 2, 5, 9))
        if random.random() < 0.05 and Path(("n",)) not in evolution.altered():
            found.append(closing(f"n &lt; {n - slack - random.choice((0, 3))}"))
        early = random.choice((0, 0, slack, slack + 3)) if slack else 0
        values = {"n": n - early, "s": random.randint(1, 2), "t": random.randint(-9, 60), "x": random.randint(0, 40)}
        plain = _tree(item(**values))
        raw: dict[str, object] = {}
        for name, value in values.items():
            state = evolution.state(Path((name,)), plain)
            assert state.unit is not None
            if state.carried is not False:
                raw[name] = spelled(state.unit(Fraction(value)))
        if None not in raw.values():
            if random.random() < 0.1:
                raw.pop(random.choice("tx"), None)
            if random.random() < 0.1:
                raw["y"] = "of another look"
            found.append(item(**raw))
    return found


def _tree(text: str) -> Element:
    return parse_item(text.encode(), Limits())


def _is_valid(line: str, evolution: Evolution) -> bool:
    """Whether an accent may stand here; then the evolution goes on behind it."""
    accent = element_of(_tree(line), HERE)
    assert isinstance(accent, Accent)
    if evolution.copy().apply(accent) is not None:
        return False
    evolution.apply(accent)
    return True
