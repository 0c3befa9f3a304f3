"""A trunk over generated queries, without Spark: whatever the epochs, shards and tasks, nothing of it shows (LAWS 1.2).

Each query has a trunk of its own, so its streams are as odd as they come: partitions, times, punctuations, late items.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare, refuse_endless
from anabranch.errors import QueryError, Unsupported
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from branch.feeding import spiced
from oracle.generate import case
from spark.bare import BareTrunk
from spark.law import CLOSING, elements_of, good_lines, known_times, law_of

SHARDS = (1, 2, 7)
SAYS_TIME = re.compile(rb"^<[^>]*[ :]at=")


def lay(
    folder: Path, name: str, elements: Sequence[bytes], random: Random, *, timed: bool, form: str | None = None
) -> Source:
    """A stream on disk, in some form, with some partitions; without a time it must have no elements that have one."""
    slack, origin = Fraction(random.choice((0, 0, 3))), Fraction(random.choice((0, 0, 2)))
    partitions = random.choice((1, 2, 3)) if timed or not any(map(SAYS_TIME.search, elements)) else 1
    form = form or random.choice(("lines", "document"))
    dealt: list[list[bytes]] = [[] for _ in range(partitions)]
    for element in elements:
        random.choice(dealt).append(element + b"\n")
    paths = []
    for number, part in enumerate(dealt):
        paths.append(folder / f"{name}-{number}")
        paths[-1].write_bytes(b"".join(part) if form == "lines" else b"<r>" + b"".join(part) + b"</r>")
    return Source(
        name,
        paths[0],
        form,  # type: ignore[arg-type]  # one of two
        root="r",
        time=ItemPath.parse("t") if timed else None,
        slack=slack,
        origin=origin,
        more=tuple(paths[1:]),
    )


@pytest.mark.parametrize(("family", "count"), [("items", 8), ("windows", 9), ("joins", 9)])
@pytest.mark.mass
def test_nothing_shows_in_an_answer(tmp_path: Path, family: str, count: int) -> None:
    """Answers, dead letters and late items equal the reference's, for streams that have an end."""
    kinds: set[str] = set()
    for number in range(count):
        kinds.add(check_case(tmp_path / str(number), family, number))
    assert kinds >= {"items": {"items"}, "windows": {"windows"}, "joins": {"step join", "interval join"}}[family]


def check_case(folder: Path, family: str, number: int) -> str:
    """Try one case; gives the kind of its query."""
    folder.mkdir()
    random = Random(f"{family} {number}")
    generated = case(family, number)
    timed = random.random() < 0.6
    streams = {name: spiced(random, text) for name, text in generated.inputs.items() if name != "d"}
    try:
        query = check(parse(generated.query), generated.query, inputs=dict.fromkeys(streams)).query
        kind = standing(query).kind
    except (Unsupported, QueryError):  # it reads a document, or is never answered
        return "none"
    sources = [lay(folder, name, elements_of(text), random, timed=timed) for name, text in streams.items()]
    size = sum(source.size for source in sources)

    trunk = BareTrunk(folder / "state", sources, random, finite=True)
    trunk.run({"q": generated.query}, (size // 9 + 1, size // 3 + 1, size + 1), SHARDS)

    law = law_of(query, sources, endless=False)
    label = f"{family} {number}: {generated.query}"
    if trunk.epochs:
        assert trunk.answer("q") == law.text, label
    assert Counter(trunk.log.dead_letters()) == law.dead, label
    assert trunk.late() == law.late, label
    return kind


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("<o xmlns='u'>{ avg($w/n), count($w/n) }</o>", '<o xmlns="u">7 1</o>'),
        ("<o xmlns:x='u'>{ count($w/x:n), count($w/n) }</o>", '<o xmlns:x="u">1 2</o>'),
        ("<o><i xmlns='u'>{ sum($w/n) }</i>{ sum($w/n) }</o>", '<o><i xmlns="u">7</i>3</o>'),
    ],
)
def test_a_constructor_that_declares_a_namespace(tmp_path: Path, result: str, answer: str) -> None:
    """Inside it the names of an aggregated path mean something else, also where windows are counted by panes."""
    path = tmp_path / "s"
    path.write_text('<i><n>1</n></i>\n<i><n>2</n><n xmlns="u">7</n></i>\n')
    query = f"for $w in stream('s')/r/i|count 2| return {result}"
    source = Source("s", path, "lines", root="r")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": query}, (1_000,), (1,))
    assert trunk.answer("q") == answer
    assert law_of(check(parse(query), query, inputs={"s": None}).query, [source], endless=False).text == answer


@pytest.mark.parametrize(("family", "count"), [("windows", 8), ("joins", 6)])
@pytest.mark.mass
def test_a_late_subscription_answers_from_what_it_sees(tmp_path: Path, family: str, count: int) -> None:
    """LAWS 3.6: behind some epochs of streams without an end, the same query once more: as if they began there."""
    tried = sum(check_late_case(tmp_path / str(number), family, number) for number in range(count))
    assert tried > count // 3


def check_late_case(folder: Path, family: str, number: int) -> bool:
    """Try one case; whether its query can be answered without an end."""
    for name in ("in", "law"):
        (folder / name).mkdir(parents=True)
    random = Random(f"{family} {number}")
    generated = case(family, number)
    timed = random.random() < 0.6
    early, grown, rest = [], [], []
    late = set()
    for name, text in generated.inputs.items():
        # what has no time of its own has that of its arrival here, which the reference knows nothing of
        known = known_times(elements_of(spiced(random, text)), timed=timed)
        border = random.randint(0, len(known))
        if border:
            late.add(name)
        state = random.getstate()
        early.append(lay(folder / "in", name, known[:border], random, timed=timed, form="lines"))
        random.setstate(state)
        rest.append(lay(folder / "law", name, known[border:], random, timed=timed, form="lines"))
        for first, then in zip(early[-1].partitions, rest[-1].partitions, strict=True):
            # what is bad is judged with all of the partition, also where a subscription has seen only a part
            before, after = good_lines(first.read(), then.read())
            after += CLOSING[timed]
            first.put(before)
            grown.append((first, after))
            then.put(b"\n" * len(before) + after)
    inputs = Inputs(early)
    try:
        prepared = prepare("q", generated.query, inputs, "spark")
        refuse_endless(prepared, inputs)
    except (Unsupported, QueryError):
        return False
    query = prepared.checked.query
    size = sum(len(after) for _, after in grown)
    sizes = (size // 9 + 1, size // 3 + 1, size + 1)

    trunk = BareTrunk(folder / "state", early, random, finite=False)
    trunk.run({"first": generated.query}, sizes, SHARDS)
    for path, after in grown:
        path.put(path.read() + after)
    trunk.run({"first": generated.query, "q": generated.query}, sizes, SHARDS)

    whole, law = law_of(query, early, endless=True), law_of(query, rest, endless=True, late=late)
    label = f"{family} {number}: {generated.query}"
    assert trunk.answer("q") == law.text, label
    assert Counter(each for each in trunk.log.dead_letters() if each.subscription == "q") == law.dead, label
    if timed or not late or len(grown) == 1:  # else what came at two moments is not in the order of the whole
        assert trunk.answer("first") == whole.text, label
        assert trunk.late() == whole.late | law.late, label
    return True


def test_a_late_item_is_noted_once(tmp_path: Path) -> None:
    """A window comes to a late item at once, a join only when its other input has caught up; it counts once."""
    sources = []
    for name in ("s", "u"):
        folder = tmp_path / name
        folder.mkdir()
        sources.append(Source(name, folder, "lines", root="r", time=ItemPath.parse("t")))
    (tmp_path / "s" / "1").write_text("".join(f"<i><t>{t}</t></i>\n" for t in (10, 3, 20)))
    (tmp_path / "u" / "1").write_text("<i><t>1</t></i>\n")
    queries = {
        "window": 'for $w in stream("s")/r/i|t diff 5| return <n>{ count($w) }</n>',
        "join": 'for $x in stream("s")/r/i|t diff 5| for $y in stream("u")/r/i|t diff 5| return <p/>',
    }
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=False)
    trunk.run(queries, [1_000], [2])
    (before,) = trunk.log.manifests.since(0)
    assert before.late == 1
    assert before.states[1].waiting == {"s/0": 3}
    (tmp_path / "u" / "2").write_text("<i><t>50</t></i>\n")
    trunk.run(queries, [1_000], [2])
    manifests = list(trunk.log.manifests.since(0))
    assert [each.late for each in manifests] == [1, 0]
    assert manifests[-1].states[1].waiting == {"u/0": 1}
    assert manifests[-1].noted == ()
