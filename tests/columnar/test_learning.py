"""The look of a stream grows as items of other kinds come, and learning that does not help is given up."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

from anabranch.columnar.items.growing_look import SAMPLE, GrowingLook, chosen
from anabranch.columnar.scan.look import MOST_PARTS, Look
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.reader import Format
from anabranch.stream.tree import Element
from columnar.streams import Stream, item_queries

PIECES, IN_PIECE = 12, 500


def _xml(rnd: random.Random, number: int) -> str:
    kind = rnd.choices(["order", "alarm", "login"], [80, 15, 5])[0]
    n = rnd.randrange(100)
    if kind == "order":
        lines = "".join(f'<line sku="s{n}"><qty>{n % 7}</qty></line>' for _ in range(rnd.randrange(4)))
        note = f"<note>n{n}</note>" if rnd.random() < 0.05 else ""
        return f'<order id="{number}"><price>{n}</price>{lines}{note}</order>'
    if kind == "alarm":
        place = f"<place><x>{n}</x><y>{n}</y></place>" if rnd.random() < 0.5 else ""
        return f'<alarm level="{n % 5}"><price>{n}</price>{place}</alarm>'
    return f"<login><user>u{n}</user>{'<failed/>' if n % 3 else ''}</login>"


def _json(rnd: random.Random, number: int) -> str:
    kind = rnd.choices(["order", "alarm", "login"], [80, 15, 5])[0]
    n = rnd.randrange(100)
    found: dict[str, object] = {"price": n} if kind != "login" else {}
    if kind == "order":
        found |= {"id": number, "line": [{"sku": f"s{n}", "qty": n % 7} for _ in range(rnd.randrange(4))]}
        found |= {"note": f"n{n}"} if rnd.random() < 0.05 else {}
    elif kind == "alarm":
        found |= {"level": n % 5} | ({"place": {"x": n, "y": n}} if rnd.random() < 0.5 else {})
    else:
        found |= {"user": f"u{n}"}
    return json.dumps(found)


ASKED = {
    "price": 'for $p in stream("s")/root/* where $p/price > 90 return <hit>{ $p/price }</hit>',
    "place": 'for $p in stream("s")/root/* where $p/place/x > 50 return <at>{ $p/place }</at>',
    "user": 'for $p in stream("s")/root/* where $p/user = "u7" return <u>{ $p/user }</u>',
    "lines": 'for $p in stream("s")/root/* where $p/price > 95 return <l>{ for $l in $p/line return $l/qty }</l>',
}
ORDERS = {
    "orders": 'for $p in stream("s")/root/order where $p/price > 90 return <hit>{ $p/price }{ $p/note }</hit>',
    "alarms": 'for $p in stream("s")/root/alarm where $p/@level = 3 return <hit>{ $p/price }</hit>',
    "logins": 'for $p in stream("s")/root/login where $p/user != "u7" return $p/user',
}


@pytest.mark.parametrize(
    ("form", "item", "asked"), [("lines", _xml, ORDERS), ("document", _xml, ORDERS), ("json", _json, ASKED)]
)
@pytest.mark.mass
def test_a_stream_that_mixes_kinds_of_items_is_read_in_columns_after_a_few_pieces(
    form: Format, item: Callable[[random.Random, int], str], asked: dict[str, str]
) -> None:
    """Three kinds, two of them seldom, with parts that some have and some repeat: answers are those of the law."""
    rnd = random.Random(5)
    texts = ["".join(item(rnd, number) + "\n" for number in range(IN_PIECE)) for _ in range(PIECES)]
    first = "".join(f"{each}\n" for each in ('<order id="0"><price>1</price></order>',) * 30) if form != "json" else ""
    pieces = [each.encode() for each in (first + texts[0], *texts[1:])]
    if form == "document":
        pieces = [b"<root>" + pieces[0], *pieces[1:-1], pieces[-1] + b"</root>"]
    stream = Stream(item_queries(asked), form)
    answers = stream.answers()
    found, _ = stream.by_columns(pieces, answers)
    assert found == stream.by_law(b"".join(pieces))
    again, read = stream.by_columns(pieces, answers)
    assert again == found
    assert read <= PIECES * IN_PIECE // 100


def _items(*texts: str) -> list[tuple[bytes, Element]]:
    return [(each.encode(), parse_item(each.encode(), Limits())) for each in texts]


def _names(look: Look | None) -> list[str]:
    return [] if look is None else ["/".join(look.path(number)) for number in range(len(look.parts))]


def test_parts_are_added_and_those_that_come_late_are_optional() -> None:
    """A look grows by what later items have, and the template stays."""
    growing = GrowingLook(is_json=False)
    assert growing.learn(_items("<p><a>1</a></p>", "<p><a>2</a></p>"), 1.0, lambda look: True)
    assert growing.learn(_items("<p><a>1</a><b>2</b></p>", "<q/>"), 0.1, lambda look: True)
    assert growing.look is not None
    assert _names(growing.look) == ["p", "p/a", "p/b", "q"]
    assert [part.optional for part in growing.look.parts] == [False, False, True, False]
    assert growing.look.template is not None
    assert growing.look.template.paths == [("p",), ("p", "a")], "the template stays that of the most usual items"


def test_learning_that_does_not_help_is_paused_for_longer_and_longer() -> None:
    """Each pause is about twice as long as the one before, up to a longest one."""
    growing = GrowingLook(is_json=False)
    assert growing.learn(_items("<p><a>1</a></p>"), 1.0, lambda look: True)
    tried = []
    for number in range(2_000):
        assert not growing.is_due(1_000, 20), "few items are off the look"
        if growing.is_due(1_000, 100):
            tried.append(number)
            assert not growing.learn(_items("<p><a>1</a></p>"), 0.1, lambda look: True)
    gaps = np.diff(tried).tolist()
    assert gaps[:5] == [2, 3, 5, 9, 17]
    assert max(gaps) == 257


def test_names_that_are_values_are_learned_no_further_than_a_look_reaches() -> None:
    """Every item has another name in it: learning never helps, so looks are made seldom, and none becomes too large."""
    growing = GrowingLook(is_json=False)
    made = 0

    def use(look: Look) -> bool:
        nonlocal made
        made += 1
        return True

    name = 0
    for _ in range(5_000):
        if growing.is_due(100, 100):
            name += SAMPLE
            growing.learn(_items(*(f"<p><n{name + each}/></p>" for each in range(SAMPLE))), 1.0, use)
        assert growing.look is not None
        assert len(growing.look.parts) <= MOST_PARTS
    assert made < 50


def test_a_look_that_is_of_less_use_is_not_taken_but_what_leaves_it_alone_is() -> None:
    """Items that would spoil what is known are not learned; others are."""
    growing = GrowingLook(is_json=False)

    def use(look: Look) -> bool:
        return look.parts[1].has_text

    assert growing.learn(_items("<p><a>1</a></p>"), 1.0, use)
    assert growing.learn(_items("<p><a><i/></a></p>", "<p><b/></p>"), 0.1, use)
    assert _names(growing.look) == ["p", "p/a", "p/b"]


def test_what_few_items_have_twice_is_not_repeated() -> None:
    """Items that fit are part of the sample, in proportion."""
    fits = np.ones(1_000, np.bool_)
    fits[::20] = False
    some = chosen(fits)
    assert len(some) == 80
    assert np.count_nonzero(~fits[some]) == 20
    fits[::2] = False
    assert len(chosen(fits)) == 40
    assert not len(chosen(np.ones(5, np.bool_)))
    growing = GrowingLook(is_json=False)
    growing.learn(_items("<p><a>1</a></p>"), 1.0, lambda look: True)
    growing.learn(_items(*["<p><a>1</a></p>"] * 3, "<p><a>1</a><a>2</a></p>"), 0.1, lambda look: True)
    assert growing.look is not None
    assert not growing.look.parts[1].repeated
    growing.learn(_items(*["<p><a>1</a></p>"] * 2, "<p><a>1</a><a>2</a></p>"), 0.1, lambda look: True)
    assert growing.look.parts[1].repeated


def test_a_template_has_nothing_twice() -> None:
    """Where the items that look alike byte by byte have a part twice, and most others have it once."""
    usual = [f"<p><a>1</a><b>{'<c/>' * number}</b></p>" for number in range(4)]
    look = Look.learn(_items("<p><a>1</a><a>2</a><b/></p>", "<p><a>1</a><a>2</a><b/></p>", *usual * 2))
    assert look is not None
    assert not look.parts[1].repeated
    assert look.template is None
