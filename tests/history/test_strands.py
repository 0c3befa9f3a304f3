"""A query in strands: what it shows, says on the wire and sets aside is that of the query in one piece, to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from anabranch.algebra.display.publishing import Published
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.publishing import wire_time
from anabranch.branch.display.strands import Braid, Strand, StrandMoment, packed, spreads, unpacked
from anabranch.language import check, parse
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import Arriving, arrivals
from anabranch.spark.plan.membership import strands_for
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.parse import implied_root
from history.following import TICKER, Followed, items, random_case, replaced
from mass import enough, some

ROOTS = {"s": implied_root("root"), "t": implied_root("root")}


class StrandBranch:
    """A query in one piece, and beside it in strands, whose states are put away now and then."""

    def __init__(self, case: Followed, random: Random) -> None:
        self.case, self.random, self.of = case, random, random.randint(1, 4)
        self.whole = ContinuousQuery(case.query, ROOTS, display=Published, name="q")
        self.braid = self.fresh_braid()
        self.strands = [self.fresh(each) for each in range(self.of)]
        self.sent = 0

    def fresh(self, strand: int) -> Strand:
        return Strand(self.case.query, ROOTS, strand, self.of, name="q")

    def fresh_braid(self) -> Braid:
        return Braid(self.case.query, ROOTS, display=Published, name="q")

    def run(self) -> int:
        """Take all elements; gives how many moments were told of."""
        law = {name: EditedDocument(root) for name, root in ROOTS.items() if name in self.case.given}
        for each in arrivals(law, self.case.given):
            changes = list(self._one(each))
            told = [[*strand.take(each.stream, each.element, each.at, each.partition)] for strand in self.strands]
            found: dict[int, list[StrandMoment]] = {}
            for several in told:
                for data in packed(several):
                    for one in unpacked(data):
                        found.setdefault(one.moment, []).append(one)
            wires = [self._told(found[moment]) for moment in sorted(found)]
            assert [one for one in wires if one != ([], ())] == [one for one in changes if one != ([], ())]
            assert self.braid.text == self.whole.text
            assert len({strand.moments for strand in self.strands}) == 1
            self.sent += len(found)
            list(law[each.stream].take(each.element, each.at, each.partition))
            if self.random.random() < 0.2:
                self._put_away()
        return self.sent

    def _one(self, arriving: Arriving) -> Iterator[tuple[list[str], tuple[DeadLetter, ...]]]:
        for change in self.whole.take(arriving.stream, arriving.element, arriving.at, arriving.partition):
            assert isinstance(self.whole.display, Published)
            wire = self.whole.display.wire(wire_time(change.at), hidden=self.whole.failure is not None)
            yield wire, change.dead

    def _told(self, several: list[StrandMoment]) -> tuple[list[str], tuple[DeadLetter, ...]]:
        change = self.braid.put_together(several)
        assert isinstance(self.braid.display, Published)
        return self.braid.display.wire(wire_time(change.at), hidden=self.braid.failure is not None), change.dead

    def _put_away(self) -> None:
        for number, strand in enumerate(self.strands):
            fresh = self.fresh(number)
            fresh.decode(json.loads(json.dumps(strand.encode())))
            fresh.moments = strand.moments
            self.strands[number] = fresh
        assert isinstance(self.braid.display, Published)
        told, fresh_braid = self.braid.display.told, self.fresh_braid()
        fresh_braid.decode(json.loads(json.dumps(self.braid.encode())))
        assert isinstance(fresh_braid.display, Published)
        fresh_braid.display.resume(told)
        self.braid = fresh_braid


def test_random_queries_in_strands() -> None:
    """Any number of strands, states put away at any time: the same after every moment."""
    moments = 0
    for number in some(range(100)):
        case = random_case(number)
        if len(case.given) == 1 and spreads(case.machine.part):
            moments += StrandBranch(case, Random(number)).run()
    assert moments > enough(100)


def test_a_strand_keeps_its_own_entries_alone() -> None:
    """Of the others it keeps ids, and nothing of what stands in them."""
    case = Followed(TICKER, s=items(40) + replaced(3, 9) + replaced(4, 9))
    stranded = StrandBranch(case, Random(1))
    stranded.of = 4
    stranded.strands = [stranded.fresh(each) for each in range(4)]
    stranded.run()
    assert [len(strand.kept["s"].by_number) for strand in stranded.strands] == [10, 10, 10, 10]
    whole = len(json.dumps(stranded.whole.encode()))
    assert max(len(json.dumps(strand.encode()["streams"]["s"][-1])) for strand in stranded.strands) < whole / 3


def test_which_queries_can_be_divided() -> None:
    """Those whose entries give what they give by themselves; the shards are shared out among them."""
    divided = [
        'for $i in stream("s")/root/i where $i/v#1 > 3 order by $i/v return <r>{ $i }</r>',
        '<o a="1">t{ count(stream("s")//i) }<in>{ stream("s")/root/i[v = 1] }</in></o>',
        'if (some $v in stream("s")//v satisfies $v > 2) then max(stream("s")//v) else ()',
    ]
    undivided = [
        'for $i in stream("s")/root/i where $i/v = stream("t")//v return $i',
        'for $i in stream("s")/root/i where $i/v = max(stream("s")//v) return $i',
    ]
    for text in (*divided, *undivided):
        query = check(parse(text), text, inputs=dict.fromkeys(ROOTS), edited=ROOTS.keys()).query
        assert spreads(ContinuousQuery(query, ROOTS).part) is (text in divided), text
    assert [strands_for(None, shards, 0) for shards in (1, 2, 4, 8)] == [0, 0, 4, 8]
    assert [strands_for(None, 8, others) for others in range(5)] == [8, 4, 2, 2, 0]
    assert [strands_for(asked, 8, 9) for asked in (0, 1, 2, 5)] == [0, 0, 2, 5]
