"""Ranges read one by one give what the whole stream gives; no Spark needed."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.columnar.items.answering import StreamAnswers
from anabranch.errors import StateError, StreamError
from anabranch.spark.answers.segments import DEAD_LETTERS, SegmentWriter, read_dead_letters, read_index
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.job import Job
from anabranch.spark.epoch.passage import Passage
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Offset, Range
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.storage import pieces
from anabranch.spark.intake.survey import Survey
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import PlanFile
from anabranch.storage import Location
from anabranch.stream.elements import DeadLetter, Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.source import KnownStream, Source, StreamForm, read
from anabranch.stream.schema import Schema
from anabranch.stream.serialize import serialize

LIMITS = Limits(item_bytes=200)

GOOD = ["<p><en>1</en></p>", "<p a='>'/>", "<n:p>x</n:p>", "<p><![CDATA[</p>]]></p>", "<q>&lt;</q>", "<p><p/></p>"]
BAD = ["<p><en>1</p>", "<p>&nope;</p>", "text", "</p>", "<p>" + "x" * 300 + "</p>", "<p", "<p b='<'/>", "<!-- <p> -->"]


def shown(element: StreamElement | DeadLetter) -> tuple[object, ...]:
    """What must be the same however the stream is read."""
    match element:
        case DeadLetter(place, reason, raw):
            return (place, reason, raw)
        case Item(tree, place):
            return (place, serialize(tree))
        case _:
            return (element.place, type(element).__name__)


def whole(source: Source) -> list[tuple[object, ...]]:
    return [shown(element) for element in read(source, LIMITS)]


def by_ranges(source: Source, budgets: list[int]) -> list[tuple[object, ...]]:
    """Read epoch by epoch, with another survey for each, and hand carries on, as a trunk does that is often killed."""
    found: list[tuple[object, ...]] = []
    carries: dict[str, tuple[int, str]] = {}
    at: Offset = {}
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint.make(Path(folder))
        for budget in cycle(budgets):
            IntakeSettings((source,), budget, None, 2, finite=True).save(checkpoint)
            end = Survey(checkpoint).latest(at)
            if end == at:
                return found
            log = OrderLog.of(checkpoint, source.name)
            log.refresh()
            for each in Survey(checkpoint).ranges(at, end):
                if each.mark:
                    continue
                assert log.form is not None
                stream = KnownStream.of(source, log.form)
                number, carry = carries.pop(each.key, (-1, None))
                carry = carry if number == each.number else None
                reader = RangeReader(stream, stream.root(), LIMITS, each, carry)
                found += [shown(element) for element in reader]
                if after := reader.carry():
                    carries[each.key] = (each.number, after)
            at = end
    raise AssertionError("budgets must not be empty")


pieces_of_streams = st.lists(st.sampled_from(GOOD + BAD), max_size=12)
budgets = st.lists(st.integers(1, 120), min_size=1, max_size=5)


@settings(deadline=None, max_examples=20)
@given(parts=pieces_of_streams, closed=st.booleans(), budgets=budgets)
def test_a_document_in_ranges_is_the_document(parts: list[str], closed: bool, budgets: list[int]) -> None:
    """Wherever epochs end, in an item, a tag or a name: the same items, the same dead letters, the same places."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "in.xml")
        path.write_text('<ps xmlns:n="urn:n">\n' + "\n".join(parts) + ("\n</ps>\n" if closed else ""))
        source = Source("s", path, format="document")
        assert by_ranges(source, budgets) == whole(source)


@settings(deadline=None, max_examples=40)
@given(parts=pieces_of_streams, budgets=budgets, end=st.sampled_from(["", "\n", "\r\n"]))
def test_lines_in_ranges_are_the_lines(parts: list[str], budgets: list[int], end: str) -> None:
    """Wherever epochs end they end after a line, and nothing is lost, doubled or moved."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "in")
        path.write_bytes((end or "\n").join(parts).encode() + end.encode())
        source = Source("s", path, format="lines")
        assert by_ranges(source, budgets) == whole(source)


def test_a_directory_is_one_sequence_of_files(tmp_path: Path) -> None:
    """Plain and packed files in order of name, each a document of its own; empty and hidden ones do not count."""
    (tmp_path / "1.xml").write_text("<ps><p>1</p><p>2</p>")
    (tmp_path / "2.xml.gz").write_bytes(gzip.compress(b"<ps><p>3</p>") + gzip.compress(b"<p>4</p></ps>"))
    (tmp_path / "3.xml").write_text("")
    (tmp_path / "4.xml").write_text("<ps><p>5</p></ps>")
    (tmp_path / ".5.xml").write_text("<ps><p>6</p></ps>")
    source = Source("s", tmp_path)
    found = by_ranges(source, [7])
    assert found == whole(source)
    assert [text for _, text in found] == [f"<p>{n}</p>" for n in range(1, 6)]


def test_a_packed_file_that_is_cut_short_keeps_what_came_before(tmp_path: Path) -> None:
    """The items before the damage, then a dead letter for the rest, as in a whole reading."""
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(b"".join(b"<p>%d</p>\n" % n for n in range(10_000)))[:-100])
    source = Source("s", path, format="lines")
    found = by_ranges(source, [1])
    assert found == whole(source)
    assert len(found) > 1
    assert found[-1][1] == "the gzip data is cut short"


def test_json_lines_have_ranges_too(tmp_path: Path) -> None:
    """JSON is read by the same ranges; the items get the name that the source gives them."""
    path = tmp_path / "in.json"
    path.write_text('{"en": 1.30}\n{"en": [1, 2]}\n{"en": }\n{"en": null}')
    source = Source("s", path, item="p")
    found = by_ranges(source, [10])
    assert found == whole(source)
    assert found[0][1] == "<p><en>1.30</en></p>"


def test_a_strict_stream_sets_undeclared_paths_aside(tmp_path: Path) -> None:
    """The schema reaches the tasks with the plan."""
    schema = Schema.from_dtd("<!ELEMENT ps (p*)><!ELEMENT p (en?)><!ELEMENT en (#PCDATA)>")
    path = tmp_path / "in"
    path.write_text("<p><en>1</en></p>\n<p><phc>1</phc></p>\n")
    source = Source("s", path, schema=schema, strict=True)
    found = by_ranges(source, [100])
    assert found == whole(source)
    assert found[1][1] == "the path 'phc' is not declared"


def test_an_item_with_its_own_time_needs_partitions_that_are_merged(tmp_path: Path) -> None:
    """Partitions without a time are read one after the other; an element that says `s:at` there is bad (LAWS 1.3)."""
    path = tmp_path / "in"
    path.write_text('<p xmlns:s="urn:anabranch:stream" s:at="5"/>\n<p/>\n')
    (tmp_path / "more").write_text("<p/>\n")
    reach = Range("s", "0", 0, "in", str(path), 0, path.stat().st_size, last=True, packed=False, sequence=0)

    def shown(source: Source) -> tuple[int | None, list[str]]:
        stream = KnownStream.of(source, StreamForm("lines", "<root/>"))
        root = parse_root(b"<root/>")
        plan = PlanFile.save(Plan((stream,), (), LIMITS, 0), Location.of(tmp_path))
        passage = Passage(Job(plan, Checkpoint.at(tmp_path), 0, {}), stream, root, LIMITS, reach)
        with SegmentWriter(Location.of(tmp_path), 0, 0) as segment:
            counts = passage.show(StreamAnswers((), "lines", root, LIMITS), segment, ())
        chunks = read_index(Location.of(tmp_path), segment.segments).of(DEAD_LETTERS)
        items = None if counts is None else counts.items
        return items, [each.reason for chunk in chunks for each in read_dead_letters(Location.of(tmp_path), chunk)]

    assert shown(Source("s", path)) == (2, [])
    more = (tmp_path / "more",)
    assert shown(Source("s", path, more=more, time=ItemPath.parse("t"))) == (2, [])
    reason = "has a time of its own, and the stream has several partitions and no time: declare a time path"
    assert shown(Source("s", path, more=more)) == (1, [f"an item {reason}"])
    for control, kind in (
        ('<s:accent xmlns:s="urn:anabranch:stream" at="5"><s:add path="a"/></s:accent>', "an accent"),
        ('<s:punctuation xmlns:s="urn:anabranch:stream" at="5"/>', "a punctuation"),
    ):
        path.write_text(f"{control}\n")
        reach = replace(reach, end=path.stat().st_size)
        assert shown(Source("s", path, more=more)) == (None, [f"{kind} {reason}"])
    by_law = read(Source("s", path, "lines", more=more), LIMITS)
    assert [each.reason for each in by_law if isinstance(each, DeadLetter)] == [f"a punctuation {reason}"]


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    """What is loaded equals what was saved, schema and all; another file under its name is refused."""
    schema = Schema.from_dtd("<!ELEMENT ps (p*)><!ELEMENT p (en?)><!ELEMENT en (#PCDATA)>")
    stream = KnownStream.of(Source("s", tmp_path, schema=schema, strict=True), StreamForm("lines", "<ps/>"))
    plan = Plan((stream,), (Registration(3, "q", 'stream("s")/ps/p', 7),), LIMITS, 4)
    file = PlanFile.save(plan, Location.of(tmp_path))
    assert file.load() == plan
    other = PlanFile(file.path, "0" * 64)
    with pytest.raises(StateError, match="damaged"):
        other.load()


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    """A range that is no longer there must not look like an empty one."""
    path = tmp_path / "in"
    path.write_text("<p/>\n")
    with pytest.raises(StreamError, match="shorter"):
        list(pieces(str(path), 0, 100))
    with pytest.raises(StreamError, match="cannot read"):
        list(pieces(str(tmp_path / "gone"), 0, 1))
