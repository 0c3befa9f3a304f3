"""Tuples that travel: wherever a join is made, each answer is that of a single engine (LAWS 3.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.remote.written import write_tuples
from anabranch.language import check, parse, print_query
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import need_of, provides, sent_needs, widened
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.loops import over_tuples
from anabranch.sharing.render import render_join
from anabranch.stream.elements import DeadLetter
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from disk import on_disk
from mass import some
from sharing.joining import Joining, joining
from sharing.making import comparison, some_content
from spark.law import CLOSING, law_of
from spark.sending import Link, Peer

SIZES = (200, 1_000, 10_000)
ODD = (
    "<!-- a --> text ",
    '<e a="1&amp;2" b=\'"\'>&lt;</e>',
    "<a>&#13; x</a>",
    "<a> 5 </a>",
    "<b>5.0</b>",
    "<b>much</b>",
)


def items(random: Random, count: int, *, odd: float) -> list[str]:
    """Items whose times rise, but for some; some hold what is no number, or no usual content."""
    found, at = [], 0
    for _ in range(count):
        at += random.choice((0, 1, 1, 2, 5))
        content = some_content(random) + (random.choice(ODD) if random.random() < odd else "")
        found.append(f"<i>{content}<t>{at - random.choice((1, 2, 7)) if random.random() < odd else at}</t></i>")
    return found


def sources(folder: Path, *, slack: int) -> list[Source]:
    time = ItemPath.parse("t")
    return [Source(name, folder / name, "lines", root="r", time=time, slack=Fraction(slack)) for name in "su"]


def tuples_of(text: str, given: Sequence[Source]) -> PropertyForest | None:
    """What is sent of a join that may be made on the way."""
    streams = {each.name: RegisteredStream(each, "SP0", "SP0", None, accents=False) for each in given}
    return sent_needs(need_of(text, {}), streams).join


def sending(form: PropertyForest, of: PropertyForest | None = None, stream: str = "") -> str:
    """The text of who sends tuples, of items or of other tuples."""
    text = render_join(form)
    query = check(parse(text), text).query
    return write_tuples(print_query(query if of is None else over_tuples(query, of, stream)), evolving=False)


def reading(text: str, form: PropertyForest, stream: str) -> str:
    """What is left of a query over tuples."""
    return print_query(over_tuples(check(parse(text), text).query, form, stream))


def asked(random: Random) -> list[Joining]:
    """Joins that have something in common."""
    first = joining(random)
    others = [replace(joining(random), streams=first.streams, preselections=first.preselections) for _ in range(2)]
    more = [f"{first.where} and {comparison(random, '$y')}", first.where] if first.where else [""]
    return [first, *(replace(each, windows=first.windows, where=random.choice(more)) for each in others)]


@pytest.mark.parametrize("seed", some(range(2)))
def test_answers_are_those_of_a_single_engine(tmp_path: Path, seed: int) -> None:
    """Tuples that serve several joins are made once, selected on the way or not, and read by each."""
    assert check_chain(tmp_path, seed)


def check_chain(folder: Path, seed: int) -> int:
    """Try some joins over one flow of tuples; gives how many of them could share it."""
    random = Random(seed)
    odd = random.choice((0.0, 0.1))
    given = sources(folder, slack=random.choice((0, 0, 3)))
    for each in given:
        on_disk(each.path).write_text("".join(f"{item}\n" for item in items(random, random.randrange(5, 30), odd=odd)))
    forms = {each.text: form for each in asked(random) if (form := tuples_of(each.text, given))}
    made: PropertyForest | None = None
    for form in forms.values():
        wider = widened(made, form) if made else form
        made = wider if isinstance(wider, PropertyForest) else made
    if made is None:
        return 0
    maker = Peer(folder / "maker", given, sending(made), random)
    maker.run(SIZES)
    link = Link(folder / "link", "j.1", made.tuple_path[0])
    link.carry(maker.sent())
    shared = {text: form for text, form in forms.items() if provides(made, form)}
    for number, (text, form) in enumerate(shared.items()):
        last, carried = link, made
        if random.random() < 0.4:
            between = Peer(folder / f"on-{number}", [link.source], sending(form, made, "j.1"), random)
            between.run(SIZES)
            last, carried = Link(folder / f"link-{number}", "j.2", made.tuple_path[0]), form
            last.carry(between.sent())
            assert not between.letters(), "who reads them fails"
        name = last.source.name
        reader = Peer(folder / f"reader-{number}", [last.source], reading(text, carried, name), random)
        reader.run(SIZES)
        law = law_of(check(parse(text), text).query, given, endless=False)
        label = f"{seed}: {text}"
        assert reader.trunk.answer("q") == law.text, label
        if made.kind == "step":  # else a predicate fails once for each tuple
            assert _reasons([*maker.letters(), *reader.letters()]) == _reasons(law.dead.elements()), label
    return len(shared)


@pytest.mark.parametrize("seed", [1])
def test_who_comes_late(tmp_path: Path, seed: int) -> None:
    """A join that begins behind a border, of streams that go on, has what it would have alone (LAWS 3.6)."""
    check_late(tmp_path, seed)


def check_late(folder: Path, seed: int) -> int:
    """Try one join that is made elsewhere behind a border; gives how long its answer is."""
    random = Random(f"late {seed}")
    text = joining(random).text
    given = sources(folder, slack=random.choice((0, 3)))
    form = tuples_of(text, given)
    if form is None:
        return 0
    late_from = random.randrange(1, 3)
    rest = [replace(each, path=folder / f"rest-{each.name}") for each in given]
    portions: list[list[list[str]]] = []
    for own, other in zip(given, rest, strict=True):
        on_disk(own.path).mkdir()
        on_disk(other.path).mkdir()
        some = [*items(random, 24, odd=0.0), CLOSING[True].decode().strip()]
        borders = sorted(random.randrange(1, 24) for _ in range(3))
        portions.append([some[a:b] for a, b in pairwise((0, *borders, len(some)))])
    maker = Peer(folder / "maker", given, sending(form), random, finite=False)
    link = Link(folder / "link", "j.1", form.tuple_path[0])
    reader = Peer(folder / "reader", [link.source], reading(text, form, "j.1"), random, finite=False)
    for number in range(4):
        for own, other, parts in zip(given, rest, portions, strict=True):
            for each in (own, other) if number >= late_from else (own,):
                (on_disk(each.path) / f"{number}").write_text("".join(f"{item}\n" for item in parts[number]))
        maker.run(SIZES, without=number < late_from)
        link.carry(maker.sent())
        reader.run(SIZES)
    query = check(parse(text), text).query
    law = law_of(query, rest, endless=True, late=["s", "u"])
    assert (reader.trunk.answer("q") if any(maker.sent()) else "<q/>") == law.text, f"{seed}: {text}"
    return len(law.text)


def test_an_accent_ends_the_tuples_and_nobody_else(tmp_path: Path) -> None:
    """What is sent has the units of its beginning: who sends tuples ends with an accent on what is joined.

    Whoever reads them is told, and ends, too; the query beside them goes on.
    """
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="a" by=". * 2"/></s:accent>'
    given = sources(tmp_path, slack=0)
    for each in given:
        on_disk(each.path).write_text(f"<i><t>1</t><a>1</a></i>\n{accent}\n<i><t>2</t><a>1</a></i>\n")
    text = "for $x in stream('s')/r/i|count 1| for $y in stream('u')/r/i|count 1| where $x/a = $y/a return $x/a"
    form = tuples_of(text, given)
    assert form is not None
    maker = Peer(tmp_path / "maker", given, sending(form), Random(1))
    maker.run(SIZES)
    assert maker.trunk.answer("beside") == "<i/><i/>"
    [reason] = list(maker.trunk.log.manifests.since(0))[-1].aborted.values()
    assert reason.startswith("'a' is unknown from here on: tuples that travel have no accents (s/s at byte ")
    link = Link(tmp_path / "link", "j.1", form.tuple_path[0])
    link.carry(maker.sent())
    reader = Peer(tmp_path / "reader", [link.source], reading(text, form, "j.1"), Random(1))
    reader.run(SIZES)
    [reason] = list(reader.trunk.log.manifests.since(0))[-1].aborted.values()
    assert "which is unknown from here on" in reason


def _reasons(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str | None]]:
    return Counter((each.reason, each.code) for each in letters)
