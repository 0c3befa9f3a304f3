"""The shared plan, group by group: who is answered together, at which rate, and what would be read without sharing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from anabranch.service.watch.sharing import MOST_GROUPS, PlanGrouping
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.stream.limits import Limits
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

TWO = LINES + LINES.replace("streams.s", "streams.t").replace('"in"', '"other"')
HIGH = 'for $p in stream("s")/root/p where $p/v > {} return <high>{{ $p/v }}</high>'
RENAMED = 'for $item in stream("s")/root/p where $item/v > {} return <high>{{ $item/v }}</high>'
SUMS = '<sums>{{ for $w in stream("s")/root/p |count {}| return <sum>{{ sum($w/v) }}</sum> }}</sums>'
SIBLINGS = 'for $p in stream("t")/root/p return $p/v/following-sibling::v'


def items(*values: object) -> str:
    return "".join(f"<p><v>{each}</v></p>\n" for each in values)


def sharing(site: ServedSite, subscriptions: int) -> Any:
    """The groups, once the plan has so many subscriptions."""

    def found() -> Any:
        given = site.get("/api/sharing")
        return given if sum(each["subscriptions"] for each in given["groups"]) == subscriptions else None

    return wait_until(found)


def register(site: ServedSite, queries: dict[str, str]) -> None:
    body = [{"name": name, "query": text} for name, text in queries.items()]
    assert site.send("POST", "/api/subscriptions", body)[0] == 201


def plan_of(texts: list[str], kind: str = "items") -> Plan:
    found = (Registration(number, f"q{number}", text, 0, kind, ("s",)) for number, text in enumerate(texts))
    return Plan((), tuple(found), Limits(), len(texts))


def test_queries_are_grouped_by_what_they_share(tmp_path: Path) -> None:
    """Those that differ in constants and names are one group, windows of any size one, and others by themselves."""
    (tmp_path / "other").mkdir()
    with served_site(tmp_path, ENGINE + TWO) as site:
        assert site.get("/api/sharing")["groups"] == []
        queries = {f"high{number}": HIGH.format(number % 5) for number in range(8)}
        queries |= {"renamed": RENAMED.format(3), "sums": SUMS.format(2), "more": SUMS.format(3), "siblings": SIBLINGS}
        register(site, queries)
        site.add(items(*range(10)))
        site.add(items(*range(10)), "other/a")
        found = sharing(site, 12)
        groups = {each["kind"] + " " + each["streams"][0]: each for each in found["groups"]}
        assert groups.keys() == {"items s", "windows s", "items t"}
        high = groups["items s"]
        assert high["label"] == 'for $p in stream("s")/root/p where $p/v > ? return <high>{ $p/v }</high>'
        assert (high["subscriptions"], high["queries"], high["branches"]) == (9, 5, 0)
        assert high["in_columns"]
        assert high["names"] == ["high0", "high1", "high2"]
        windows = groups["windows s"]
        assert "|count ?|" in windows["label"]
        assert 'stream("s")' in windows["label"]
        assert (windows["subscriptions"], windows["queries"], windows["branches"]) == (2, 2, 2)
        wait_until(lambda: _group(site, groups["items t"]["id"])["reason"])
        siblings = _group(site, groups["items t"]["id"])
        assert not siblings["in_columns"]
        assert "sibling" in siblings["reason"]
        streams = {each["name"]: each for each in found["streams"]}
        assert streams["s"]["subscriptions"] == 11
        assert set(streams["s"]["groups"]) == {high["id"], windows["id"]}
        assert found["without"]["passes"] == 12
        assert found["with"]["passes"] == 2


def _group(site: ServedSite, group: str) -> Any:
    return next(each for each in site.get("/api/sharing")["groups"] if each["id"] == group)


def test_what_would_be_read_without_sharing_is_what_is_read_for_each_of_them(tmp_path: Path) -> None:
    """The bytes of a second, once for all with sharing, and without it once for each subscription."""
    with served_site(tmp_path, ENGINE + LINES, {f"q{number}": HIGH.format(number) for number in range(10)}) as site:
        site.add(items(*range(1_000)))
        found = wait_until(lambda: given if (given := sharing(site, 10))["with"]["bytes_per_second"] else None)
        assert abs(found["without"]["bytes_per_second"] - 10 * found["with"]["bytes_per_second"]) < 1
        (stream,) = found["streams"]
        assert stream["bytes_per_second"] == found["with"]["bytes_per_second"]
        assert stream["items_per_second"] > 0


def test_the_rate_of_a_group_is_that_of_its_answers(tmp_path: Path) -> None:
    """A group that is never answered has none; one that is has the answers of all its members."""
    queries = {"often": HIGH.format(-1), "twin": HIGH.format(-2), "never": SUMS.format(1_000_000)}
    with served_site(tmp_path, ENGINE + LINES, queries) as site:
        site.add(items(*range(100)))
        found = wait_until(lambda: _answered(site))
        assert found["windows"]["answers_per_second"] == 0
        assert found["items"]["answers_per_second"] <= 200


def _answered(site: ServedSite) -> Any:
    found = {each["kind"]: each for each in sharing(site, 3)["groups"]}
    return found if found["items"]["answers_per_second"] > 0 else None


def test_the_members_of_a_group_come_page_by_page(tmp_path: Path) -> None:
    """By name, each once, with their answers and their queries as they were written."""
    with served_site(tmp_path, ENGINE + LINES) as site:
        queries = {f"q{number:03}": HIGH.format(number) for number in range(25)}
        register(site, queries)
        site.add(items(10, 30))
        (group,) = sharing(site, 25)["groups"]
        wait_until(lambda: site.get("/api/now")["totals"]["items"] == 2)
        found: list[Any] = []
        after = None
        while True:
            page = site.get(f"/api/sharing/{group['id']}", after=after, limit=10)
            assert page["group"]["subscriptions"] == 25
            found += page["subscriptions"]
            after = page["next"]
            if after is None:
                break
        assert {each["name"]: each["query"] for each in found} == queries
        assert [each["name"] for each in found] == sorted(queries)
        assert found[0]["answers"] == 2
        assert found[24]["answers"] == 1
        assert site.ask("/api/sharing/nothing")[0] == 404
        assert site.ask(f"/api/sharing/{quote('../../<b>', safe='')}")[0] == 404
        assert site.ask(f"/api/sharing/{group['id']}", limit=0)[0] == 400


def test_a_group_keeps_its_id(tmp_path: Path) -> None:
    """It depends on what its members share alone: not on who is first, nor on the run."""
    with served_site(tmp_path, ENGINE + LINES, {"a": HIGH.format(1), "b": RENAMED.format(2)}) as site:
        site.add(items(1))
        (before,) = sharing(site, 2)["groups"]
    (tmp_path / "a.xq").unlink()
    with served_site(tmp_path, ENGINE + LINES, {"b": RENAMED.format(2)}) as site:
        site.add(items(2))
        wait_until(lambda: site.get("/api/now")["totals"]["items"] == 1)
        (after,) = sharing(site, 1)["groups"]
    assert before["id"] == after["id"]


def test_very_many_groups_are_shown_as_some_and_the_others_together() -> None:
    """A thousand different shapes are two hundred groups and one more, in which all others are."""
    texts = [f'for $p in stream("s")/root/p return <e{number}>{{ $p/v }}</e{number}>' for number in range(1_000)]
    plan = plan_of([*texts, texts[500]])
    found = PlanGrouping({}).of(plan, {})
    assert len(found.groups) == MOST_GROUPS + 1
    assert (found.groups[0].subscriptions, found.groups[0].names) == (2, ("q500", "q1000"))
    assert sum(each.subscriptions for each in found.groups) == 1_001
    others = found.groups[-1]
    assert (others.subscriptions, others.queries) == (1_000 - MOST_GROUPS, 1_000 - MOST_GROUPS)
    assert len(found.members(MOST_GROUPS)) == others.subscriptions
    assert len({each.id for each in found.groups}) == len(found.groups)


def test_a_plan_is_grouped_once_and_the_next_one_like_it() -> None:
    """The same plan gives the same arrays; one with a subscription less, the same groups with one less."""
    groups = PlanGrouping({})
    texts = [HIGH.format(number) for number in range(2_500)]
    plan = plan_of(texts)
    groups.prepare(plan)
    groups.prepare(plan)
    first = groups.of(plan, {})
    assert groups.of(plan, {}).codes is first.codes
    fewer = groups.of(Plan((), plan.subscriptions[1:], Limits(), 2_500), {})
    assert [each.id for each in fewer.groups] == [each.id for each in first.groups]
    assert (first.groups[0].subscriptions, fewer.groups[0].subscriptions) == (2_500, 2_499)
    assert first.readers == {"s": 2_500}


def test_labels_are_short_and_show_nothing_that_acts() -> None:
    """A long query is cut, and control characters in it are told as references."""
    long = "".join(f"<e{number}/>" for number in range(200))
    text = f'for $p in stream("s")/root/p return <r a="\x85">{long}</r>'
    (found,) = PlanGrouping({}).of(plan_of([text]), {}).groups
    assert len(found.label) < 300
    assert "\x85" not in found.label
    assert found.label.endswith("…")


def test_subscriptions_that_have_ended_are_in_no_group() -> None:
    """Nobody answers them any more."""
    going, ended = plan_of([HIGH.format(1), HIGH.format(2)]).subscriptions
    ended = Registration(1, "q1", ended.text, 0, "items", ("s",), aborted="an accent")
    found = PlanGrouping({}).of(Plan((), (going, ended), Limits(), 2), {})
    assert [each.subscriptions for each in found.groups] == [1]
    assert found.codes.tolist() == [0, 1], "behind all groups"
    assert found.readers == {"s": 1}
