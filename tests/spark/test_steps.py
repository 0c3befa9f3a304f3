"""LAWS 2.6 in a trunk, without Spark: who takes too many steps is set aside, for one subscription and one unit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from anabranch.columnar.items.query import CompiledQuery, compile_query
from anabranch.columnar.scan.cutter import LONGEST_FITTING
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from anabranch.stream.reading.source import Source
from columnar.looks import look_of
from reference.few_steps import doubling
from spark.bare import BareTrunk
from spark.law import law_of

TWICE = " ".join(f"let $v{number} := ($v{number - 1}, $v{number - 1})" for number in range(1, 24))
QUERIES = {
    "calls": f"{doubling(24, '({f}($x), {f}($x))', '$x')} "
    'for $p in stream("s")/r/p where $p/n = 3 return <n>{ local:f23(1) }</n>',
    "items": f'for $p in stream("s")/r/p let $v0 := $p/n[. > 4] {TWICE} return <n>{{ $p/n, count($v23) }}</n>',
    "paths": 'stream("s")/r/p[n = 5 or big/v = big/w]/n',
    "windows": f'for $w in stream("s")/r/p|count 2| let $v0 := $w/n[. = 4] {TWICE} '
    "return <w>{ $w/n, count($v23) }</w>",
    "panes": f'for $w in stream("s")/r/p|count 2| for $v0 in (0, 1)[. = count($w[n = 4])] '
    f'let $v0 := if ($v0 = 1) then "x" else () {TWICE} return <w>{{ sum($w/n), count($v23) }}</w>',
    "pairs": f'for $x in stream("s")/r/p|n diff 2|, $y in stream("s")/r/p|n diff 2| let $v0 := $x/n[. = 2] {TWICE} '
    "where $x/n != $y/n return <j>{ $x/n, $y/n, empty($v23) }</j>",
    "good": 'for $p in stream("s")/r/p where $p/n > 2 return <ok>{ $p/n }</ok>',
    "good windows": 'for $w in stream("s")/r/p|count 2| return <ok>{ avg($w/n) }</ok>',
}
BIG = "".join(f"<v>{number}</v><w>-</w>" for number in range(1_001))


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.mass
def test_what_takes_too_long_concerns_one_subscription_and_one_unit(tmp_path: Path, sharing: bool) -> None:
    """Answers and dead letters are those of the law, for each subscription beside all others."""
    path = tmp_path / "s"
    lines = [f"<p><n>{number}</n>{f'<big>{BIG}</big>' if number == 2 else ''}</p>\n" for number in range(6)]
    path.write_text("".join(lines))
    source = Source("s", path, "lines", root="r")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True, sharing=sharing)
    trunk.run(QUERIES, (40, 10_000), (1, 2))
    dead = Counter(trunk.log.dead_letters())
    for name, text in QUERIES.items():
        query = check(parse(text), text, inputs={"s": None}).query
        law = law_of(query, [source], endless=False, name=name)
        assert trunk.answer(name) == law.text, name
        mine = Counter({each: count for each, count in dead.items() if each.subscription == name})
        assert mine == law.dead, name
        assert bool(mine) == (not name.startswith("good")), name
        assert {each.code for each in mine} <= {"XPDY0130"}, name


@pytest.mark.parametrize(("depth", "compiled"), [(1, True), (2, False)])
@pytest.mark.parametrize("result", ["()", "<x/>", "$p"])
def test_loops_are_compiled_that_go_once_over_an_item(depth: int, compiled: bool, result: str) -> None:
    """A loop over repeated parts is compiled, loops over the same parts inside of it are the law's, which counts."""
    inner = result
    for number in range(depth):
        inner = f"for $a{number} in $p/n return <e>{{ {inner} }}</e>"
    text = f'for $p in stream("s")/r/p return <o>{{ {inner} }}</o>'
    hole = standing(check(parse(text), text, inputs={"s": None}).query).plain_hole
    assert hole is not None
    found = compile_query(hole, "r", look_of(b"<p><n>1</n><n>2</n><n>3</n></p>"))
    assert isinstance(found, CompiledQuery) == compiled


def test_long_items_are_left_to_the_law(tmp_path: Path) -> None:
    """Texts are not counted in columns, so an item that is long is answered by the law, and as well."""
    path = tmp_path / "s"
    texts = [f"{number}{'x' * (LONGEST_FITTING if number % 3 == 1 else 10)}" for number in range(12)]
    path.write_text("".join(f"<p><n>{each}</n></p>\n" for each in texts))
    source = Source("s", path, "lines", root="r")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    text = 'for $p in stream("s")/r/p return <o>{ $p/n, $p/n }</o>'
    trunk.run({"q": text}, (1 << 20,), (1,))
    assert trunk.answer("q") == "".join(f"<o><n>{each}</n><n>{each}</n></o>" for each in texts)
