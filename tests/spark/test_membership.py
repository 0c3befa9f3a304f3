"""Who shares a branch with whom, from epoch to epoch, and that nothing of it shows (LAWS 3.7)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.language import check, parse, print_query
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import KnownStream, Source
from spark.bare import BareTrunk

JOIN = """for $x in stream("s")/r/i|t diff {0}| for $y in stream("u")/r/i|t diff {0}|
    where $x/n >= $y/n return <p>{{ $x/n, $y/n }}</p>"""
WINDOW = 'for $w in stream("s")/r/i|t diff {0}| return <w>{{ $w/n }}</w>'
STREAMS = tuple(KnownStream.of(Source(name, Path(name), root="r", item="i", time=ItemPath.parse("t"))) for name in "su")


class Registry:
    """Subscriptions from epoch to epoch."""

    def __init__(self, *, sharing: bool = True) -> None:
        self.plan = Plan(STREAMS, (), Limits(), 0)
        self.sharing = sharing

    def want(self, epoch: int, begun: str, **queries: str) -> dict[str, int]:
        """Let these be wanted from an epoch on, of streams that had begun before; gives everybody's branch."""
        texts = {name: print_query(check(parse(text), text).query) for name, text in queries.items()}
        given = self.plan, texts, epoch, begun, STREAMS
        subscriptions, following = subscriptions_of(*given, sharing=self.sharing)
        self.plan = Plan(STREAMS, subscriptions, Limits(), following)
        return {each.name: each.branch for each in subscriptions}


def test_who_begins_together_shares() -> None:
    """Of one family and one beginning; a branch has the number of the first whom it served."""
    found = Registry().want(0, "", a=JOIN.format(5), b=JOIN.format(9), c=WINDOW.format(5), d=JOIN.format(5))
    assert found == {"a": 0, "b": 0, "c": 2, "d": 0}


def test_who_sees_something_else_does_not() -> None:
    """Before a stream has begun all see the same of it; behind that, those who begin with the same epoch do."""
    registry = Registry()
    a, b, c, d = (JOIN.format(size) for size in (5, 6, 7, 8))
    registry.want(0, "", a=a)
    assert registry.want(3, "", a=a, b=b)["b"] == 0
    assert registry.want(4, "s", a=a, b=b, c=c, d=d) == {"a": 0, "b": 0, "c": 2, "d": 2}
    assert registry.want(5, "s", a=a, b=b, c=c, d=d, e=c)["e"] == 4
    assert registry.want(6, "su", a=a, b=b, c=c, d=d, e=c, f=c)["f"] == 5


def test_a_branch_outlives_its_first_member() -> None:
    """Its number stays, whoever leaves; nobody else ever gets it."""
    registry = Registry()
    a, b = JOIN.format(5), JOIN.format(6)
    registry.want(0, "", a=a, b=b)
    assert registry.want(1, "su", b=b) == {"b": 0}
    assert registry.want(2, "su", a=a, b=b) == {"a": 2, "b": 0}


def test_without_sharing_everybody_is_alone() -> None:
    """Also twins; and who has shared goes on doing so, for the state is one."""
    registry = Registry(sharing=False)
    assert registry.want(0, "", a=WINDOW.format(5), b=WINDOW.format(5)) == {"a": 0, "b": 1}
    registry.sharing = True
    registry.want(1, "", a=WINDOW.format(5), b=WINDOW.format(5), c=JOIN.format(5), d=JOIN.format(5))
    registry.sharing = False
    found = registry.want(2, "", a=WINDOW.format(5), b=WINDOW.format(5), c=JOIN.format(5), d=JOIN.format(5))
    assert found == {"a": 0, "b": 1, "c": 2, "d": 2}


def test_item_queries_have_no_branch_to_share() -> None:
    """They keep nothing; a plan says nothing of a family."""
    registry = Registry()
    registry.want(0, "", a='stream("s")/r/i', b='stream("s")/r/i')
    assert [(each.joined, each.family) for each in registry.plan.subscriptions] == [(None, ""), (None, "")]


# --- on a trunk -------------------------------------------------------------------------------------------


@pytest.mark.mass
def test_a_branch_serves_whoever_is_there(tmp_path: Path) -> None:
    """Members leave, others come; there is one state for those who share, and each answer is that of a trunk alone."""
    queries = {
        **{f"join{size}": JOIN.format(size) for size in (3, 6, 9)},
        **{f"window{size}": WINDOW.format(size) for size in (4, 7)},
        "twin": JOIN.format(6).replace("$x", "$left"),
    }
    phases: list[list[str]] = [
        ["join3", "join6", "window4", "window7", "twin"],
        ["join6", "window7", "twin", "join9"],
        ["twin", "window7", "join9"],
    ]
    trunk, states = _run(tmp_path / "shared", queries, phases)
    assert states == [{0: 2, 2: 2}, {0: 1, 2: 1, 5: 1}, {0: 1, 2: 1, 5: 1}]
    for name, query in queries.items():
        mine = [[each for each in phase if each == name] for phase in phases]
        alone, _ = _run(tmp_path / name, {name: query}, mine)
        assert trunk.answer(name) == alone.answer(name) != "", name
    assert trunk.answer("twin").startswith(trunk.answer("join6"))


@pytest.mark.mass
def test_each_query_of_a_branch_joins_its_own_twins(tmp_path: Path) -> None:
    """Two that share their windows have equal states, and results of their own; a branch takes in nobody but twins."""
    items, count = WINDOW.format(4), WINDOW.format(4).replace("$w/n", "string($w[1]/n)")
    queries = {"items": items, "late items": items, "late firsts": count, "later firsts": count}
    phases = [["items"], ["items", "late items", "late firsts"], list(queries), list(queries), list(queries)]
    trunk, _ = _run(tmp_path / "shared", queries, phases)
    assert trunk.plan is not None
    assert {each.name: each.branch for each in trunk.plan.subscriptions} == dict(
        zip(queries, (0, 0, 1, 1), strict=True)
    )
    for name, query in queries.items():
        alone, _ = _run(tmp_path / name, {name: query}, [[each for each in phase if each == name] for phase in phases])
        assert trunk.answer(name) == alone.answer(name) != "", name


def _run(folder: Path, queries: dict[str, str], phases: list[list[str]]) -> tuple[BareTrunk, list[dict[int, int]]]:
    """Let streams grow from phase to phase; gives the trunk, and how many queries each branch then has a state for."""
    folder.mkdir()
    files = {name: folder / name for name in "su"}
    for file in files.values():
        file.write_text("")
    sources = [Source(name, file, "lines", root="r", time=ItemPath.parse("t")) for name, file in files.items()]
    trunk = BareTrunk(folder / "state", sources, Random(1), finite=False)
    random = Random(2)
    states: list[dict[int, int]] = []
    for number, phase in enumerate(phases):
        for file in files.values():
            with file.open("a") as out:
                for t in range(30 * number, 30 * number + 30):
                    out.write(f"<i><t>{t / 2}</t><n>{random.randrange(9)}</n></i>\n")
        trunk.run({name: queries[name] for name in phase}, [900, 3_000], [1, 2, 3])
        plan = trunk.plan
        assert plan is not None
        *_, last = trunk.log.manifests.since(0)
        states.append({branch: _queries(plan.subscriptions, branch) for branch in sorted(last.states)})
    return trunk, states


def _queries(subscriptions: tuple[Registration, ...], branch: int) -> int:
    texts = {each.text.replace("$left", "$x") for each in subscriptions if each.branch == branch}
    return len(texts)


def test_a_query_that_reaches_a_root_ends_whoever_had_its_name_before() -> None:
    """Where the root is known already: another query under the name of one that was fine, and a new name alike."""
    fine, outside = ('for $x in stream("s")/r/i return $x/n', 'for $x in stream("s")//r return <r/>')
    first, following = subscriptions_of(None, {"a": fine, "b": fine}, 0, (), STREAMS, rooted="s")
    assert [each.aborted for each in first] == ["", ""]
    before = Plan(STREAMS, first, Limits(), following)
    wanted = {"a": fine, "b": outside, "c": outside}
    found, _ = subscriptions_of(before, wanted, 1, "s", STREAMS, rooted="s", checked="s")
    assert [(each.name, bool(each.aborted)) for each in found] == [("a", False), ("b", True), ("c", True)]
