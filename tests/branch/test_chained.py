"""Windows over what a loop gives: the law, whatever the cuts, and the square of accents (LAWS 3.13, 4.1)."""

from __future__ import annotations

from random import Random

import pytest

from algebra import evolving as algebra_evolving
from algebra.evolving import stream as accented
from anabranch.branch.chained import ChainedBranch
from anabranch.branch.members import BranchMember
from anabranch.branch.open import Branch
from anabranch.branch.state import BranchState
from anabranch.runtime.chains import chained_query
from anabranch.stream.reading.wire import write
from branch.feeding import Flow, Question, Stream, Taken
from evolving.judging import across, law
from evolving.questions import question, timed
from evolving.square import EXACT
from mass import some


class Chain(Question):
    """A query whose windows are over a loop."""

    def open(self, taken: Taken, state: BranchState | None) -> Branch:
        """The branch, where an earlier epoch has left it."""
        chain = chained_query(self.query, {})
        assert chain is not None
        inputs = {each.name: each.for_branch() for each in self.streams}
        return ChainedBranch(BranchMember("q", "q", chain, taken), inputs, state, {}, {}, taken)


@pytest.mark.mass
def test_the_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random accented streams, with epochs that end anywhere: no cut shows, and the canonical answer is the law's."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    answered = 0
    for number in some(range(40)):
        random = Random(f"chained {number}")
        text = question(random, "chained")
        names = [each for each in "ab" if f'stream("{each}")' in text]
        elements = {
            each: timed(random, accented(random, ["s", "t", "x"], 10, comes=True, goes=False)) for each in names
        }
        streams = [
            Stream(each, f"<r>{''.join(map(write, elements[each]))}</r>", time="ts", endless=True) for each in names
        ]
        asked = Chain(text, streams)
        found = {"".join(asked.run(random, epochs=epochs).pieces) for epochs in (1, 2, 5)}
        assert len(found) == 1, text
        (answer,) = found
        expected = law(text, {each: [elements[each]] for each in names}, is_timed=True, endless=True)
        assert sorted(across(answer)) == sorted(expected), f"{number}: {text}"
        answered += "<w>" in answer or "<g>" in answer
    assert answered > 2


def test_the_state_is_that_of_both() -> None:
    """LAWS case 158: results are in windows as they come; the state holds what may meet, and open windows."""
    loop = 'for $x in stream("a")/r/i, $y in stream("b")/r/i where $x/k = $y/k return <m>{ $y/t, $x/v }</m>'
    streams = [Stream(name, time="t", endless=True) for name in "ab"]
    flow = Flow(Chain(f"for $w in ({loop})|t diff 10| return <s>{{ sum($w/v) }}</s>", streams))

    def item(time: int, key: str, value: int = 0) -> str:
        return f"<i><t>{time}</t><k>{key}</k><v>{value}</v></i>"

    flow.bring("a", item(1, "p", 5), item(2, "q", 7))
    flow.bring("b", item(3, "p"), item(4, "q"))
    flow.epoch()
    flow.bring("a", item(5, "p", 100))
    flow.bring("b", item(8, "p"))
    flow.epoch()
    assert flow.taken.pieces == []
    flow.bring("a", item(20, "r"))
    flow.bring("b", item(12, "q"), item(21, "none"))
    assert flow.taken.pieces == ["<s>117</s>"]  # the pair of 5 and 3 has come behind that of 4, and is late
    flow.end()
    assert flow.taken.pieces == ["<s>117</s>", "<s>7</s>"]
    assert len(flow.taken.places) == 1


@pytest.mark.parametrize(
    "text",
    [
        'for $w in (for $x in stream("a")/r/i return $x)|count 2| return count($w)',
        'for $w in (for $x in stream("a")/r/i return string($x))|count 2| return count($w)',
        'for $w in (for $x in stream("a")/r/i|count 2| return <m/>)|count 2| return count($w)',
        'let $k := 5 for $w in (for $x in stream("a")/r/i where $x/v > $k return <m/>)|count 2| return count($w)',
    ],
    ids=["items as they are", "texts", "windows of windows", "variables from around"],
)
def test_what_is_no_chain(text: str) -> None:
    """It waits for the end, and a run refuses it."""
    assert chained_query(Question(text, [Stream("a")]).query, {}) is None
