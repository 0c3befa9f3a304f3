"""What branches remember, asked of the service: the same that `anabranch state` reads from the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.site_reports import holdings
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

EDITED = '[streams.board]\nsource = "files"\npath = "updates"\nformat = "lines"\nupdates = true\n'
QUERIES = {
    "all": 'for $p in stream("s")/root/p return $p/v',
    "pairs": '<w>{ for $w in stream("s")/root/p |count 2| return <n>{ $w/v }</n> }</w>',
    "twin": '<w>{ for $v in stream("s")/root/p |count 2| return <n>{ $v/v }</n> }</w>',
    "show": '<show>{ for $p in stream("board")/root/p return $p }</show>',
}


def items(*values: object) -> str:
    return "".join(f"<p><v>{each}</v></p>\n" for each in values)


def state(site: ServedSite, epoch: int) -> Any:
    """The state when an epoch is there."""
    wait_until(lambda: site.get("/api/now")["epoch"] >= epoch)
    return site.get("/api/state")


def test_it_is_what_the_checkpoint_has(tmp_path: Path) -> None:
    """Branches with their members, kinds and sizes, and shards that add them up, after each epoch anew."""
    (tmp_path / "updates").mkdir()
    with served_site(tmp_path, ENGINE + LINES + EDITED, QUERIES) as site:
        assert site.get("/api/state") == {"branches": [], "shards": []}
        for count in range(3):
            site.add(items(*range(2 * count + 1)))
            found = state(site, count)
            told = holdings(tmp_path / "SITE.toml")
            shown = sorted(
                (
                    tuple(each["subscriptions"]),
                    each["kind"],
                    each["shard"],
                    each["held"],
                    each["bytes"],
                    each["waiting"],
                )
                for each in found["branches"]
                if each["stream"] is None
            )
            kept = sorted(
                (each.subscriptions, each.kind, each.shard, each.held, each.size, each.waiting)
                for each in told
                if each.kind != "document"
            )
            assert shown == kept
            (document,) = (each for each in found["branches"] if each["stream"] is not None)
            assert (document["stream"], document["kind"], document["subscriptions"]) == ("board", "document", [])
            (shard,) = found["shards"]
            assert shard["bytes"] == sum(each.size for each in told)
            assert shard["held"] == sum(each.held for each in told)
            assert shard["branches"] == len(told)
        names = sorted(tuple(each["subscriptions"]) for each in found["branches"])
        assert names == [(), ("pairs", "twin"), ("show",)], "twins share one branch, and item queries have none"


def test_a_run_that_goes_on_knows_the_state_of_the_one_before(tmp_path: Path) -> None:
    """Before its first epoch it tells what it has taken over."""
    with served_site(tmp_path, ENGINE + LINES, {"pairs": QUERIES["pairs"]}) as site:
        site.add(items(1, 2, 3))
        before = state(site, 0)
        assert before["branches"][0]["held"] > 0
    with served_site(tmp_path, ENGINE + LINES, {"pairs": QUERIES["pairs"]}) as site:
        assert site.get("/api/now")["epochs"] == []
        assert site.get("/api/state") == before
        assert site.get("/api/now")["state"]["held"] == before["branches"][0]["held"]
