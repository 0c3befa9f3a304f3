"""Queries over one stream of updates in one family: each shows, says on the wire and sets aside what it would alone."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest

from anabranch.language import ast
from history.asking import elements
from history.crowds import Crowd, asked, crowd, family
from history.writing import Writer
from mass import Mass, enough, some


def check_crowd(number: int, leaving: float) -> int:
    random = Random(number)
    queries = crowd(random, random.choice((4, 10, 25)))
    streams = [Writer(random).stream(random.choice((4, 8, 12))) for _ in range(random.choice((1, 1, 1, 2)))]
    return Crowd(queries, random).run(streams, leaving) if queries else 0


@pytest.mark.mass
def test_random_crowds() -> None:
    """However their states are put away, in layers and processes."""
    assert sum(check_crowd(number, 0) for number in some(range(60))) > enough(100)


@pytest.mark.mass
def test_random_crowds_that_queries_leave() -> None:
    """Those that are left go on as if they had been alone, with what they need themselves."""
    assert sum(check_crowd(number, 0.3) for number in some(range(100, 160))) > enough(100)


def check_large_entries(number: int) -> int:
    """Entries of many nodes, in which results are numbered one by one; some become large, or small again."""
    random = Random(number)
    found = {f"q{each}": asked_in_large(random) for each in range(5)}
    queries = {key: query for key, query in found.items() if query is not None}
    parts = [f'<b k="{each}"><s:mutable id="{each}"><v>{each % 7}</v></s:mutable></b>' for each in range(40)]
    stream = f'<a s:at="1"><s:mutable id="all">{"".join(parts)}</s:mutable></a>'
    for at in range(2, 14):
        content = f"<v>{random.randint(0, 9)}</v>"
        if at == 9:
            stream += f'<s:replace target="all" at="{at}">{"".join(parts[: random.choice((5, 36))])}</s:replace>'
        else:
            stream += f'<s:replace target="{random.randrange(40)}" at="{at}">{content}</s:replace>'
    return Crowd(queries, random).run([stream], 0.1)


def asked_in_large(random: Random) -> ast.Query | None:
    past, bound = random.choice(("", "#1", "#2", "?3")), random.randint(0, 9)
    order = random.choice(("", " order by $x/v descending"))
    result = random.choice(("<r>{ $x/v }</r>", "$x/v", "<r>{ $x/@k, $x/v#1 }</r>"))
    return asked(f'for $x in stream("s")/root/a/b where $x/v{past} >= {bound}{order} return {result}')


def test_a_history_is_narrow_again() -> None:
    """What only a query has needed that left is gone from the state: versions, times of changes, and its results."""
    loop = 'for $x in stream("s")/root/a where $x/b{} >= 0 return <r>{{ $x/c }}</r>'
    texts = {"long": loop.format("#9"), "timed": loop.format("?60"), "short": loop.format("#1")}
    found = {key: asked(text) for key, text in texts.items()}
    queries = {key: query for key, query in found.items() if query is not None}
    regions = '<s:mutable id="1"><b>1</b></s:mutable><s:mutable id="2"><c>1</c></s:mutable>'
    updates = "".join(f'<s:replace target="1" at="{at}"><b>{at}</b></s:replace>' for at in range(2, 20))
    sizes: list[int] = []
    for keys in (("short",), ("long", "timed", "short")):
        machine = family({key: queries[key] for key in keys})
        for each in elements(f'<a s:at="1">{regions}</a>{updates}', "s"):
            list(machine.take("s", each, Fraction(each.at or 0)))
        sizes.append(len(json.dumps(machine.encode()["streams"])))
    left = family({"short": queries["short"]})
    left.decode(json.loads(json.dumps(machine.encode())))
    assert left.changes
    assert len(json.dumps(left.encode()["streams"])) == sizes[0] < sizes[1] / 2
    assert left.queries["short"].text == machine.queries["short"].text


def test_time_alone_gives_a_result_that_was_empty() -> None:
    """Though no condition looks at the time: such a query is concerned, too, when it has nothing to show."""
    loop = 'for $x in stream("s")/root/a where $x/b >= {} return {}'
    texts = [loop.format(bound, result) for bound in (0, 1) for result in ("$x/b?1", "<r>{ $x/b?1 }</r>")]
    found = {f"q{number}": asked(text) for number, text in enumerate(texts)}
    queries = {key: query for key, query in found.items() if query is not None}
    stream = '<a s:at="1"><s:mutable id="1"><b>1</b></s:mutable></a><s:punctuation at="2"/><s:punctuation at="3"/>'
    assert Crowd(queries, Random(1)).run([stream]) >= 2


@pytest.mark.mass
def test_large_entries() -> None:
    """An entry whose loops are evaluated node by node tells each query of a family what it would be told alone."""
    assert sum(check_large_entries(number) for number in some(range(20))) > enough(100)


def test_very_many_crowds(mass: Mass) -> None:
    """Random crowds are what each query is alone, very often."""
    for number in mass.cases(2_000):
        check_crowd(1_000 + number, Random(number).choice((0, 0, 0.2)))
