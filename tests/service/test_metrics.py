"""Metrics for Prometheus: the numbers of the log, few series, and no name that is not explained."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from anabranch.service.watch.prometheus import FAMILIES
from anabranch.service.watch.reasons import MOST_CLASSES, OTHER, ReasonCounts, class_of
from anabranch.stream.elements import DeadLetter, Place
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

TOP = Path(__file__).parents[2]
QUERIES = {
    "all": '<all>{ for $p in stream("s")/root/p return $p/v }</all>',
    "sums": '<sums>{ for $w in stream("s")/root/p |count 2| return <sum>{ sum($w/v) }</sum> }</sums>',
}


def scraped(site: ServedSite) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """By sample: the values by their labels."""
    with site.opened("/metrics") as reply:
        assert reply.status == 200
        assert (reply.getheader("Content-Type") or "").startswith("text/plain")
        text = reply.read().decode()
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            assert key not in found.setdefault(sample.name, {}), "a series is there twice"
            found[sample.name][key] = sample.value
    return found


def epochs(site: ServedSite) -> list[dict[str, Any]]:
    """The lines of the log that are epochs."""
    lines = map(json.loads, (site.folder / "log.jsonl").read_text().splitlines())
    return [each for each in lines if each["event"] == "epoch"]


def items(*values: object) -> str:
    return "".join(f"<p><v>{each}</v></p>\n" for each in values)


def read(site: ServedSite, count: int) -> None:
    """Wait until so many items were read."""
    wait_until(lambda: site.get("/api/now")["totals"]["items"] >= count)


def test_counters_are_the_sums_of_the_log(tmp_path: Path) -> None:
    """Items, bytes, answers, dead letters and the times of phases are those of the epochs that the log tells of."""
    with served_site(tmp_path, ENGINE + LINES, QUERIES) as site:
        site.add(items(*range(10)) + "no item\n")
        read(site, 10)
        site.add(items("many", 1, 2) + "<p>\n")
        read(site, 13)
        found, told = scraped(site), epochs(site)
        assert len(told) >= 2
        sums: Counter[str] = Counter()
        for each in told:
            keys = ("items", "bytes", "matched", "dead_letters", "plan_ms", "job_ms", "publish_ms", "deliver_ms")
            sums.update({key: each[key] for key in keys})
        assert found["anabranch_epochs_total"] == {(): len(told)}
        assert found["anabranch_epoch"] == {(): told[-1]["epoch"]}
        assert found["anabranch_items_total"] == {(): sums["items"]}
        assert found["anabranch_read_bytes_total"] == {(): sums["bytes"]}
        assert sum(found["anabranch_answers_total"].values()) == sums["matched"]
        assert set(found["anabranch_answers_total"]) == {(("kind", "items"),), (("kind", "windows"),)}
        assert sum(found["anabranch_dead_letters_total"].values()) == sums["dead_letters"] > 0
        assert sum(found["anabranch_stream_items_total"].values()) == sums["items"]
        for phase, key in (("plan", "plan"), ("tasks", "job"), ("publish", "publish"), ("deliver", "deliver")):
            labels = (("phase", phase),)
            assert found["anabranch_epoch_phase_seconds_sum"][labels] == pytest.approx(sums[f"{key}_ms"] / 1_000)
            assert found["anabranch_epoch_phase_seconds_count"][labels] == len(told)
        assert found["anabranch_subscriptions"] == {(("kind", "items"),): 1, (("kind", "windows"),): 1}
        assert found["anabranch_run_state"][(("state", "ready"),)] == 1
        assert found["anabranch_state_branches"] == {(("shard", "0"),): 1}


def test_a_thousand_subscriptions_add_no_series(tmp_path: Path) -> None:
    """Series follow streams and kinds; only values change where subscriptions of a known kind come."""
    with served_site(tmp_path, ENGINE + LINES, QUERIES) as site:
        site.add(items(*range(10)))
        read(site, 10)
        text = 'for $p in stream("s")/root/p where $p/v > {} return $p/v'
        first = [{"name": "one", "query": text.format(0)}]
        assert site.send("POST", "/api/subscriptions", first)[0] == 201
        site.add(items(1) + "bad\n")
        read(site, 11)
        before = wait_until(lambda: found if "anabranch_source_lag_bytes" in (found := scraped(site)) else None)
        many = [{"name": f"q{number}", "query": text.format(number)} for number in range(1_000)]
        assert site.send("POST", "/api/subscriptions", many)[0] == 201
        events = {(("event", "subscriptions added"),)}
        site.add(items(2_000))
        read(site, 12)
        after = scraped(site)
        assert after["anabranch_subscriptions"][(("kind", "items"),)] == 1_002
        assert before.keys() == after.keys()
        assert {name: set(each) - events for name, each in after.items()} == {
            name: set(each) for name, each in before.items()
        }


def test_lag_of_a_silent_source_is_nothing_and_requests_are_counted(tmp_path: Path) -> None:
    """What was read to its end has no lag in bytes, and offsets are for topics; refusals are counted by their class."""
    with served_site(tmp_path, ENGINE + LINES, QUERIES) as site:
        site.add(items(*range(10)))
        read(site, 10)
        assert site.ask("/api/nothing")[0] == 404
        partition = (("partition", "0"), ("stream", "s"))
        wait_until(lambda: scraped(site).get("anabranch_source_lag_bytes", {}).get(partition) == 0)
        found = scraped(site)
        assert found["anabranch_source_lag_seconds"] == {partition: 0}
        assert "anabranch_source_lag_offsets" not in found
        assert found["anabranch_http_requests_total"][(("status", "4xx"),)] == 1
        assert found["anabranch_stream_fast_share_ratio"] == {(("stream", "s"),): 1}


def test_every_metric_is_given_and_explained(tmp_path: Path) -> None:
    """What the service gives are the metrics of the list, and docs/metrics.md has a line for each with its labels."""
    with served_site(tmp_path, ENGINE + LINES, QUERIES) as site:
        with site.opened("/metrics") as reply:
            text = reply.read().decode()
        given = {each.name for each in text_string_to_metric_families(text) if each.name.startswith("anabranch_")}
    assert given == {each.name for each in FAMILIES.values()}
    rows = re.findall(r"^\| `(anabranch_\w+)` \| (\w+) \| ([^|]*)\|", (TOP / "docs/metrics.md").read_text(), re.M)
    told = {name: (kind, tuple(filter(None, labels.strip().split(", ")))) for name, kind, labels in rows}
    assert told == {each.shown: (each.type, each.labels) for each in FAMILIES.values()}
    assert len(rows) == len(FAMILIES)


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    """Grafana's file is whole: panels in a grid without overlaps, a variable for the data source, known metrics."""
    dashboard = json.loads((TOP / "deploy/grafana-dashboard.json").read_text())
    assert dashboard["schemaVersion"] >= 36
    assert dashboard["uid"]
    assert dashboard["title"]
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    names = {each.shown for each in FAMILIES.values()}
    histograms = [each.name for each in FAMILIES.values() if each.type == "histogram"]
    names |= {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    labels = {each.shown: {*each.labels, "job", "instance"} for each in FAMILIES.values()}
    asked: set[str] = set()
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
        assert panel["type"] == "row" or panel["targets"]
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            found = re.findall(r"\b(anabranch_\w+)", target["expr"])
            assert set(found) <= names, target["expr"]
            asked |= set(found)
            for name, given in re.findall(r"\b(anabranch_\w+)\{([^}]*)\}", target["expr"]):
                for label in re.findall(r"(\w+)=", given):
                    assert label in labels.get(name, {label}), target["expr"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert len(asked) > 20


def letter(reason: str, code: str | None = None) -> DeadLetter:
    return DeadLetter(Place("s", "0", 0), reason, "", code)


def test_reasons_are_classed_by_their_code_or_first_words() -> None:
    """What differs from letter to letter, names and numbers, is in no class."""
    assert class_of(letter("cannot cast 'x' to a number", "FORG0001")) == "FORG0001"
    assert class_of(letter("not well-formed: mismatched tag 'x'")) == "not well-formed"
    assert class_of(letter("the item has 300 bytes")) == "the item has"
    assert class_of(letter("\x1b[2J'\"}\n")) == OTHER
    assert class_of(letter("")) == OTHER


def test_hostile_reasons_make_few_classes() -> None:
    """A stream that brings ever new reasons makes at most twenty series and one more, and every letter is counted."""
    counts = ReasonCounts()
    words = [f"{first}{second} is bad" for first in "abcdefgh" for second in "abcdefgh"]
    for word in words:
        counts.add([letter(word)], 1)
    counts.add([letter("one")], 1_000)
    assert len(counts.counts) == MOST_CLASSES + 1
    assert counts.counts[OTHER] == len(words) - MOST_CLASSES + 1_000
    assert counts.counts.total() == len(words) + 1_000
