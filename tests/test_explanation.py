"""`engine.explain()`: what subscriptions share and what the trunk does for them, here without an engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

import papers
from anabranch.engine.reports.explanation import Explanation, explanation
from anabranch.language import check, parse, print_query
from anabranch.runtime.shapes import CheckedTexts
from anabranch.sharing.explain.scene import MOST
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream, Source

STREAMS = {name: Source(name, Path(name), "lines") for name in ("photons", "photon1", "photon2")}


def printed(text: str) -> str:
    """A query as engines keep it."""
    return print_query(check(parse(text), text).query)


def running(texts: Mapping[str, str], *, sharing: bool = True) -> Plan:
    """The plan of a first epoch with these subscriptions."""
    streams = tuple(KnownStream.of(source) for source in STREAMS.values())
    subscriptions, following = subscriptions_of(None, texts, 0, (), streams, sharing=sharing)
    return Plan(streams, subscriptions, Limits(), following, sharing=sharing)


def explain(texts: Mapping[str, str], plan: Plan | None = None) -> Explanation:
    return explanation(STREAMS, texts, plan, {})


def test_what_the_trunk_does() -> None:
    """Equal queries are one, those that differ in constants are of one shape, and branches name their members."""
    q4 = {f"vela-{number}": papers.Q4.replace("120.0", f"12{number}.0") for number in range(3)}
    given = {**papers.SHARING, **q4, "again": papers.Q4, "twin": papers.Q5}
    texts = {name: printed(text) for name, text in given.items()}
    found = explain({**texts, "late": texts["q3"]}, running(texts))
    # q4, vela-0 and again ask the same, and so do q3 and late; q4 and vela-1 and -2 differ in a number
    lines = str(found).splitlines()
    assert lines[:3] == [
        'stream "photons": 9 subscriptions, 6 different queries of 4 shapes, 2 branches',
        'stream "photon1": 5 subscriptions, 4 different queries of 4 shapes, 1 branch',
        'stream "photon2": 5 subscriptions, 4 different queries of 4 shapes, 1 branch',
    ]
    joins = next(each for each in found.branches if each.kind == "step join")
    assert (joins.members, joins.queries, joins.names) == (5, 4, ("q5", "q6", "q7", "q8"))
    assert "1 subscription not begun yet" in lines
    assert "  the same as vela-0, again" in lines
    assert any(line.endswith("step join of photon1 and photon2 for q5, q6, q7, q8 and 1 more") for line in lines)


def test_before_the_first_epoch() -> None:
    """There are no branches yet, but queries have trees already."""
    found = explain({"q1": printed(papers.Q1)})
    assert found.branches == ()
    assert found.waiting == 1
    assert "q1: stream" in str(found)
    assert "for 1 query" in found.svg


def test_nothing_to_explain() -> None:
    """An engine without subscriptions, or without streams, has an explanation, too."""
    for found in (explain({}), explanation({}, {}, None, {})):
        assert ElementTree.fromstring(found.svg).tag.endswith("svg")
        assert json.loads(found.to_json())["queries"] == []
        assert found._repr_html_()


@pytest.mark.mass
def test_thousands_are_counted_and_a_few_shown() -> None:
    """Of each shape one comes first; the rest is counted, and nothing is derived for it."""
    known = CheckedTexts({})
    texts = {"q1": printed(papers.Q1)}
    for number in range(3_000):
        condition = f"$p/en > {number}" if number < 2_990 else f'$p/name = "n{number}"'
        text = f"for $p in stream('photons')/photons/photon where {condition} return $p/phc"
        texts[f"s{number}"] = known.printed(text) or known.learn(text, check(parse(text), text).query)
    found = explain(texts, running(texts))
    assert len(found.queries) == MOST
    assert {"q1", "s0", "s2990"} <= {each.name for each in found.queries}
    assert found.streams[0].queries == 3_001
    assert found.streams[0].shapes == 3
    assert found.more == {"photons": 3_001 - MOST}
    assert f"for {MOST} of 3,001 queries" in found.svg


def test_as_data_and_in_a_notebook() -> None:
    """Programs have the trunk beside the trees, and a notebook tables above the picture; names are text."""
    texts = {"<b>": printed(papers.Q1), "&": printed(papers.Q2)}
    found = explain(texts, running(texts))
    data = json.loads(found.to_json())
    assert data["trunk"]["streams"][0] == {
        "stream": "photons",
        "subscriptions": 2,
        "queries": 2,
        "shapes": 2,
        "branches": 2,
    }
    assert [each["names"] for each in data["trunk"]["branches"]] == [["<b>"], ["&"]]
    assert [each["name"] for each in data["queries"]] == ["<b>", "&"]
    html = found._repr_html_()
    assert found.svg in html
    assert ElementTree.fromstring(html).tag == "div"
    assert "<script" not in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_sharing_turned_off_is_said() -> None:
    """Trees are shown all the same, and a line says that nobody makes use of them."""
    texts = {"q1": printed(papers.Q1)}
    assert "sharing is turned off" in str(explain(texts, running(texts, sharing=False)))
