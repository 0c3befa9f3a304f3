"""Queries about the past over streams of updates and of items together."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reading import Updating, WrittenStream, looked_into
from anabranch.engine.reports.timelines import timelines
from anabranch.errors import Unsupported
from anabranch.law.inputs import Arrival, Input
from anabranch.predicate.writing import number_text
from anabranch.runtime.past.timeline import Timeline
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element, copy
from history.past import checked, given, item, stream
from history.test_remember import BODIES, PATHS, QUALIFIERS, some_stream
from mass import some

PRICES = """\
<p xmlns:s="urn:anabranch:stream">
<price s:at="1"><id>x</id><s:mutable id="1"><v>10</v></s:mutable></price>
<s:replace target="1" at="5"><v>12</v></s:replace>
<s:replace target="1" at="9"><v>15</v></s:replace>
</p>
"""
ORDERS = "<o><order><t>2</t><id>x</id></order><order><t>6</t><id>x</id></order><order><t>6.5</t><id>y</id></order></o>"


def shown(tmp_path: Path, query: str, prices: str = PRICES, orders: str = ORDERS) -> list[tuple[float, str]]:
    """The timeline of a query over both streams; the answer is its last line."""
    sources = []
    for name, text, time in (("prices", prices, None), ("orders", orders, ItemPath.parse("t"))):
        (tmp_path / name).write_text(text)
        sources.append(looked_into(Source(name, tmp_path / name, "document", time=time), Limits()))
    inputs = Inputs(sources)
    prepared = [prepare("q", query, inputs, "reference")]
    with timelines(prepared, inputs) as run:
        found = [(each["at"], each["answer"]) for each in map(json.loads, run.answers["q"])]
    with answering(prepared, inputs) as run:
        assert "".join(run.answers["q"]) == (found[-1][1] if found else "")
    return found


def test_the_price_at_the_time_of_the_order(tmp_path: Path) -> None:
    """A round of a `for` over items looks at the other stream as it is when its item arrives, and stands."""
    query = """
        for $o in stream("orders")/o/order
        let $p := stream("prices")/p/price[id = $o/id]#0
        return <sold>{ $o/t, $p/v, $p/v#1, count(stream("orders")/o/order?[4]) }</sold>
    """
    first = "<sold><t>2</t><v>10</v>1</sold>"
    second = f"{first}<sold><t>6</t><v>12</v><v>10</v>2</sold>"
    assert shown(tmp_path, query) == [(2, first), (6, second), (6.5, f"{second}<sold><t>6.5</t>2</sold>")]


def test_a_loop_over_updates_is_corrected(tmp_path: Path) -> None:
    """Where updates are looped over, all is as it is now; arrivals of the other stream grow old."""
    query = """
        for $p in stream("prices")/p/price, $o in stream("orders")/o/order?[4]
        where $o/id = $p/id return <due>{ $o/t, $p/v }</due>
    """
    assert shown(tmp_path, query) == [
        (2, "<due><t>2</t><v>10</v></due>"),
        (5, "<due><t>2</t><v>12</v></due>"),
        (6, "<due><t>6</t><v>12</v></due><due><t>2</t><v>12</v></due>"),
        (6.5, "<due><t>6</t><v>12</v></due>"),
        (9, "<due><t>6</t><v>15</v></due>"),
    ]


def test_a_round_that_fails_is_set_aside_once(tmp_path: Path) -> None:
    """What has failed when its item arrived stays failed, and is one dead letter."""
    query = "for $o in stream('orders')/o/order return 1 + stream('prices')/p/price[id = $o/id]/v#0"
    prices = PRICES.replace("<v>12</v>", "<v>twelve</v>")
    assert shown(tmp_path, query, prices) == [(2, "11")]


def test_items_may_come_out_of_order(tmp_path: Path) -> None:
    """Beside updates, too, a stream of items is not judged by its times."""
    orders = ORDERS.replace("6.5", "4")
    query = "for $o in stream('orders')/o/order return <n>{ stream('prices')/p/price/v#0, $o/id }</n>"
    assert [at for at, _ in shown(tmp_path, query, orders=orders)] == [2, 6, 6]


def test_what_is_refused(tmp_path: Path) -> None:
    """A predicate on items that asks for the past of updates is refused by name."""
    with pytest.raises(Unsupported, match="a predicate on a stream of items cannot ask for the past"):
        shown(tmp_path, "stream('orders')/o/order[t > stream('prices')/p/price/v#1]")


# --- the same law -----------------------------------------------------------------------------------------

MORE = (
    "for $x in {0} return <x>{{ $x }}</x>",
    "for $x in {0}, $y in {1} where $x/v = $y/v return <p>{{ $x/v, $y/t }}</p>",
    "count({0}), {1}",
    "let $w := {0} return <w>{{ $w#1, $w/v?[1], count($w) }}</w>",
    "(count({0}))?2, sum({1}/t#0)",
    "for $x in {0} return <x>{{ (count($x) + count({1}))?1 }}</x>",
    "for $x in {0} return <x>{{ (count($x) + count(stream('b')/r/i[v = $x/v]))#1 }}</x>",
)


def written(name: str, read: Input) -> WrittenStream:
    """A stream of items as it was written, with the times that it was read with."""
    root = copy(read.root)
    assert isinstance(root, Element)
    elements: list[Item | Punctuation] = []
    for each in read.elements:
        at = Decimal(number_text(each.time))
        if isinstance(each, Arrival):
            elements.append(Item(each.item, each.place, at))
        else:
            elements.append(Punctuation(None, each.punctuation.place, at))
    return WrittenStream(Source(name, Path(name)), root, [elements], ())


@pytest.mark.parametrize("seed", some(range(25)))
def test_over_items_alone_it_is_their_law(seed: int) -> None:
    """Asked of streams of items only, documents show what the law of arrivals shows, moment by moment."""
    random = Random(seed)
    asked = [random.choice(PATHS) + random.choice(QUALIFIERS) for _ in range(2)]
    text = random.choice((*BODIES, *MORE)).format(*asked)
    streams = given({name: some_stream(random, random.randrange(1, 8), straight=True) for name in ("a", "b")})
    query = checked(text, streams).query
    law = Timeline(query, streams, name="q")
    edited = {name: written(name, each) for name, each in streams.items()}
    mixed = Updating(query, edited, {}, functions=None, name="q", text=text, limits=Limits())
    assert list(mixed) == list(law), text
    assert {(each.place, each.code) for each in mixed.dead} == {(each.place, each.code) for each in law.dead}, text


def test_streams_of_items_stay_what_they_are() -> None:
    """The comparison above is one of two laws: it would not do to compare one with itself."""
    read = given({"s": stream(item(1))})["s"]
    assert written("s", read).items == 1
    assert not written("s", read).source.updates
