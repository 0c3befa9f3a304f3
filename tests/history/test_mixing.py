"""Queries over items and updates together on a trunk: what the law says, for any epochs, shards and restarts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import line, timelines
from anabranch.errors import Refused, Unsupported
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.test_mixed import ORDERS, PRICES
from history.writing import Writer
from mass import some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'
STANDING = (
    "for $x in {item} let $u := {path} return <x>{{ $x/v, $u, $u#1 }}</x>",
    "<r>{{ for $x in {item} where {path} = $x/v return ($x/v, <n>{{ count({path}) }}</n>) }}</r>",
    "for $x in {item}, $u in {path} where $u = $x/v return <p>{{ $x/t, $u#[1] }}</p>",
    "for $x in {item} return <x>{{ $x/v, {asked}, {path} }}</x>",
    "for $x in {item} return $x/v + count({path})",
    "for $x in {item} return <s>{{ (for $u in {path} order by string($u) return $u), sum({asked}/v) }}</s>",
)
SHOWN = (
    "for $u in {path}, $x in {asked} where $x/v = $u return <p>{{ $u, $x/t }}</p>",
    "<d>{{ count({path}), {asked} }}</d>",
    "let $w := {asked} for $u in {path} return <w>{{ $u, $w/v#0, count($w) }}</w>",
    "sum({asked}/v), {path}",
)


class Asking(Writer):
    """Writes a stream of updates, one of items, and a query over both."""

    def items(self, length: int) -> str:
        found, now = [], 0.0
        for _ in range(length):
            now += self.random.choice((0, 0.5, 1, 2, -0.5))
            value = self.one("1", "2", "3", "3", "no number")
            beat = f'<s:punctuation at="{max(now, 0) + 3:g}"/>' if self.likely(0.1) else ""
            found.append(f"<i><t>{now:g}</t><v>{value}</v></i>{beat}")
        return "".join(found)

    def both(self) -> str:
        item = 'stream("i")/r/i' + self.one("", "", "[v = 3]")
        asked = item + self.one("#0", "#1", "#[1]", "?[1]", "?[3]", "?1")
        return self.one(*STANDING, *SHOWN).format(item=item, asked=asked, path=self.path("u"))


def sources(folder: Path, random: Random, number: int) -> list[Source]:
    """A stream of updates and one of items, as files."""
    asking = Asking(random)
    texts = {"u": ("root", asking.stream(random.choice((4, 7)))), "i": ("r", asking.items(random.choice((3, 6))))}
    found = []
    for name, (root, content) in texts.items():
        (folder / f"{name}{number}").write_text(f"<{root} {S}>{content}</{root}>")
        time = ItemPath.parse("t") if name == "i" else None
        found.append(Source(name, folder / f"{name}{number}", "document", time=time, updates=name == "u"))
    return found


@pytest.mark.parametrize("seed", some(range(4)))
def test_random_cases(seed: int, tmp_path: Path) -> None:
    """Displays show what the law shows after every moment, and results that stand are those of the law."""
    random = Random(seed)
    inputs = Inputs(sources(tmp_path, random, seed))
    queries = {f"q{number}": Asking(random).both() for number in range(6)}
    prepared = [prepare(name, text, inputs, "reference") for name, text in queries.items()]
    trunk = BareTrunk(tmp_path / "state", inputs.streams, random, finite=True)
    trunk.run(queries, [60, 200, 2_000], [1, 2, 3])
    for query in prepared:
        with timelines([query], inputs) as law:
            lines = list(law.answers[query.name])
            letters = {(each.place, each.code) for each in law.dead}
        subscription = trunk.log.subscription(query.name)
        assert subscription is not None
        assert subscription.edited == ("u",)
        assert subscription.shows == query.shows
        if query.shows:
            assert list(map(line, trunk.log.moments(subscription))) == lines, query.text
        assert trunk.answer(query.name) == (json.loads(lines[-1])["answer"] if lines else ""), query.text
        assert letters <= {(each.place, each.code) for each in trunk.log.dead_letters()}, query.text


def orders(tmp_path: Path) -> Inputs:
    """Prices that are edited, and orders that come."""
    (tmp_path / "prices").write_text(PRICES)
    (tmp_path / "orders").write_text(ORDERS)
    time = ItemPath.parse("t")
    return Inputs(
        [
            Source("prices", tmp_path / "prices", "document", updates=True),
            Source("orders", tmp_path / "orders", "document", time=time),
        ]
    )


def test_a_round_over_items_sees_the_document_as_it_is_then(tmp_path: Path) -> None:
    """Also without a qualifier: the results of a `for` over items stand (LAWS 5.5)."""
    inputs = orders(tmp_path)
    text = """<r>{ for $o in stream('orders')/o/order, $p in stream('prices')/p/price
        where $p/id = $o/id return <sold>{ $o/t, $p/v }</sold> }</r>"""
    expected = "<r><sold><t>2</t><v>10</v></sold><sold><t>6</t><v>12</v></sold></r>"
    with answering([prepare("q", text, inputs, "reference")], inputs) as run:
        assert "".join(run.answers["q"]) == expected
    assert not prepare("q", text, inputs).shows
    trunk = BareTrunk(tmp_path / "state", inputs.streams, Random(1), finite=True)
    trunk.run({"q": text}, [50, 100], [1, 2])
    assert trunk.answer("q") == expected


def test_items_beside_updates_may_come_out_of_order(tmp_path: Path) -> None:
    """Time does not run back with them, and none is lost, also where the past is not asked for."""
    inputs = orders(tmp_path)
    (tmp_path / "orders").write_text(ORDERS.replace("6.5", "4"))
    text = "<a>{ stream('prices')/p/price/v, stream('orders')/o/order/t }</a>"
    trunk = BareTrunk(tmp_path / "state", inputs.streams, Random(1), finite=True)
    trunk.run({"q": text}, [50, 100], [1, 2])
    assert trunk.answer("q") == "<a><v>15</v><t>2</t><t>6</t><t>4</t></a>"
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    with timelines([prepare("q", text, inputs, "reference")], inputs) as law:
        assert list(map(line, trunk.log.moments(subscription))) == list(law.answers["q"])


def test_who_comes_late(tmp_path: Path) -> None:
    """It begins with the document as it stands and with no items (LAWS 3.6)."""
    folders = {name: tmp_path / name for name in ("prices", "orders")}
    for each in folders.values():
        each.mkdir()
    time = ItemPath.parse("t")
    given = [
        Source("prices", folders["prices"], "lines", updates=True),
        Source("orders", folders["orders"], "lines", time=time),
    ]
    trunk = BareTrunk(tmp_path / "state", given, Random(2), finite=False)

    def more(file: str, queries: Mapping[str, str], **lines: str) -> None:
        for name, text in lines.items():
            (folders[name] / file).write_text(text)
        trunk.run(queries, [100], [1, 2])

    price = f'<price {S} s:at="1"><s:mutable id="1"><v>10</v></s:mutable></price>\n'
    changed = '<s:replace {} target="1" at="{}"><v>{}</v></s:replace>\n'
    more("1", {}, prices=price + changed.format(S, 3, 12), orders="<order><t>2</t></order>\n<order><t>3</t></order>\n")
    queries = {
        "sold": "for $o in stream('orders')//order return <s>{ $o/t, stream('prices')//v, stream('prices')//v#1 }</s>",
        "seen": "<d>{ count(stream('orders')//order?[9]), stream('prices')//v#[3] }</d>",
    }
    orders_ = "<order><t>5</t></order>\n<order><t>8</t></order>\n"
    beat = f'<s:punctuation {S} at="9"/>\n'
    more("2", queries, prices=changed.format(S, 6, 15) + beat, orders=orders_ + beat)
    assert trunk.answer("sold") == "<s><t>5</t><v>12</v></s><s><t>8</t><v>15</v><v>12</v></s>"
    assert trunk.answer("seen") == "<d>2<v>15</v><v>12</v></d>"


def test_a_look_at_the_root_of_items(tmp_path: Path) -> None:
    """There is none around what is remembered: such a query ends, and over finite inputs the law answers it."""
    inputs = orders(tmp_path)
    text = "for $p in stream('prices')/p/price return <n>{ count(stream('orders')//*?[9]) }</n>"
    chosen = prepare("q", text, inputs)
    assert (chosen.engine, chosen.shows) == ("reference", True)
    assert "a look at the root of the stream 'orders'" in (chosen.note or "")
    trunk = BareTrunk(tmp_path / "state", inputs.streams, Random(1), finite=True)
    trunk.run({"q": text}, [100], [1])
    ended = {why for each in trunk.log.manifests.since(0) for why in each.aborted.values()}
    assert ended == {"a path of the query reaches the root of a stream"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("count(stream('orders')/o/order), stream('prices')//v#1", "q:1:7: how much of a stream of items this needs"),
        ("for $o in stream('orders')/o/order order by $o/t return stream('prices')//v#0", "how much of a stream"),
        ("(count(stream('orders')/o/order) + count(stream('prices')//v))?5", "how much of a stream of items"),
    ],
)
def test_what_spark_cannot_answer(tmp_path: Path, query: str, message: str) -> None:
    """Where it is not known beforehand what of the items is needed; over finite inputs the law answers it."""
    inputs = orders(tmp_path)
    with pytest.raises(Unsupported, match=message):
        prepare("q", query, inputs, "spark")
    chosen = prepare("q", query, inputs)
    assert chosen.engine == "reference"
    assert chosen.note is not None


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("for $p in stream('prices')/p/price, $o in stream('orders')/o/order return $o", "unbounded second stream"),
        ("for $p in stream('prices')/p/price return count(stream('orders')/o/order)", "stream inside the round"),
        ("for $p in stream('prices')/p/price for $q in stream('prices')/p/price where $p/v < $q/v return $p", None),
        ("for $p in stream('prices')/p/price return <a>{ for $q in stream('prices')//v return $q }</a>", None),
        ("let $s := stream('prices')//v for $o in stream('orders')//order return ($o, $s)", None),
    ],
)
def test_which_streams_rounds_may_read(tmp_path: Path, query: str, refused: str | None) -> None:
    """A stream of updates is a document that any round may read; one of items grows, and must be bounded (LAWS 3.4)."""
    inputs = orders(tmp_path)
    if refused is None:
        prepare("q", query, inputs)
        return
    with pytest.raises(Refused, match=refused):
        prepare("q", query, inputs)
