"""The past of what is no path in questions about items, on a trunk: the law's answers for any epochs (LAWS 5.4)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from anabranch.law import evaluate
from anabranch.runtime.past.timeline import Timeline
from history.hosting import replayed
from history.past import checked, given, item, stream
from history.test_recalled import sources
from history.test_remember import some_stream
from mass import Mass
from spark.bare import BareTrunk

PASTS = ("#0", "#1", "#2", "#[1]", "#[3]", "?[0]", "?[1]", "?[3]")
VALUES = (
    "(max(stream('{0}')/r/i/v))", "(count(stream('{0}')/r/i))", "(sum(stream('{0}')/r/i?[2]/v))",
    "(stream('{0}')/r/i/v#1, 1)", "(string-join(stream('{0}')/r/i/v, '-'))",
    "((max(stream('{0}')/r/i/v))#1 + 1)",
)  # fmt: skip
STANDING = (
    "for $x in stream('a')/r/i where not($x/v < {0}) return $x/v",
    "for $x in stream('a')/r/i return <o>{{ {0}, ($x/v * 2){2} }}</o>",
    "<all>{{ for $x in stream('a')/r/i return <o>{{ $x/v, {0}, {1} }}</o> }}</all>",
    "for $x in stream('b')/r/i where $x/v = {0} return <o>{{ $x/v, {1} }}</o>",
)
CORRECTED = (
    "{0}, stream('a')/r/i/v#1",
    "<o>{{ {0}, count(stream('b')/r/i?[2]), {1} }}</o>",
    "for $x in stream('a')/r/i#[2] where not($x/v = {0}) return <p>{{ $x/v, ($x/v + 1){2} }}</p>",
)


def asked(random: Random, shapes: tuple[str, ...]) -> str:
    """A question with some questions about values in it."""
    some = [random.choice(VALUES).format(random.choice("ab")) + random.choice(PASTS) for _ in range(2)]
    return random.choice(shapes).format(*some, random.choice(PASTS))


def test_a_version_that_was_not_is_no_failure(tmp_path: Path) -> None:
    """A value that cannot be computed fails whoever asks for it, and nobody who asks for one further back."""
    streams = {"a": stream(item(1, v=3), item(2, v="x"))}
    rounds = "for $x in stream('a')/r/i#[2] return <p>{{ $x/v, ($x/v + 1){} }}</p>"
    queries = {"back": rounds.format("#2"), "present": rounds.format("#0")}
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, streams), Random(0), finite=True)
    trunk.run(queries, [1_000], [1])
    assert trunk.answer("back") == "<p><v>x</v></p><p><v>3</v></p>"
    assert trunk.answer("present") == "<p><v>3</v>4</p>"
    for name, query in queries.items():
        assert trunk.answer(name) == evaluate(checked(query, streams).query, given(streams)).text


def test_random_questions(mass: Mass, tmp_path: Path) -> None:
    """Results that stand and displays that are corrected are those of evaluating anew at all moments before."""
    for number in mass.cases(400):
        random = Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        run(folder, random)


def run(folder: Path, random: Random) -> None:
    """Some questions over two streams, in epochs of any size, against the law."""
    queries = {f"c{each}": asked(random, CORRECTED) for each in range(3)}
    queries |= {f"s{each}": asked(random, STANDING) for each in range(4)}
    streams = {name: some_stream(random, random.randrange(4, 10)) for name in ("a", "b")}
    trunk = BareTrunk(folder / "state", sources(folder, streams), random, finite=True)
    trunk.run(queries, [80, 200, 1_000], [1, 2, 3])
    for name, query in queries.items():
        parsed = checked(query, streams).query
        if name.startswith("c"):
            shown = [(each.at, each.text) for each in Timeline(parsed, given(streams), name=name)]
            assert replayed(trunk.log, name) == shown, query
        else:
            assert trunk.answer(name) == evaluate(parsed, given(streams)).text, query
