"""Dynamic errors on a trunk (LAWS 2.4): they concern one subscription, and their dead letters are the reference's.

Without Spark: the epochs, tasks and shards are left to chance (`bare.py`).
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.language import check, parse
from anabranch.law import Answer, evaluate, stream_input
from anabranch.law.answer import NoAnswer
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source
from partitions import read_partitions
from spark.bare import BareTrunk

QUERIES = {
    "good": 'for $p in stream("s")/r/p return <x>{ $p/t }</x>',
    "items": 'for $p in stream("s")/r/p return <x>{ $p/e * 2 }</x>',
    "count": 'for $w in stream("s")/r/p|t diff 10| return <n>{ count($w) }</n>',
    "other": 'for $w in stream("s")/r/p|t diff 10| return <n>{ avg($w/g) }</n>',
    "panes": 'for $w in stream("s")/r/p|t diff 10| return <n>{ sum($w/e) }</n>',
    "counted": 'for $w in stream("s")/r/p|t diff 10| return <n c="{ count($w/e) }">{ max($w/e) }</n>',
    "odd": 'for $w in stream("s")/r/p|t diff 10| return <n>{ sum($w/e) * 2 }</n>',
    "chosen": 'for $w in stream("s")/r/p|t diff 10| return <n>{ sum($w/e[. > 2]) }</n>',
    "sliding": 'for $w in stream("s")/r/p|t diff 30 step 10| return <n>{ avg($w/e) }</n>',
    "long": 'for $w in stream("s")/r/p|t diff 400| return <n>{ sum($w/e) }</n>',
    "numbers": 'for $w in stream("s")/r/p|count 7 step 3| return <n>{ sum($w/e) }</n>',
    "held": 'for $w in stream("s")/r/p|t diff 10| return <n>{ sum($w/e) }{ $w/g }</n>',
    "median": 'for $w in stream("s")/r/p|t diff 30 step 10| return <n>{ median($w/e) }{ stddev($w/g) }</n>',
    "loop": 'for $w in stream("s")/r/p|t diff 10| return <n>{ for $i in $w return <v>{ $i/e + 1 }</v> }</n>',
    "nobody": 'for $w in stream("s")/r/p|t diff 50| return <n>{ count($w) div 0 }</n>',
    "join": (
        'for $x in stream("s")/r/p|t diff 10|, $y in stream("s")/r/p|t diff 5| '
        "where $x/e + $y/e > 0 return <n>{ $x/t }{ $y/t }</n>"
    ),
    "whole": 'sum(stream("s")/r/p/e)',
    "counting": 'count(stream("s")/r/p)',
    "ordered": 'for $p in stream("s")/r/p order by $p/e + 1 return $p/t',
    "attribute": 'stream("s")/r/p/@k',
}


def lay(folder: Path, random: Random, *, bad: float) -> Source:
    """A stream with times that rise, in which some of the values are no numbers."""
    lines = []
    for at in range(300):
        value = random.choice(("n/a", "", "1 2")) if random.random() < bad else str(random.randint(0, 9))
        key = f' k="{at}"' if at % 50 == 49 else ""
        lines.append(f"<p{key}><t>{at}</t><e>{value}</e><g>{at % 7}</g></p>\n")
    (folder / "s").write_text("".join(lines))
    return Source("s", folder / "s", "lines", root="r", time=ItemPath.parse("t"))


def law(name: str, text: str, source: Source) -> tuple[str, list[DeadLetter], bool]:
    """What the reference answers and sets aside, and whether the query fails as a whole."""
    root, partitions = read_partitions(source, Limits())
    given, _ = stream_input(root, partitions, time=source.time)
    try:
        answer: Answer = evaluate(check(parse(text), text, inputs={"s": None}).query, {"s": given}, name=name)
        return answer.text, answer.dead, False
    except NoAnswer as failure:
        return "", failure.dead, True


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize(("seed", "bad"), [(1, 0.02), (2, 0.3)])
@pytest.mark.mass
def test_errors_are_those_of_one_subscription(tmp_path: Path, seed: int, bad: float, sharing: bool) -> None:
    """All answer what they answer alone; the dead letters name the same items; who fails as a whole ends by name."""
    random = Random(seed)
    source = lay(tmp_path, random, bad=bad)
    trunk = BareTrunk(tmp_path / "state", [source], random, finite=True, sharing=sharing)
    trunk.run(QUERIES, [700, 3000], [1, 2])
    assert trunk.plan is not None
    ended = {each.name for each in trunk.plan.subscriptions if trunk.aborted.get(each.id)}
    dead = list(trunk.log.dead_letters())
    failing = set()
    for name, text in QUERIES.items():
        answer, letters, fails = law(name, text, source)
        assert trunk.answer(name) == answer, name
        found = {letter for letter in dead if letter.subscription == name}
        assert found == set(letters), name
        failing |= {name} if fails else set()
    assert ended == failing >= {"whole", "attribute"}
    assert any(letter.values for letter in dead) == (bad > 0.1), "some windows have more than ten bad values"


def test_an_interval_join_names_the_items_at_fault(tmp_path: Path) -> None:
    """Streams without an end: the pair's dead letter is that of the item whose value failed."""
    for name, values in (("x", ("1", "no", "3")), ("y", ("4", "5", "never"))):
        items = (f"<p><t>{at}</t><e>{value}</e></p>\n" for at, value in enumerate(values))
        later = (f"<p><t>{at}</t><e>1</e></p>\n" for at in (80, 90))  # by which the others are known to be complete
        (tmp_path / name).write_text("".join((*items, *later)))
    time = ItemPath.parse("t")
    sources = [Source(name, tmp_path / name, "lines", root="r", time=time) for name in "xy"]
    text = (
        'for $x in stream("x")/r/p, $y in stream("y")/r/p where $x/t >= $y/t and $x/t <= $y/t '
        "return <n>{ $x/e + $y/e }</n>"
    )
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=False)
    trunk.run({"q": text}, [30, 90], [1, 2])
    assert trunk.answer("q").startswith("<n>5</n>")
    named = [(letter.place.stream, letter.raw, letter.others) for letter in trunk.log.dead_letters()]
    assert named == [
        ("x", "<p><t>1</t><e>no</e></p>", ()),
        ("y", "<p><t>2</t><e>never</e></p>", ()),
    ]


ROOTED = {
    "root": 'for $x in stream("s")//r return <x>{ $x/t }</x>',
    "conditional": 'stream("s")//*[t > 3]/t',
    "windows": 'for $w in stream("s")//r|t diff 10| return <n>{ count($w) }</n>',
    "held": 'for $w in stream("s")//*|t diff 10| return <n>{ $w/t }</n>',
    "join": 'for $x in stream("s")//r|t diff 10|, $y in stream("s")/r/p|t diff 5| return <n>{ $x/t }{ $y/t }</n>',
}
"""Queries with a path to the root of the stream, which has no end."""


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.mass
def test_a_query_that_looks_at_the_root_ends_alone(tmp_path: Path, sharing: bool) -> None:
    """Whether a path leads to the root only the root's name tells; who looks at it ends by name, and nobody else."""
    items = "".join(f"<p><t>{at}</t><r>{at}</r></p>\n" for at in range(100))
    (tmp_path / "lines").write_text(items)
    (tmp_path / "document").write_text(f"<r>{items}</r>")
    good = {
        "items": 'stream("s")//p/t',
        "below": 'for $x in stream("s")//r/p return $x/t',
        "windows below": 'for $w in stream("s")//p|t diff 10| return <n>{ count($w) }</n>',
    }
    forms: tuple[tuple[Format, str], ...] = (("lines", "r"), ("lines", "other"), ("document", "r"))
    for form, root in forms:
        source = Source("s", tmp_path / form, form, root=root, time=ItemPath.parse("t"))
        trunk = BareTrunk(tmp_path / f"{form} {root}", [source], Random(1), finite=False, sharing=sharing)
        trunk.run({**ROOTED, **good}, [300, 500], [1, 2])
        assert trunk.plan is not None
        ended = {each.name: trunk.aborted.get(each.id) for each in trunk.plan.subscriptions}
        reason = "the query looks at the stream's root element, which has no end"
        looking = set(ROOTED) if root == "r" else {"conditional", "held"}
        assert ended == {name: reason if name in looking else None for name in {**ROOTED, **good}}
        assert trunk.answer("items") == "".join(f"<t>{at}</t>" for at in range(100))
        assert trunk.answer("below") == (trunk.answer("items") if root == "r" else "")
