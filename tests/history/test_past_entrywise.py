"""Displays over items of the past that change item by item: what the law shows, at the cost of what changes (5.5).

The judge is the law's timeline, which answers every moment from scratch, and of dead letters the answer that is computed
anew with each element (`DisplayAnswer`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import pytest

from anabranch.algebra.display.replay import Replay
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.members import BranchMember
from anabranch.branch.past.entrywise import EntrywiseAnswer
from anabranch.branch.past.queries import RecalledQuery, recalled_query
from anabranch.branch.past.recalling import DisplayAnswer
from anabranch.errors import DynamicError
from anabranch.law.arrivals.past import Past
from anabranch.law.arrivals.recall import Recalling
from anabranch.law.calls import PythonFunction
from anabranch.law.construct import answer_text
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival, Input
from anabranch.runtime.past.recollection import Recollection
from anabranch.stream.elements import DeadLetter
from branch.feeding import Taken
from history.editing import apply
from history.past import checked, given, stream
from mass import Mass, some

Functions: TypeAlias = Mapping[str, PythonFunction]
NO_FUNCTIONS: Functions = {}
DISTANCE = """declare function local:distance($one, $two) {
    math:sqrt(math:pow($one/v - $two/v, 2) + math:pow($one/w - $two/w, 2))
};"""


@dataclass
class Answered:
    """A query answered element by element; its state may be put away between any two."""

    query: str
    streams: Mapping[str, Input]
    functions: Functions = field(default_factory=dict)
    is_whole: bool = False
    """Whether it is computed anew with each element."""
    out: Taken = field(default_factory=Taken)

    def __post_init__(self) -> None:
        found = recalled_query(checked(self.query, self.streams, self.functions).query, self.functions)
        assert found is not None, self.query
        assert found.standing is None, self.query
        self._found: RecalledQuery = found
        self._begin()

    def _begin(self) -> None:
        query = self._found
        self.memory = Recollection(query.query, query.asked, self.streams, self.functions, "q")
        member = BranchMember("q", "q", query, self.out)
        around = BranchContext(self.functions)
        roots = {name: each.root.name.local for name, each in self.streams.items()}
        self.answer: EntrywiseAnswer | DisplayAnswer | None = DisplayAnswer(member, "xml")
        if not self.is_whole:
            self.answer = EntrywiseAnswer.of(member, around, self.memory, roots)

    def put_away(self) -> None:
        """Put the state away, and go on with what was made of it."""
        assert self.answer is not None
        now, known = self.memory.now, list(self.memory.remembered())
        data, shown = self.answer.save()
        self._begin()
        self.memory.restore(now, known)
        self.answer.restore(json.loads(json.dumps(data)), shown)

    def run(self, random: Random | None = None) -> Iterator[tuple[str, list[DeadLetter]]]:
        """The text after each element, and the dead letters with it."""
        replay, text = Replay(), ""
        for moment in Past(self._found.query, self.streams).moments:
            if random is not None and random.random() < 0.3:
                self.put_away()
            assert self.answer is not None, self.query
            told, buried = len(self.out.pieces), len(self.out.dead)
            self.memory.take(moment.place.stream, moment.element)
            came = moment.element if isinstance(moment.element, Arrival) else None
            self.answer.take(self.memory, moment.place, came)
            for each in replay.feed("".join(self.out.pieces[told:])):
                text = apply(each.edits, text)
            yield text, self.out.dead[buried:]


def compare(query: str, streams: Mapping[str, Input], random: Random, functions: Functions = NO_FUNCTIONS) -> int:
    """The law and the machine show the same after every element, and set the same aside; how often that changes."""
    whole = list(Answered(query, streams, functions, is_whole=True).run())
    ours = list(Answered(query, streams, functions).run(random))
    assert [text for text, _ in ours] == list(by_law(query, streams, functions)), query
    assert [set(dead) for _, dead in ours] == [set(dead) for _, dead in whole], query
    assert all(len(set(dead)) == len(dead) for _, dead in ours), query
    return len({text for text, _ in ours}) + sum(len(dead) for _, dead in ours)


def by_law(query: str, streams: Mapping[str, Input], functions: Functions = NO_FUNCTIONS) -> Iterator[str]:
    """What the law shows after each element."""
    parsed = checked(query, streams, functions).query
    past = Past(parsed, streams)
    law = Recalling(parsed, past, streams, functions, "q")
    for number in range(len(past.moments)):
        with law.at(number):
            try:
                yield answer_text(law.top(parsed.body, Env.of(parsed)), json=False)
            except DynamicError:
                yield ""


# --- random queries -----------------------------------------------------------------------------------------

PATHS = ("/r/i", "//i", "/r/i[v > 2]", "/r/i[v != 1]", "/r/i[w]", "/r/i/n", "//i[2 div v > 0]")
SECONDS = ("0", "0.5", "1", "1.5", "3", "6")
CONDITIONS = (
    "$x/v = $y/v",
    "$y/w = $x/v",
    "$x/v = $y/v and 1 div $y/w > 0",
    "$x/v < $y/v",
    "abs($x/v - $y/w) <= 1",
    "$x/v - $y/v <= 1 and $y/v - $x/v < 2",
    "local:distance($x, $y) < 1.5",
    "math:pow($x/v - $y/v, 2) + math:pow($x/w - $y/w, 2) <= 4",
    "$x/v = $y/v or $x/w > $y/w",
    "$x/v + $y/v > 3",
    "near($x/v, $y/v)",
)
RESULTS = (
    "<p>{ $x/v, $y/w }</p>",
    "$x/v + $y/v",
    "($x/v/text(), $y/v/text())",
    "if ($x/w = 0) then () else <q w='{ $y/w }'>{ $x/v * 2 }</q>",
)
SINGLE = (
    "for $x in {0} return <p>{{ $x/v }}</p>",
    "for $x in {0} where $x/v > 1 order by $x/w descending return $x/v + 1",
    "for $x in {0} let $z := $x/v * 2 where $z > 2 return <z>{{ $z }}</z>",
    "for $x in {0}/v return $x + 1",
    "{0}/v",
    "{0}",
)
NUMBERS = ("0", "1", "2", "3", "0.5", "-1", "2", "3")


def near(one: object, other: object) -> bool:
    """A function in Python, of which nothing is known."""
    return abs(float(str(one)) - float(str(other))) < 1.5


FUNCTIONS: Functions = {"near": near}


def random_stream(random: Random, items: int) -> str:
    """Items whose times rise, or mostly so, with heartbeats, several values, none, and values that are no numbers."""
    found: list[str] = []
    time = 0.0

    def values(name: str) -> str:
        count = random.choice((1, 1, 1, 1, 1, 1, 2, 0))
        some = (
            random.choice((*NUMBERS, "x")) if random.random() < 0.5 else random.choice(NUMBERS) for _ in range(count)
        )
        return "".join(f"<{name}>{each}</{name}>" for each in some)

    for _ in range(items):
        time += random.choice((0, 0, 0.5, 0.5, 1, 3))
        if random.random() < 0.2:
            found.append(f'<s:punctuation xmlns:s="urn:anabranch:stream" at="{time}"/>')
        shown = time - random.choice((0, 0, 0, 0, 1)) if time > 1 else time
        inner = "".join(f"<n>{values('v')}{values('w')}</n>" for _ in range(random.choice((0, 0, 1, 2))))
        found.append(f"<i><t>{shown:g}</t>{values('v')}{values('w')}{inner}</i>")
    return stream(*found)


def random_loop(random: Random) -> str:
    """A loop over one, two or three streams, or a path."""

    def path(name: str) -> str:
        return f"stream('{name}'){random.choice(PATHS)}?[{random.choice(SECONDS)}]"

    names = random.sample(("a", "b", "c"), 3)
    sides = random.choice((1, 2, 2, 2, 3))
    if sides == 1:
        return random.choice(SINGLE).format(path(names[0]))
    condition = random.choice(CONDITIONS)
    fors = f"$x in {path(names[0])}, $y in {path(names[1])}"
    if sides == 3:
        other = random.choice(CONDITIONS).replace("$y", "$z").replace("$x", random.choice(("$x", "$y")))
        between = random.random() < 0.3
        third = f"$z in {path(names[2])}"
        fors = f"$x in {path(names[0])}, {third}, $y in {path(names[1])}" if between else f"{fors}, {third}"
        condition = f"({condition}) and ({other})" if " or " in condition + other else f"{condition} and {other}"
    let = random.choice(("", "", "", "let $m := $y/v ", "let $m := $y/v + 1 "))
    order = random.choice(("", "", "", "order by $y/w ", "order by $x/v descending, $y/v "))
    return f"for {fors} {let}where {condition} {order}return {random.choice(RESULTS)}"


def random_query(random: Random) -> str:
    """One loop, or several in elements and beside each other."""
    loop = random_loop(random)
    return DISTANCE + random.choice((
        "{0}", "{0}", "<all>{{ {0} }}</all>", "({0}, 'and', {1})", "<o><a>{{ {0} }}</a>{{ {1} }}</o>"
    )).format(loop, random_loop(random))  # fmt: skip


def check_random(number: int) -> int:
    random = Random(f"past {number}")
    query = random_query(random)
    streams = given({name: random_stream(random, random.randrange(1, 9)) for name in ("a", "b", "c")})
    return compare(query, streams, random, FUNCTIONS)


@pytest.mark.parametrize("number", some(range(30)))
def test_some_random_queries_show_what_the_law_says(number: int) -> None:
    """Loops over one to three streams, out of order here and there, put away and taken up between any two elements."""
    check_random(number)


def test_random_queries_show_what_the_law_says(mass: Mass) -> None:
    """The same for very many."""
    changes = [check_random(number) for number in mass.cases(20_000)]
    assert max(changes) > 2
