"""A path whose root or item name the stream does not have is never silently empty (LAWS 1.5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Engine
from anabranch.engine.inputs import Inputs
from anabranch.errors import QueryError
from anabranch.stream.reading.source import Source

ORDERS = '{"amount": 7, "ts": 1}\n{"amount": 3, "ts": 70}\n'
WRONG = 'for $o in stream("s")/orders/item return <a>{ $o/amount }</a>'


def _inputs(folder: Path, text: str, **settings: str) -> Inputs:
    file = folder / "s"
    file.write_text(text)
    return Inputs([Source("s", file, **settings)], finite=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "lacking"),
    [
        (WRONG, "/orders"),
        ('count(stream("s")/root/order)', "/root/order"),
        ('let $s := stream("s") for $o in $s/root/orders return $o', "/root/orders"),
        ('for $w in stream("s")/orders/item|ts diff 60| return count($w)', "/orders"),
    ],
)
def test_agreed_names_are_an_error(tmp_path: Path, query: str, lacking: str) -> None:
    """Over JSON lines the names are agreed on: another one is an error, whose hint has the right path."""
    with pytest.raises(QueryError) as caught:
        _inputs(tmp_path, ORDERS).check(query, "q")
    assert f"the stream 's' has no '{lacking}'" in str(caught.value)
    assert 'stream("s")/root/item' in str(caught.value.hint)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ('for $o in stream("s") return { "a": $o.amount, "b": null }', "write ()"),
        ('for $o in stream("s") where $o.ok = true return $o', "write true()"),
        ('for $o in stream("s") return for-each($o/amount, floor#1)', "write function($x) { floor($x) }"),
    ],
)
def test_names_that_were_meant_otherwise(tmp_path: Path, query: str, meant: str) -> None:
    """A value of JSON and a function by its name and arity are names here; the hint has what XQuery and we write."""
    with pytest.raises(QueryError) as caught:
        _inputs(tmp_path, ORDERS).check(query, "q")
    assert str(caught.value.hint).endswith(meant)


@pytest.mark.parametrize(
    "query", ['count(stream("s")/root/item)', 'count(stream("s")/*/*)', 'count(stream("s")//amount)']
)
def test_right_names_pass(tmp_path: Path, query: str) -> None:
    """The implied names, stars and deep steps are no errors."""
    assert not _inputs(tmp_path, ORDERS).check(query, "q").warnings


def test_declared_names(tmp_path: Path) -> None:
    """A root and an item that were declared are the right ones, and the implied ones are wrong then."""
    inputs = _inputs(tmp_path, ORDERS, root="orders", item="order")
    assert not inputs.check('count(stream("s")/orders/order)', "q").warnings
    with pytest.raises(QueryError, match="no '/root'"):
        inputs.check('count(stream("s")/root/item)', "q")


def test_lines_of_xml_have_an_agreed_root(tmp_path: Path) -> None:
    """Lines of XML have no root of their own either; their items may be called anything."""
    inputs = _inputs(tmp_path, "<a>1</a>\n<b>2</b>\n", format="lines")
    assert not inputs.check('count(stream("s")/root/c)', "q").warnings
    with pytest.raises(QueryError, match="no '/r'"):
        inputs.check('count(stream("s")/r/a)', "q")
    (warning,) = _inputs(tmp_path, "<a>1</a>\n<b>2</b>\n").check('count(stream("s")/r/a)', "q").warnings
    assert "has no '/r' so far" in warning.message


def test_learned_names_are_a_warning(tmp_path: Path) -> None:
    """Of a document without a schema only the first items are known, so what they do not have is a warning."""
    inputs = _inputs(tmp_path, "<r><p><amount>1</amount></p></r>")
    (warning,) = inputs.check(WRONG, "q").warnings
    assert warning.message == "the stream 's' has no '/orders' so far: its items are stream(\"s\")/r/p"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            'for $o in stream("s") return <a>{ $o/amount }</a>',
            'for $o in stream("s")/root/item return <a>{ $o/amount }</a>',
        ),
        (
            'for $o in stream("s")[amount > 5] return <a>{ $o/amount }</a>',
            'for $o in stream("s")/root/item[amount > 5] return <a>{ $o/amount }</a>',
        ),
        (
            'for $w in stream("s")[amount > 1]|ts diff PT1M| return <n>{ count($w) }</n>',
            'for $w in stream("s")/root/item[amount > 1]|ts diff PT1M| return <n>{ count($w) }</n>',
        ),
    ],
)
def test_a_loop_over_a_stream_runs_over_its_items(tmp_path: Path, written: str, meant: str) -> None:
    """`for $o in stream("s")` means its items, with a predicate or a window behind it, too; it is the same query."""
    inputs = _inputs(tmp_path, ORDERS)
    assert inputs.check(written, "q").query == inputs.check(meant, "q").query


def test_elsewhere_a_stream_is_its_document(tmp_path: Path) -> None:
    """`count(stream("s"))` is 1: only a loop runs over items."""
    from anabranch.engine.reading import read_stream
    from anabranch.law import evaluate
    from anabranch.stream.limits import Limits

    inputs = _inputs(tmp_path, ORDERS)
    read = read_stream(inputs.streams[0], Limits())
    assert evaluate(inputs.check('count(stream("s"))', "q").query, {"s": read.input}).text == "1"


def test_a_run_warns_when_the_names_are_learned(tmp_path: Path) -> None:
    """A stream that is empty at first is taken as it comes: behind its first items the right path is told."""
    folder = tmp_path / "in"
    folder.mkdir()
    told: list[str] = []
    with Engine(local=True, once=True, on_warning=told.append) as engine:
        engine.stream("s", folder)
        engine.subscribe(WRONG, "q")
        engine.subscribe('for $o in stream("s") return <a>{ $o/amount }</a>', "fine")
        (folder / "1.jsonl").write_text(ORDERS)
        engine.wait()
    (message,) = told
    assert (
        message == "the subscription 'q': the stream 's' has no '/orders' so far: its items are stream(\"s\")/root/item"
    )
