"""What one part of the project writes for another, under the fuzzer: damaged bytes are refused, none made up."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa

from anabranch.algebra.accents.events import Announced, Event, is_change
from anabranch.branch.remote.lines import (
    EndedMark,
    FromMark,
    Layout,
    Mark,
    NoLine,
    ReachedMark,
    SentWindow,
    mark_text,
    read_line,
    window_text,
)
from anabranch.branch.state import BranchState
from anabranch.errors import BadItem, StateError
from anabranch.spark.answers.segments import Segment, SegmentWriter, read_chunk, read_index
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.state.files import StateWriter, read_blob
from anabranch.storage import Location
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import LineSplitter
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.reader import ElementReader, Format
from columnar.json_records import HOSTILE
from fuzzing.target import Target

_NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
_LAYOUT = Layout(("a", "b"), ("cs", "lg"))
_TABLE = pa.table({"number": pa.array([1, 2, 3]), "text": ["a", None, "ccc"]})
_STATE = BranchState({"operator": "items", "taken": 5}, {"items": _TABLE, "waiting": _TABLE.slice(0, 1)})
_TEXTS = {1: "<n>1</n><n>2</n>", 2: "é" * 200, 3: "x"}


@cache
def _folder() -> Path:
    """A folder for files under test; it lasts as long as the process."""
    return Path(tempfile.mkdtemp(prefix="anabranch-fuzzing-"))


def _state(data: bytes) -> None:
    """A state is refused, or can be written and read again."""
    try:
        found = BranchState.from_bytes(data)
    except StateError:
        return
    again = BranchState.from_bytes(found.to_bytes())
    assert again.meta == found.meta
    assert again.tables.keys() == found.tables.keys()


def _manifest(data: bytes) -> None:
    """A damaged manifest is refused; one that is none is, too, though its checksum is right."""
    file = _folder() / "00000001.json"
    given = [data]
    with suppress(ValueError, IndexError, RecursionError):  # such values are never written
        given.append(durable.sealed(json.loads(data.decode().splitlines()[0])))
    for each in given:
        file.write_bytes(each)
        try:
            durable.read_record(Manifest, file)
        except StateError:
            continue


@cache
def _segment() -> tuple[Segment, bytes]:
    """A segment with answers, dead letters and late items, and its bytes."""
    at = Location.of(_folder() / "segments")
    with SegmentWriter(at, 1, 0) as writer:
        for number, text in _TEXTS.items():
            writer.add(number, text)
    (found,) = writer.segments
    return found, (_folder() / "segments" / found.name).read_bytes()


def _answers(data: bytes) -> None:
    """Of a segment that was changed, an answer is what it was, or there is an error."""
    found, _ = _segment()
    changed = _folder() / "changed" / found.name
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_bytes(data)
    read_index.cache_clear()
    at = Location.of(_folder() / "changed")
    try:
        index = read_index(at, (found,))
        assert {each: "".join(read_chunk(at, chunk) for chunk in index.of(each)) for each in _TEXTS} == _TEXTS
    except StateError:
        return


@cache
def _blob() -> tuple[str, str, bytes]:
    """The place of a state in a file, the name of the file, and its bytes."""
    at = Location.of(_folder() / "states")
    with StateWriter(at, 1, 0) as files:
        place = files.write(_STATE.to_bytes())
    name = place.split(":")[0]
    return place, name, (_folder() / "states" / name).read_bytes()


def _saved(data: bytes) -> None:
    """Of a state file that was changed, a state is what it was, or there is an error."""
    place, name, _ = _blob()
    file = _folder() / "changed-states" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    try:
        assert read_blob(Location.of(_folder() / "changed-states"), place) == _STATE.to_bytes()
    except StateError:
        return


def _window(data: bytes) -> None:
    """A line of a sent window is refused, or says the same when it is written again."""
    try:
        item = parse_item(data, Limits())
    except BadItem:
        return
    try:
        found = read_line(item, _LAYOUT)
    except NoLine:
        return
    match found:
        case SentWindow(number, partials):
            text = window_text(number, partials, _LAYOUT)
            again = read_line(parse_item(text.encode(), Limits()), _LAYOUT)
            assert isinstance(again, SentWindow)
            assert window_text(number, again.partials, _LAYOUT) == text
        case mark:
            assert read_line(parse_item(mark_text(mark).encode(), Limits()), _LAYOUT) == mark


def _controls(form: Format) -> Callable[[bytes], None]:
    """Control elements are taken or set aside, and an event is the same when it was logged."""

    def check(data: bytes) -> None:
        reader = ElementReader("s", form, Limits(), parse_root(b"<root>"))
        splitter = LineSplitter(Limits())
        for element in reader.elements([*splitter.feed(data), *splitter.finish()], "f"):
            if isinstance(element, Event) and not isinstance(element, DeadLetter) and is_change(element):
                said = Announced("s", 0, element)
                assert Announced.from_json(json.loads(json.dumps(said.json))) == said

    return check


_ACCENTS = [
    f'<s:accent {_NAMESPACE} where="@g = 1 and v &gt; 2"><s:alter path="v" by="1.8 * . + 32"/></s:accent>\n',
    f'<s:accent {_NAMESPACE}><s:drop path="a/b"/></s:accent>\n',
    f'<s:accent {_NAMESPACE} at="5"><s:add path="@k"/></s:accent>\n',
    f'<s:punctuation {_NAMESPACE} where="t &lt; 5" at="3"/>\n',
    f'<s:replace {_NAMESPACE} target="a" id="b" at="7"><v>1</v></s:replace>\n',
    f'<p {_NAMESPACE} s:at="3"><s:mutable id="a"><v>1</v></s:mutable></p>\n',
]
_OBJECTS = [
    '{"$accent": {"where": "v > 2", "alter": {"path": "v", "by": "1.8 * . + 32"}}}\n',
    '{"$accent": {"drop": {"path": "a/b"}}}\n',
    '{"$punctuation": {"where": "t < 5", "at": 3}}\n',
    '{"$replace": {"target": "a", "id": "b", "at": 7, "content": [1]}}\n',
]
_MARKS: tuple[Mark, ...] = (FromMark(3), ReachedMark(None), ReachedMark(9), EndedMark("a <reason>"))
_WINDOWS = [
    '<w n="7"><v c="3" s="4.5"/><v l="-0.0 12" g="2.5"/></w>',
    '<w n="-1"><v c="1" s="" e="x"/><v l="INF" g="NaN"/></w>',
    '<w n="7"><v c="3" s="4.5"><f at="3" stage="0" code="FORG0001">no number</f></v><v l="" g=""/></w>',
    *(mark_text(each) for each in _MARKS),
]
_WORDS = [
    b"<v",
    b"<w",
    b"<f",
    b' n="',
    b' c="',
    b' s="',
    b' l="',
    b' t="',
    b' r="',
    b' x="',
    b"INF",
    b"-",
    b"/3",
    b"e5",
]
_MANIFEST = durable.sealed(json.loads(json.dumps({"epoch": 1, "run": 1, "plan": "p", "offsets": {}, "carries": {}})))


def targets() -> list[Target]:
    """The targets; what they read is written first."""
    state = _STATE.to_bytes()
    return [
        Target(
            "a state", _state, [state, state.partition(b"\n")[0] + b"\n"], [b'"tables":', b'"version":', b"7", b"[]"]
        ),
        Target(
            "a manifest", _manifest, [_MANIFEST, b"{}", b"null"], [b"null", b"[]", b"{}", b'"epoch":', b'"states":']
        ),
        Target("a segment", _answers, [_segment()[1]]),
        Target("a file of states", _saved, [_blob()[2]]),
        Target("a line of a link", _window, [each.encode() for each in _WINDOWS], _WORDS),
        Target(
            "control elements", _controls("lines"), [each.encode() for each in _ACCENTS], [b"<s:alter", b" by='. * 2'"]
        ),
        Target("control objects", _controls("json"), [each.encode() for each in _OBJECTS], HOSTILE),
    ]
