"""Pictures, texts taken apart and places of nodes on a trunk: in items, windows, displays and over updates."""

from __future__ import annotations

from pathlib import Path
from random import Random

from anabranch.language import check, parse
from anabranch.law import evaluate, text_input
from anabranch.stream.reading.source import Source
from history.hosting import Case, Law, replayed
from spark.bare import BareTrunk

ITEM = "format-number($i/v, '#,##0.0'), path(($i//b)[1]), generate-id($i/b[1]) = generate-id($i/b[last()])"
QUERIES = {
    "item": f'for $i in stream("s")/r/i return <o>{{ {ITEM} }}</o>',
    "apart": 'for $i in stream("s")/r/i return <o>{ analyze-string($i/b[1], "(x)|y")/*/local-name() }</o>',
    "nodes": 'for $i in stream("s")/r/i return analyze-string($i/b[last()], "[a-z](\\d)")',
    "day": 'for $i in stream("s")/r/i return <o>{ format-date(xs:date(parse-ietf-date($i/d)), "[FNn] [D1o]") }</o>',
    "window": 'for $w in stream("s")/r/i|v diff 10| return <o>{ format-number(sum($w/v), "0.00"), $w/b[1]/path() }</o>',
    "order": f'<a>{{ for $i in stream("s")/r/i order by format-number($i/v, "000") return <o>{{ {ITEM} }}</o> }}</a>',
}


def _item(random: Random, number: int) -> str:
    parts = "".join(f"<b>{random.choice(['x1', 'y', 'axyb2', ''])}</b>" for _ in range(random.randrange(3)))
    nested = f"<c>{parts}</c>" if random.random() < 0.3 else parts
    return f"<i><v>{number * 1.25}</v>{nested}<d>Sun, {1 + number % 28} Mar 2026 10:00 GMT</d></i>"


def test_items_windows_and_displays(tmp_path: Path) -> None:
    """However the stream is cut into epochs and shards, the answers are the law's."""
    random = Random(7)
    text = f"<r>{''.join(_item(random, number) for number in range(40))}</r>"
    (tmp_path / "s.xml").write_text(text)
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "s.xml")], random, finite=True)
    trunk.run(QUERIES, [300, 900], [1, 2])
    for name, query in QUERIES.items():
        checked = check(parse(query), query, inputs={"s": None}, finite=True)
        assert trunk.answer(name) == evaluate(checked.query, {"s": text_input(text, name="s")}).text, name


def test_updates(tmp_path: Path) -> None:
    """Where a node stands may change with what is put in front of it; the display follows."""
    edits = (
        '<i><b>x</b><s:mutable id="1" at="1"><c/></s:mutable><b>y2</b></i>',
        '<s:replace target="1" at="2"><s:mutable id="2"><b>a1</b></s:mutable></s:replace>',
        '<s:mutable id="3" at="3"><i><b>12</b></i></s:mutable>',
        '<s:replace target="2" at="4"/>',
        '<s:replace target="3" at="5"><i><b/><b>1234.5</b></i></s:replace>',
    )
    queries = {
        "path": 'for $i in stream("s")/root/i return <o>{ $i/b ! path() }</o>',
        "id": 'for $i in stream("s")/root/i return <o>{ $i/b[last()]/generate-id() }</o>',
        "apart": 'for $i in stream("s")/root/i return <o>{ analyze-string($i/b[last()], "(\\d)")//*:group }</o>',
        "number": 'for $i in stream("s")/root/i return <o>{ format-number(count($i/b) * 1000, "#,##0") }</o>',
    }
    cases = {name: Case(query, {"s": ["".join(edits)]}) for name, query in queries.items()}
    sources = cases["path"].sources(tmp_path)
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=True)
    trunk.run(queries, [60, 200], [1, 2])
    for name, case in cases.items():
        law = Law.of(case, sources)
        assert replayed(trunk.log, name) == law.shown
        assert trunk.answer(name) == law.answer
        assert len(law.shown) > 2, "it changes"
