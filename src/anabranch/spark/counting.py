"""Windows counted by panes: the way of a range from the task that counts it to the branch that merges it.

A range is counted where it is read, without knowing what came before.
Where that turns out to matter, because something in it is late by the ranges before, the branch reads the range once
more and counts it from what it knows; that is rare, and the answer is the same (`columnar/panes.py`).
Dead letters travel with the count, so that those of a count that is void do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from anabranch.branch import InputStream, State
from anabranch.branch.panes import PaneLaw, PanePlan, PaneWindows
from anabranch.branch.ports import Output
from anabranch.columnar.answering import StreamAnswers
from anabranch.columnar.counted import Counted, Reach
from anabranch.columnar.kernels import Flags
from anabranch.columnar.pane_query import CompiledPanes, compile_panes
from anabranch.columnar.panes import PaneCounter
from anabranch.columnar.shred import Shredded
from anabranch.columnar.template import Template
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Input
from anabranch.spark.job import Job
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader, show
from anabranch.spark.segments import letter_from_json, letter_to_json
from anabranch.stream.elements import DeadLetter, Item, Punctuation
from anabranch.stream.parse import parse_root
from anabranch.stream.path import Path
from anabranch.stream.tree import Element


class PaneTaking:
    """One branch as the tasks count for it."""

    def __init__(
        self,
        name: str,
        plan: PanePlan,
        stream: StreamPlan,
        root: Element,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> None:
        self.name = name
        self.plan = plan
        time = None if stream.time is None else Path.parse(stream.time)
        self.law = PaneLaw(plan, root, time, functions, documents)

    def compile(self, root: str, template: Template) -> CompiledPanes | None:
        return compile_panes(self.plan.query, root, template)


class RangeCount:
    """The count of one range for one branch, with the dead letters that came of it."""

    def __init__(self, taking: PaneTaking, reach: Range, largest: Reach | None = None) -> None:
        self._reach = reach
        self._letters: list[DeadLetter] = []
        names = {"name": taking.name, "file": reach.file}
        self._counter = PaneCounter(taking.plan.query, taking.law, self._letters.append, **names, largest=largest)

    def judge(self, compiled: CompiledPanes | None, shredded: Shredded, known: Flags) -> Flags:
        return self._counter.judge(compiled, shredded, known)

    def show(self, entry: int, element: Item | Punctuation) -> None:
        self._counter.show(entry, element)

    def take(self) -> None:
        self._counter.take()

    def result(self) -> tuple[Counted, list[DeadLetter]]:
        return self._counter.result(), self._letters

    def packed(self) -> bytes:
        """The result as it travels."""
        counted, letters = self.result()
        head = {"range": asdict(self._reach), "letters": [letter_to_json(each) for each in letters]}
        return json.dumps(head).encode() + b"\n" + counted.to_bytes()


class PaneBranch:
    """The branch that merges the counts of all ranges, for one epoch."""

    def __init__(
        self,
        taking: PaneTaking,
        stream: InputStream,
        state: State | None,
        out: Output,
        job: Job,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> None:
        self._taking = taking
        self._job = job
        self._out = out
        self._windows = PaneWindows(taking.plan, taking.name, stream, state, out, functions, documents)

    def count(self, packed: bytes) -> None:
        """Take in the next range."""
        line, _, data = packed.partition(b"\n")
        head: dict[str, Any] = json.loads(line)
        reach = Range(**head["range"])
        letters = [letter_from_json(each) for each in head["letters"]]
        partition = int(reach.partition)
        if not self._windows.take(partition, Counted.from_bytes(data)):
            counted, letters = recount(self._job, self._taking, reach, self._windows.largest(partition))
            taken = self._windows.take(partition, counted)
            assert taken, "a count from what came before is never void"
        for letter in letters:
            self._out.bury(letter)

    def end(self, stream: str, partition: int) -> None:
        """A partition has ended."""
        self._windows.end_of(partition)

    def passed(self, time: Fraction) -> None:
        """The times of arrival place nothing in windows."""

    def feed(self, data: bytes) -> None:
        raise AssertionError("panes come counted")

    def save(self) -> State:
        """Answer what is complete, and say what to remember."""
        self._windows.close()
        return self._windows.save()

    @property
    def held(self) -> int:
        return self._windows.held

    @property
    def waiting(self) -> dict[tuple[str, int], int]:
        """Nothing waits for another input."""
        return {}

    @property
    def spilled(self) -> tuple[str, ...]:
        return ()


def recount(job: Job, taking: PaneTaking, reach: Range, largest: Reach | None) -> tuple[Counted, list[DeadLetter]]:
    """Read a range once more and count it from the largest value that came before it."""
    plan: Plan = job.plan.load()
    (stream,) = (each for each in plan.streams if each.stream == reach.stream)
    root = parse_root(stream.root.encode())
    reader = RangeReader(stream, root, plan.limits, reach, job.carry(reach))
    count = RangeCount(taking, reach, largest)
    answers = StreamAnswers((), root, plan.limits, stream.schema, (taking.compile,))
    show(reader, answers, _Nobody(), (count,))
    return count.result()


class _Nobody:
    """Bad items were set aside when the range was first read."""

    def extend(self, subscription: int, data: bytes, entries: int, first: int) -> None:
        raise AssertionError("there are no subscriptions")

    def bury(self, letter: DeadLetter) -> None:
        pass
