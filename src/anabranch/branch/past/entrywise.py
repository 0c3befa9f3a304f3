"""A question about the past of items whose answer is corrected at the cost of what changes (LAWS 5.5).

It is to remembered items what `branch/growing/` is to items that only come, and has the same stages.
Its entries are tuples of items (`tuples.py`): an element changes those that its item is in, and those that it makes too
old, and no others are looked at.
Queries of other shapes are evaluated anew with each element (`DisplayAnswer` in `recalling.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from anabranch.algebra.display.publishing import Published, ReaderState, heartbeat
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.display.evaluation import AnswerScope, PartEvaluator
from anabranch.branch.display.parts import EachPart, Part
from anabranch.branch.display.publishing import wire_time
from anabranch.branch.display.shown import DisplayChange, ShownQuery
from anabranch.branch.display.stages import EachStage, Stage
from anabranch.branch.document.state import Data
from anabranch.branch.members import BranchMember
from anabranch.branch.past.loops import RecalledSplitter
from anabranch.branch.past.queries import RecalledQuery
from anabranch.branch.past.tuples import ChosenItems, PresentLetters, RecalledTuples, read_letter, write_letter
from anabranch.branch.ports import Output
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.json_results import with_json_results
from anabranch.law.history.evaluate import Around
from anabranch.law.inputs import Arrival
from anabranch.runtime.past.recollection import ChosenRound, Recollection
from anabranch.stream.elements import DeadLetter, Place


class _TupleEvaluator(PartEvaluator[ChosenItems]):
    """Evaluates parts of a query over the items of a tuple."""

    def __init__(self, query: ast.Query, memory: Recollection, **around: Unpack[Around]) -> None:
        super().__init__(query, **around)
        self._round = memory.chosen_round()

    def _over(self, documents: Mapping[str, ChosenItems]) -> ChosenRound:
        self._round.choose(dict(documents.values()))
        return self._round


class RecalledDisplay(ShownQuery):
    """A checked query over remembered items that is kept up to date, moment by moment."""

    def __init__(
        self,
        query: ast.Query,
        part: Part,
        splitter: RecalledSplitter,
        memory: Recollection,
        given: BranchContext,
        **around: Unpack[Around],
    ) -> None:
        """`part` is how the query splits; raises DynamicError where a part of it that never changes fails."""
        self._splitter, self._memory = splitter, memory
        self._loops: list[RecalledTuples] = []
        self._letters = PresentLetters()
        self._failure: DeadLetter | None = None
        """That of the latest moment, if the query failed then as a whole."""
        evaluation = _TupleEvaluator(query, memory, **around)
        super().__init__(query, part, part, evaluation, given.display(query), splitter.value_part)

    def _build(self, query: ast.Query) -> None:
        self._loops.clear()
        super()._build(query)

    def _stage(self, id: str, part: Part, scope: AnswerScope) -> Stage:
        assert isinstance(part, EachPart), "other parts are evaluated anew"
        loop = self._splitter.loop(part)
        tuples = RecalledTuples(id, self._site, scope, loop, self._memory, self._letters)
        self._loops.append(tuples)
        return EachStage(id, self._site, scope, tuples, tuples, part.order)

    def moment(self, place: Place, came: Arrival | None) -> DisplayChange:
        """What an element from a place has changed, after the memory has taken it."""
        self.now = self._evaluation.now = self._memory.now
        changed = {each.stream: each.moment(self.now, came) for each in self._loops}
        for stage in self._stages:
            stage.update(changed)
            for loop in self._loops:
                if loop.stream == stage.id:
                    loop.settle(stage)
        return self._change(place)

    def _change(self, place: Place) -> DisplayChange:
        """What a moment has changed; a dead letter is told when it was not there at the moment before."""
        change, error, before = super()._change(place), self.failure, self._failure
        dead = self._letters.drained()
        self._failure = None
        if error is not None:
            name = self._evaluation.around.get("name")
            is_known = before is not None and before.reason == error.message
            self._failure = before if is_known else DeadLetter(place, error.message, "", error.code, name)
            if self._failure is not None and not is_known:
                dead.insert(0, self._failure)
        return change._replace(dead=tuple(dead))

    # --- state --------------------------------------------------------------------------------------------

    def encode(self) -> Data:
        """The whole state as plain data."""
        data = self._remembered({each.stream: each.encode() for each in self._loops})
        return {**data, "failure": None if self._failure is None else write_letter(self._failure)}

    def decode(self, data: Data) -> None:
        """Restore from `encode`, where the same items are remembered."""
        self.now = self._evaluation.now = self._memory.now
        name = self._evaluation.around.get("name")
        for loop in self._loops:
            loop.decode(self.now, data["streams"][loop.stream], name)
            for number, *_, found in data["streams"][loop.stream][-1]:
                for stage in self._stages:
                    stage.recall(loop.stream, number, found.get(stage.id))
        self._letters.drained()
        self._failure = None if data["failure"] is None else read_letter(data["failure"], name)
        self._recalled(data)


class EntrywiseAnswer:
    """An answer that is corrected by what changes with an element."""

    def __init__(self, machine: RecalledDisplay, out: Output) -> None:
        self._machine, self._out = machine, out

    @staticmethod
    def of(
        member: BranchMember[RecalledQuery], given: BranchContext, memory: Recollection, roots: Mapping[str, str]
    ) -> EntrywiseAnswer | None:
        """The answer of a query whose shape allows it; None for any other. `roots` are the names of root elements."""
        asked = member.query
        query = with_json_results(asked.query, given.form(asked.query))
        splitter = RecalledSplitter(query, roots, asked.asked, given.functions)
        part = splitter.whole()
        if part is None:
            return None
        try:
            around = given.around(member.name, query, asked.text)
            return EntrywiseAnswer(RecalledDisplay(query, part, splitter, memory, given, **around), member.out)
        except DynamicError:
            return None  # what never changes fails, and so does all of it at every moment

    def take(self, memory: object, place: Place, item: Arrival | None) -> None:
        """Process an element at a place, which the memory has taken."""
        change = self._machine.moment(place, item)
        for letter in change.dead:
            self._out.bury(letter)
        at = wire_time(change.at)
        wire = self._display.wire(at, hidden=self._machine.failure is not None)
        if wire:
            self._out.piece("".join((*wire, heartbeat(at, json=self._machine.json))))

    @property
    def evaluated(self) -> int:
        """How many evaluations there were; for tests and measurements."""
        return self._machine.evaluated

    @property
    def _display(self) -> Published:
        display = self._machine.display
        assert isinstance(display, Published)
        return display

    def save(self) -> tuple[Any, list[str]]:
        """The state as plain data, and the text on display, if there was a moment."""
        data = self._machine.encode()
        return {"machine": data, "told": [*self._display.told]}, [] if data["is_new"] else [self._machine.text]

    def restore(self, data: Any, shown: list[str]) -> None:
        """Restore from `save`, where the same items are remembered."""
        self._machine.decode(data["machine"])
        self._display.resume(ReaderState(*data["told"]))
