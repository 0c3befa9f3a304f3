"""What messages are made of answers: results, keys, accents, upserts; no broker needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Kafka
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.errors import UsageError
from anabranch.kafka.transactions import OutgoingMessage
from anabranch.spark.answers.segments import Chunk
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks.topics.keys import MessageKey
from anabranch.spark.sinks.topics.messages import TopicAddress, result_messages
from anabranch.spark.sinks.topics.record import LateSink, TopicRecord
from anabranch.spark.sinks.topics.upserts import ShownKeys, Upserts
from anabranch.stream.reading.source import Source
from anabranch.stream.serialize import escape_attribute, escape_text

ITEMS = '<r>{ for $p in stream("s")/root/p return <hit id="{ $p/@id }">{ $p/en }</hit> }</r>'
ACCENT = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="en" by=". * 2"/></s:accent>'
CONTROL = 'xmlns:s="urn:anabranch:stream"'
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


def sink(key: str | None = None, changes: str | None = None) -> Kafka:
    return Kafka("localhost:9092", "out", key=key, changes=changes)


def messages(query: str, text: str, key: str | None = None, *, partitions: int = 1) -> list[OutgoingMessage]:
    """The messages for a part of the answer to a query."""
    place = TopicAddress.of("q", 7, "out", partitions)
    chunk = Chunk(0, "", 0, len(text), 2, 0, 0)
    return list(result_messages(Registration(0, "q", query, 0), sink(key), place, [(chunk, text)], {}))


def pairs(found: Sequence[OutgoingMessage]) -> list[tuple[bytes | None, bytes | None]]:
    return [(each.key, each.value) for each in found]


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "result", "key"),
    [
        ("@id", '<p id="1&lt;2"><en>3</en></p>', b"1<2"),
        ("en", '<p id="1"><en>3</en></p>', b"3"),
        ("a/b", "<p><b>0</b><a><c/><b>1<x>2</x></b><b>4</b></a></p>", b"12"),
        ("a/@x", '<p x="0"><a/><a x="5"/></p>', b"5"),
        ("x:en", '<p xmlns:x="u"><x:en>&#233;</x:en></p>', "é".encode()),
        (".", "<p>a<b>c</b></p>", b"ac"),
        (".", "12.5", b"12.5"),
        ("en", "12.5", None),
        ("en", "<p><other/></p>", None),
        ("en", "<p><en/></p>", b""),
        ("p", "<p><q><p>no</p></q></p>", None),
    ],
)
def test_the_key_of_an_element(path: str, result: str, key: bytes | None) -> None:
    """It is the text of the first node at the path below the result; a path that finds nothing gives none."""
    assert MessageKey(path).of_element(result) == key


@given(TEXT, TEXT)
def test_any_text_can_be_a_key(attribute: str, text: str) -> None:
    """Whatever stands in attributes and elements is read as it was before it was written."""
    result = f'<p a="{escape_attribute(attribute)}"><b>{escape_text(text)}</b></p>'
    assert MessageKey("@a").of_element(result) == attribute.encode()
    assert MessageKey("b").of_element(result) == text.encode()


@pytest.mark.parametrize(
    ("path", "line", "key"),
    [
        ("n", '{"n": "a\\u00e9"}', "aé".encode()),
        ("n", '{"n": 1.50}', b"1.50"),
        ("n", '{"n": true}', b"true"),
        ("c.n", '{"c": {"n": 12345678901234567890}}', b"12345678901234567890"),
        ("n", '{"n": null}', None),
        ("n", '{"n": {"m": 1}}', None),
        ("n", "[1]", None),
        ("c.n", '{"c": 1}', None),
        (".", '"a"', b"a"),
    ],
)
def test_the_key_of_a_line_of_json(path: str, line: str, key: bytes | None) -> None:
    """It is the value as it is spelled, a string without quotes; what is missing, null or an object gives none."""
    assert MessageKey(path).of_json(line) == key


# --- what can be registered -------------------------------------------------------------------------------------------

JSON_ITEMS = 'for $o in stream("j") return { "who": $o.name, "n": 1 }'
DISPLAY = 'for $p in stream("s")/root/p group by $k := $p/@id return <g k="{ $k }">{ count($p) }</g>'


def register(query: str, chosen: Kafka, tmp_path: Any) -> str:
    streams = [Source("s", tmp_path / "s", "lines"), Source("j", tmp_path / "j", "json")]
    for each in streams:
        (tmp_path / each.name).touch()
    return Checking(Inputs(streams)).printed("q", query, sink=chosen)


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        (ITEMS, sink("@id")),
        (ITEMS, sink("en")),
        (ITEMS, sink(".")),
        ('for $p in stream("s")/root/p return $p', sink("whatever/it/has")),
        ('for $p in stream("s")/root/p return <r>{ $p/* }</r>', sink("anything")),
        (JSON_ITEMS, sink("who")),
        ('for $o in stream("j") return $o', sink("deep.er")),
        ("SELECT name AS who FROM j", sink("who")),
        (DISPLAY, sink(changes="updates")),
        (DISPLAY, sink()),
        (DISPLAY, sink("@k", changes="upserts")),
        (DISPLAY, sink(changes="upserts")),
        ("SELECT name, COUNT(*) AS n FROM j GROUP BY name", sink("name", changes="upserts")),
    ],
)
def test_a_topic_that_fits(query: str, chosen: Kafka, tmp_path: Any) -> None:
    """Keys that results have, or may have as far as the query tells; changes of displays."""
    assert register(query, chosen, tmp_path)


@pytest.mark.parametrize(
    ("query", "chosen", "message", "hint"),
    [
        (ITEMS, sink("@ID"), "no result of 'q' has a '@ID' for a key", "did you mean '@id'?"),
        (ITEMS, sink("ra/x"), "no result of 'q' has a 'ra' for a key", "there is @id, en"),
        (ITEMS, sink("a//b"), "the 'key' of 'q' is no path: 'a//b'", "write names with '/' between them"),
        (JSON_ITEMS, sink("whom"), "no result of 'q' has a 'whom' for a key", "did you mean 'who'?"),
        (JSON_ITEMS, sink("who..x"), "the 'key' of 'q' is no lookup: 'who..x'", "as in customer.name"),
        ("SELECT name FROM j", sink("id"), "no result of 'q' has a 'id' for a key", "there is name"),
        (ITEMS, sink(changes="upserts"), "the answer of 'q' only grows, so it has no 'changes'", "each of its results"),
        (DISPLAY, sink("@k"), "'q' is a display that is told in updates, whose order must be kept", "upserts"),
    ],
)
def test_a_topic_that_does_not_fit_is_refused(
    query: str, chosen: Kafka, message: str, hint: str, tmp_path: Any
) -> None:
    """When it is registered, with the name of the subscription and what to do."""
    with pytest.raises(UsageError) as caught:
        register(query, chosen, tmp_path)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("topic", "changes", "message"),
    [
        ("a b", None, "'a b' cannot be the name of a topic"),
        ("..", None, "'..' cannot be the name of a topic"),
        ("a", "inserts", "the 'changes' of a display are updates or upserts, not 'inserts'"),
    ],
)
def test_a_sink_that_cannot_be(topic: str, changes: str | None, message: str) -> None:
    """Names of topics are Kafka's."""
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        Kafka("localhost:9092", topic, changes=changes)


# --- results ----------------------------------------------------------------------------------------------------------


def test_each_result_is_a_message() -> None:
    """Without the constructor around them, with the name and the epoch as headers, in the partition of the name."""
    found = messages(ITEMS, '<hit id="1"><en>2</en></hit>\n<hit id="3"/>')
    assert [each.value for each in found] == [b'<hit id="1"><en>2</en></hit>', b'<hit id="3"/>']
    assert {each.headers for each in found} == {(("subscription", b"q"), ("epoch", b"7"))}
    assert {(each.topic, each.partition, each.key) for each in found} == {("out", 0, None)}


def test_values_and_texts_are_messages() -> None:
    """Numbers one by one; the blank between them belongs to neither."""
    assert pairs(messages('for $p in stream("s")/root/p return $p/en * 2', "2 3.5 1e9")) == [
        (None, b"2"),
        (None, b"3.5"),
        (None, b"1e9"),
    ]


def test_lines_of_json_are_messages() -> None:
    """Each without the end of its line, with the key that is looked up in it."""
    found = messages(JSON_ITEMS, '{"who": "a", "n": 1}\n{"who": null, "n": 1}\n', "who")
    assert pairs(found) == [(b"a", b'{"who": "a", "n": 1}'), (None, b'{"who": null, "n": 1}')]


def test_results_declare_the_namespaces_that_they_need() -> None:
    """A prefix that the constructor around the results declares is declared by each of them."""
    query = '<x:r xmlns:x="u" xmlns="d">{ for $p in stream("s")/*/* return <x:hit>{ 1 }</x:hit> }</x:r>'
    ((_, value),) = pairs(messages(query, "<x:hit>1</x:hit>"))
    assert value is not None
    assert b'xmlns:x="u"' in value
    assert value.endswith(b">1</x:hit>")


def test_keys_choose_partitions_and_other_messages_stay_together() -> None:
    """What has a key goes where the key says; what has none, where the subscription's name says."""
    found = messages(ITEMS, '<hit id="1"/><hit/><hit/>', "@id", partitions=5)
    assert [each.partition for each in found[:1]] == [None]
    assert len({each.partition for each in found[1:]}) == 1
    assert found[1].partition in range(5)


def test_an_accent_is_in_every_partition() -> None:
    """It stands between results as it stands in the answer, once in each partition, without a key."""
    found = messages(ITEMS, f'<hit id="1"/>{ACCENT}<hit id="2"/>', "@id", partitions=3)
    assert [(each.key, each.partition) for each in found] == [
        (b"1", None),
        *((None, n) for n in range(3)),
        (b"2", None),
    ]
    assert {each.value for each in found[1:4]} == {ACCENT.encode()}
    line = '{"$accent": {"alter": [{"path": "n", "by": ". * 2"}]}}'
    assert [each.value for each in messages(JSON_ITEMS, f'{line}\n{{"who": "a", "n": 1}}\n', partitions=2)] == [
        line.encode(),
        line.encode(),
        b'{"who": "a", "n": 1}',
    ]


# --- upserts ----------------------------------------------------------------------------------------------------------


def upserts(text: str, key: str | None = None, shown: ShownKeys | None = None) -> list[tuple[str, str | None]]:
    given = Upserts("q", key, ShownKeys() if shown is None else shown)
    found = given.messages([text], TopicAddress.of("q", 0, "out", 1))
    return [((each.key or b"").decode(), None if each.value is None else each.value.decode()) for each in found]


def xml(*moments: Sequence[str]) -> str:
    return "".join("".join(each) + f'<s:punctuation {CONTROL} at="1"/>\n' for each in moments)


def before(id: str, content: str, target: str = "end") -> str:
    return f'<s:before {CONTROL} target="{target}" id="{id}">{content}</s:before>'


def replace(id: str, content: str = "") -> str:
    return f'<s:replace {CONTROL} target="{id}">{content}</s:replace>'


FRAME = (f'<s:mutable {CONTROL} id="end"/>', before("e1 itself", f'<r><s:mutable {CONTROL} id="e1 end"/></r>'))


def test_entries_are_upserts() -> None:
    """A region has its id for a key, behind the subscription's name; gone, it is a tombstone; the frame is nothing."""
    text = xml((*FRAME, before("text 1", "<h/>"), before("s0.0.0", "<g>1</g>"), before("s0", "")), (replace("s0.0.0"),))
    assert upserts(text) == [("q/s0.0.0", "<g>1</g>"), ("q/s0.0.0", None)]


def test_a_moment_has_one_message_for_a_key() -> None:
    """An entry that is taken out and put in elsewhere has changed once."""
    text = xml((before("a", "<g>1</g>"), replace("a"), before("a", "<g>2</g>"), before("b", "<g>3</g>")))
    assert upserts(text) == [("q/a", "<g>2</g>"), ("q/b", "<g>3</g>")]


def test_results_by_key() -> None:
    """Each result of a region has its key in it; what a region has no more is gone, what is equal is not told."""
    group = '<g k="{}">{}</g>'.format
    shown = ShownKeys()
    text = xml((before("s0", group("a", 1) + group("b", 2)),), (replace("s0", group("a", 1) + group("c", 3)),))
    assert upserts(text, "@k", shown) == [
        ("a", group("a", 1)),
        ("b", group("b", 2)),
        ("b", None),
        ("c", group("c", 3)),
    ]
    assert upserts(xml((replace("s0", group("c", 4)),), (replace("s0"),)), "@k", shown) == [
        ("a", None),
        ("c", group("c", 4)),
        ("c", None),
    ]
    assert (shown.regions, shown.owners) == ({}, {})


def test_a_key_that_moves_between_regions_is_not_gone() -> None:
    """It belongs to the result that was written last, whichever of both is told first."""
    shown = ShownKeys()
    assert upserts(xml((before("a", "<g>1</g>"),)), ".", shown) == [("1", "<g>1</g>")]
    assert upserts(xml((before("b", "<g>1</g>"), replace("a"))), ".", shown) == [("1", "<g>1</g>")]
    assert upserts(xml((replace("b"),)), ".", shown) == [("1", None)]


def test_upserts_of_json() -> None:
    """Rows of a display in JSON by key; one without the key is left out and counted."""
    lines = [
        {"$mutable": {"id": "end", "at": 1}},
        {"$before": {"target": "end", "id": "s0", "at": 1, "content": [{"n": "a", "s": 0}, {"s": 1}]}},
        {"$punctuation": {"at": 1}},
    ]
    given = Upserts("q", "n", ShownKeys())
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    found = list(given.messages([text], TopicAddress.of("q", 0, "out", 1)))
    assert pairs(found) == [(b"a", b'{"n": "a", "s": 0}')]
    assert given.keyless == 1


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_topic_that_is_new_makes_nobody_late() -> None:
    """Its position is where the first of its subscriptions began."""
    record = TopicRecord().joined("t", {"a": 5, "b": 9}, 5)
    assert record.late == ()
    assert record.members == {"t": {"a": None, "b": None}}


def test_a_sink_that_is_added_later_is_late() -> None:
    """It gets the epochs from its first to the position of the topic; one that begins now gets nothing."""
    record = TopicRecord().joined("t", {"a": 0}, 0).joined("t", {"a": 0, "b": 3, "c": 8}, 8)
    assert record.late == (LateSink("b", "t", 3, 8),)
    assert record.joined("t", {"a": 0, "b": 3, "c": 8}, 8) == record
    assert record.caught_up().late == ()


def test_a_sink_that_left_comes_back_where_it_was() -> None:
    """What others have written meanwhile it has not, and gets first; its own it does not get again."""
    record = TopicRecord().joined("t", {"a": 0, "b": 0}, 0).joined("t", {"a": 0}, 4)
    assert record.members == {"t": {"a": None, "b": 4}}
    assert record.joined("t", {"a": 0}, 6).members == record.members
    assert record.joined("t", {"a": 0, "b": 0}, 9).late == (LateSink("b", "t", 4, 9),)


def test_a_late_sink_that_leaves_comes_back_where_it_was() -> None:
    """How far it had come is what it has."""
    record = TopicRecord().joined("t", {"a": 0}, 0).joined("t", {"a": 0, "b": 0}, 9)
    gone = record.joined("t", {"a": 0}, 9)
    assert (gone.late, gone.members) == ((), {"t": {"a": None, "b": 0}})


def test_what_is_attempted_is_known_when_the_next_is() -> None:
    """Of topics that are not looked at, it stays unknown."""
    record = TopicRecord({"t": 1, "u": 1}, {"t": 2, "u": 2})
    assert record.known({"t": 2}, {"t": 3}) == TopicRecord({"t": 2, "u": 1}, {"u": 2, "t": 3})
