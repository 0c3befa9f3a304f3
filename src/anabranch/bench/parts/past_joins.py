"""What an element costs in queries 4 and 5 of the history paper, by the number of events that they remember.

Events come one after the other on all streams, and each query looks back a second, in which so many of each stream have
come: each new one makes an old one leave.
A frequency is that of about one event of the other radar.
Vehicles are ambulances, each at the place of a sensor; within reach of a vehicle there are about two lights, however
many there are, for there are more the longer the streets.
With `anew` the whole query is evaluated with each event, as those of other shapes are, for comparison over few events.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from random import Random
from time import process_time

from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.held_items import number_nodes
from anabranch.branch.members import BranchMember
from anabranch.branch.past.entrywise import EntrywiseAnswer
from anabranch.branch.past.queries import recalled_query
from anabranch.branch.past.recalling import DisplayAnswer
from anabranch.language import check, parse
from anabranch.law.inputs import Arrival, Input
from anabranch.runtime.past.recollection import Recollection
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.tree import Document, Element

RADAR = """
    for $r in stream("radar1")//event?[1], $s in stream("radar2")//event?[1]
    where $r/frequency = $s/frequency
    return <position>{ $r/angle, $s/angle }</position>"""
"""Query 4, without the function that finds a place by two angles."""
TRAFFIC = """
    declare function local:distance($a, $b) {
      math:sqrt(math:pow($a/x - $b/x, 2) + math:pow($a/y - $b/y, 2))
    };
    for $v in stream("vehicle")//event[type = "ambulance"]?[1],
        $r in stream("road_sensor")//event?[1],
        $t in stream("traffic_light")//event?[1]
    where local:distance($v/location, $r/location) < 0.1 and local:distance($v/location, $t/location) < 10
    return <set id="{ $t/id }"><status>green</status>
      <time>{ local:distance($v/location, $t/location) div $r/speed }</time></set>"""
"""Query 5, with the distance in the plane."""
_STREAMS = {RADAR: ("radar1", "radar2"), TRAFFIC: ("vehicle", "road_sensor", "traffic_light")}
_ANEW = 20
"""How many events of each stream are remembered where all is evaluated anew."""
_NEAR = 2
"""How many lights are near a vehicle."""


@dataclass(slots=True)
class _Told:
    """What a query says, of which only the length is kept."""

    characters: int = 0
    dead: int = 0

    def piece(self, text: str) -> None:
        self.characters += len(text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self.characters += len(data)

    def bury(self, letter: DeadLetter) -> None:
        self.dead += 1

    def late(self, place: Place) -> None:
        raise AssertionError("no event is late")


@dataclass(slots=True)
class PastJoin:
    """A query at work over so many remembered events of each stream."""

    text: str
    remembered: int
    anew: bool = False
    """Whether the whole query is evaluated with each event."""
    told: _Told = field(default_factory=_Told)
    random: Random = field(default_factory=lambda: Random(1))
    taken: int = 0
    """How many events have come."""
    _memory: Recollection = field(init=False)
    _answer: EntrywiseAnswer | DisplayAnswer = field(init=False)
    _roots: dict[str, Element] = field(init=False)
    _place: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        names = _STREAMS[self.text]
        found = recalled_query(check(parse(self.text), self.text, inputs=dict.fromkeys(names), functions=()).query)
        assert found is not None
        self._roots = {name: implied_root(name) for name in names}
        inputs: dict[str, Input] = {}
        for name, root in self._roots.items():
            document = Document()
            document.append(root)
            inputs[name] = Input(document)
        self._memory = Recollection(found.query, found.asked, inputs, {}, "bench")
        member = BranchMember("bench", "bench", found, self.told)
        answer = EntrywiseAnswer.of(member, BranchContext(), self._memory, {name: name for name in names})
        assert answer is not None, "it changes item by item"
        self._answer = DisplayAnswer(member, "xml") if self.anew else answer

    def fill(self) -> PastJoin:
        """Take as many events as are remembered."""
        print(f"history: {self.remembered:,} events of each stream", file=sys.stderr)
        for each in self._coming(self.remembered * len(self._roots)):
            self._take(each, is_answered=not self.anew)
        return self

    def round(self, events: int) -> float:
        """The seconds of processor time for so many events, each of which is remembered for a second."""
        came = self._coming(events)
        begin = process_time()
        for each in came:
            self._take(each)
        return process_time() - begin

    @property
    def shown(self) -> str:
        """What is on display."""
        return "".join(self._answer.save()[1])

    def _take(self, event: Arrival, *, is_answered: bool = True) -> None:
        self._memory.take(event.place.stream, event)
        if is_answered:
            self._answer.take(self._memory, event.place, event)

    def _coming(self, events: int) -> list[Arrival]:
        """The next events, of one stream after the other."""
        names = tuple(self._roots)
        came = []
        for _ in range(events):
            turn, which = divmod(self.taken, len(names))
            self.taken += 1
            name = names[which]
            tree = parse_item(f"<event>{self._content(name, turn)}</event>".encode(), Limits())
            tree.parent = self._roots[name]
            number_nodes(tree, which, self.taken)
            came.append(Arrival(tree, Fraction(turn, self.remembered), 0, Place(name, "bench", self.taken)))
        return came

    def _content(self, name: str, turn: int) -> str:
        if self.text is RADAR:
            frequency, angle = self.random.randrange(self.remembered), self.random.randrange(360)
            return f"<frequency>{frequency}</frequency><angle>{angle}</angle>"
        length = 10 * math.sqrt(math.pi * self.remembered / _NEAR)
        if name != "road_sensor":
            self._place = self.random.uniform(0, length), self.random.uniform(0, length)
        x, y = self._place
        more = {"vehicle": "<type>ambulance</type>", "road_sensor": "<speed>20</speed>"}.get(name, f"<id>{turn}</id>")
        return f"<location><x>{x:.3f}</x><y>{y:.3f}</y></location>{more}"


def past_joins(few: int, many: int, events: int, rounds: Rounds) -> tuple[dict[str, float], Figures]:
    """Ratios, and the figures behind them, for both queries."""
    ratios: dict[str, float] = {}
    found: dict[str, float | str | Figures] = {}
    for name, text in (("query4", RADAR), ("query5", TRAFFIC)):
        short, long = PastJoin(text, few).fill(), PastJoin(text, many).fill()
        compared = compare(partial(short.round, events), partial(long.round, events), rounds, name)
        ratios[f"{name}_many_vs_few"] = compared.ratio
        found[name] = compared.figures(events)
        ours, anew = PastJoin(text, _ANEW).fill(), PastJoin(text, _ANEW, anew=True).fill()
        of_each = len(_STREAMS[text])
        ours.round(of_each)
        ratios[f"{name}_anew_vs_changed"] = anew.round(of_each) * 10 / ours.round(10 * of_each)
        assert ours.told.characters, "something is told"
        assert not ours.told.dead, "and nothing set aside"
    return ratios, found
