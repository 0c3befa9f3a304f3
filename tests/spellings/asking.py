"""One question in three spellings, asked together of one engine, and what is wrong with the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as Folder
from random import Random
from typing import Any

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs as Finite
from anabranch.engine.preparing import EngineName, prepare
from anabranch.language import parse
from anabranch.language.rewrite import with_plain_names
from anabranch.runtime.shapes import Shapes
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.standing import ItemKind
from anabranch.spark.session import Session
from anabranch.sql import read_query
from anabranch.stream.elements import DeadLetter
from anabranch.stream.path import Path
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from spellings.drawing import Drawing, Inputs, by_paths
from spellings.judge import Answer, Digits, Records, answer, read
from spellings.questions import Groups, Question, type_of
from spellings.sql import Sql
from spellings.xquery import Dots, Paths

END = 10_000
"""A time behind all others, at which all windows have closed."""
ENGINES: tuple[EngineName, ...] = ("reference", "local")


@dataclass(frozen=True)
class Asked:
    """A question as it is written; without `paths` where a path means something else by law."""

    question: Question
    sql: str
    dots: str
    paths: str | None

    @property
    def texts(self) -> dict[str, str]:
        found = {"sql": self.sql, "dots": self.dots}
        return found if self.paths is None else {**found, "paths": self.paths}

    @property
    def are_twins(self) -> bool:
        """Whether the query with dots is, but for its variables, what SQL is read as."""
        mine = with_plain_names(read_query(self.sql, language="sql", documents=("p",)))
        return mine == with_plain_names(parse(self.dots))


@dataclass
class Tally:
    """What was asked."""

    questions: int = 0
    by_paths: int = 0
    twins: int = 0
    rows: int = 0
    errors: int = 0
    forms: Counter[str] = field(default_factory=Counter)


def written(question: Question, inputs: Inputs) -> Asked:
    """The three spellings of a question."""
    paths = Paths(inputs.dated).question(question) if by_paths(question, inputs) else None
    return Asked(question, Sql(inputs.dated).question(question), Dots(inputs.dated).question(question), paths)


def check_case(number: int, folder: Folder, tally: Tally, spark: Session | None = None, count: int = 30) -> list[str]:
    """Ask random questions about random records of streams that go on; what is wrong with the answers."""
    drawing = Drawing(Random(number))
    inputs = drawing.inputs(count, end=END)
    asked = [written(each, inputs) for each in drawing.questions()]
    _write(inputs, folder)
    wrong: list[str] = []
    with Engine(spark, local=spark is None, once=True, epoch_bytes=drawing.pick((300, 1500, 1 << 20))) as engine:
        for name in ("s", "u"):
            engine.stream(name, folder / f"{name}.jsonl", format="json", time="t")
        engine.document("p", folder / "p.jsonl")
        held = {name: engine.subscribe(text, name) for name, text in _named(asked).items()}
        engine.wait()
        answers = {name: each.answer() for name, each in held.items()}
        wrong += _wrong(asked, answers, engine.log.dead_letters(), inputs.records(END), tally)
        plan = engine.trunk.plan
        assert plan is not None
        for place, each in enumerate(asked):
            if each.are_twins:
                tally.twins += 1
                mine, twin = plan.by_name[f"q{place}-sql"], plan.by_name[f"q{place}-dots"]
                if not are_one(mine, twin):
                    wrong.append(f"twins apart: {each.sql}\n{each.dots}\n{mine}\n{twin}")
    return [*wrong, *(_shown(inputs) if wrong else ())]


def check_ended(number: int, folder: Folder, tally: Tally) -> list[str]:
    """The same of streams that end, by the reference and by a trunk, which give the same bytes."""
    drawing = Drawing(Random(f"ended {number}"))
    inputs = drawing.inputs(25, end=None)
    asked = [written(each, inputs) for each in drawing.questions()]
    _write(inputs, folder)
    sources = [Source(name, folder / f"{name}.jsonl", format="json", time=Path.parse("t")) for name in ("s", "u")]
    given = Finite(sources, {"p": DocumentSource(folder / "p.jsonl")}, finite=True)
    found: list[tuple[dict[str, str], list[DeadLetter]]] = []
    for engine in ENGINES:
        queries = [
            prepare(name, text, given, engine, language="sql" if name.endswith("sql") else "xquery")
            for name, text in _named(asked).items()
        ]
        with answering(queries, given) as run:
            found.append(({name: "".join(pieces) for name, pieces in run.answers.items()}, list(run.dead)))
    (reference, letters), (trunk, others) = found
    wrong = [
        f"{name}: {text}\n  reference {reference[name]}\n  trunk     {trunk[name]}"
        for name, text in _named(asked).items()
        if reference[name] != trunk[name]
    ]
    if _named_alike(letters) != _named_alike(others):
        wrong.append(f"dead letters: {letters}\n{others}")
    wrong += _wrong(asked, reference, letters, inputs.records(None), tally, once=True)
    return [*wrong, *(_shown(inputs) if wrong else ())]


def _write(inputs: Inputs, folder: Folder) -> None:
    for name in ("s", "u", "p"):
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in getattr(inputs, name)))


def _shown(inputs: Inputs) -> list[str]:
    return ["\n".join([*inputs.s, "u:", *inputs.u, "p:", *inputs.p])]


def _named(asked: Sequence[Asked]) -> dict[str, str]:
    """All texts, by the names that they are subscribed with."""
    return {f"q{place}-{spelling}": text for place, each in enumerate(asked) for spelling, text in each.texts.items()}


def _counted(letters: Iterable[DeadLetter]) -> Counter[tuple[str | None, str | None]]:
    return Counter((each.subscription, each.code) for each in letters)


def _named_alike(letters: Iterable[DeadLetter]) -> Counter[tuple[str | None, str | None]]:
    """The same, but once where JSON cannot say a result: which items of a window are named then is open (LAWS 7.3)."""
    found = _counted(letters)
    return Counter({each: 1 if each[1] == "SERE0020" else number for each, number in found.items()})


def _wrong(
    asked: Sequence[Asked],
    answers: Mapping[str, str],
    letters: Iterable[DeadLetter],
    records: Records,
    tally: Tally,
    *,
    once: bool = False,
) -> list[str]:
    """What is wrong with the answers, as Python computes them; `once`: an item has one letter for all its windows."""
    counted = _counted(letters)
    wrong = []
    for place, each in enumerate(asked):
        expected = answer(each.question, records)
        tally.questions += 1
        tally.by_paths += each.paths is not None
        tally.forms[type(each.question).__name__] += 1
        tally.rows += len(expected.rows)
        tally.errors += expected.errors
        for spelling, text in each.texts.items():
            name = f"q{place}-{spelling}"
            found = Answer([list(row.values()) for row in map(read, answers[name].splitlines())])
            errors = {code: number for (owner, code), number in counted.items() if owner == name}
            problem = _problem(each.question, spelling, found, errors, expected, once=once)
            if problem is not None:
                wrong.append(f"{spelling}: {text}\n{problem}")
    return wrong


def are_one(mine: Registration, twin: Registration) -> bool:
    """Whether two subscriptions are answered by one computation: one branch, or one shape with equal constants."""
    if mine.kind != twin.kind:
        return False
    if mine.kind != ItemKind.name:
        return mine.branch == twin.branch
    shapes = Shapes()
    return shapes.of(mine.text) == shapes.of(twin.text)


def _problem(
    question: Question, spelling: str, found: Answer, errors: dict[str | None, int], expected: Answer, *, once: bool
) -> str | None:
    valued = _valued(question) if spelling == "paths" else frozenset()
    rows, wanted = found.rows, expected.rows
    number = errors.get("SERE0020", 0)
    few = once and 0 < number < expected.errors
    if errors.keys() - {"SERE0020"} or not (0 <= number - expected.errors <= expected.again or few):
        return f"  errors {errors}, expected {expected.errors}\n  found    {rows}\n  expected {wanted}"
    for one, other in zip(rows, wanted, strict=False):
        if len(one) != len(other) or not all(
            same(a, b, place in valued) for place, (a, b) in enumerate(zip(one, other, strict=True))
        ):
            return f"  found    {one}\n  expected {other}"
    if len(rows) != len(wanted):
        return f"  found    {rows}\n  expected {wanted}"
    return None


def _valued(question: Question) -> frozenset[int]:
    """The columns that are a path's number by its value, not by its spelling: keys of groups (LAWS 3.8)."""
    if not isinstance(question, Groups):
        return frozenset()
    return frozenset(place for place, key in enumerate(question.keys) if type_of(key) == "number")


def same(found: Any, expected: Any, valued: bool = False) -> bool:
    """Whether a value of an answer is the expected one: spelled alike, or computed and equal."""
    if isinstance(expected, Digits) and valued:
        expected = float(expected)
    if isinstance(expected, Digits | str | bool | None | list | dict):
        return type(found) is type(expected) and found == expected
    return isinstance(found, Digits) and float(found) == float(expected)
