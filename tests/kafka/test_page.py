"""What docs/kafka.md shows of answers in topics: its site is run, and writes the messages that the page has."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.cli import main
from brokers import Broker
from test_docs import TOP, blocks


def test_the_site_of_the_page(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its orders, its queries, its topics: key by key and value by value."""
    monkeypatch.chdir(tmp_path)
    page = TOP / "docs/kafka.md"
    line = page.read_text().partition("## Answers in topics")[0].count("\n")
    orders, site, large, totals, first, second, *_ = (each.text for each in blocks(page) if each.line > line)
    topics = {name: broker.topic(name) for name in ("large-orders", "totals")}
    for name, topic in topics.items():
        site = site.replace(f'"{name}"', f'"{topic}"')
    (tmp_path / "orders.jsonl").write_text(orders + "\n")
    (tmp_path / "SITE.toml").write_text(site.replace("127.0.0.1:9092", broker.address))
    for query in (large, totals):
        heading, _, text = query.partition("\n")
        (tmp_path / heading.removeprefix("-- ")).write_text(text)
    assert main(["run", "SITE.toml", "--once"]) == 0
    for shown, topic in ((first, topics["large-orders"]), (second, topics["totals"])):
        found = [(each.key or b"") + b"\t" + (each.value or b"") for each in broker.read(topic)]
        assert [each.decode() for each in found] == shown.splitlines()
