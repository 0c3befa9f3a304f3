from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import UsageError
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source, detect, read, read_partitions
from anabranch.stream.schema import Schema
from anabranch.stream.serialize import serialize

DTD = "<!ELEMENT photons (photon*)><!ELEMENT photon (en?)><!ELEMENT en (#PCDATA)>"


def contents(path: Path, **settings: object) -> list[str | tuple[str, int, str]]:
    """Items as text; of a dead letter its partition, offset and reason."""
    found: list[str | tuple[str, int, str]] = []
    for each in read(Source("s", path, **settings), Limits()):  # type: ignore[arg-type]
        match each:
            case DeadLetter(place, reason):
                found.append((place.partition, place.offset, reason))
            case Item(tree):
                found.append(serialize(tree))
            case _:
                found.append(type(each).__name__)
    return found


def file(folder: Path, data: bytes, name: str = "in") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("head", "schema_root", "expected"),
    [
        (b'\xef\xbb\xbf\n {"a": 1}', None, "json"),
        (b"<r><i/><i/>", None, "document"),
        (b"<r><i/><i/></r>", None, "document"),
        (b"<r><i/></r>\n<!-- end -->", None, "document"),
        (b"<i>1</i>\n<i>2", None, "lines"),
        (b"<i>1</i>\n<i", None, "lines"),
        (b"<i/><j/>", None, "lines"),
        (b"<i>1</i>", "r", "lines"),
        (b"<r>", "r", "document"),
        (b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a '<i>'>]><!-- <i> --><r>", "r", "document"),
        (b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a '<i>'>]><!-- <i/><i/> --><r>", None, "document"),
        (b"", None, "document"),
        (b"rubbish", None, "document"),
    ],
)
def test_the_format_is_told_from_the_front(head: bytes, schema_root: str | None, expected: str) -> None:
    """JSON by its brace, lines by a second element behind the first or by a first that is not the schema's root."""
    assert detect(head, schema_root) == expected


def test_a_document(tmp_path: Path) -> None:
    """Its root is the stream's root and the parent of the items, which it does not hold."""
    stream = read(Source("s", file(tmp_path, b'<r xmlns:p="u" v="1"><i>1</i><p:j/></r>', "a.xml")), Limits())
    assert serialize(stream.root) == '<r xmlns:p="u" v="1"/>'
    first, second = stream
    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert (first.place, second.place) == (Place("s", "a.xml", 21), Place("s", "a.xml", 29))
    assert first.tree.parent is second.tree.parent is stream.root
    assert stream.root.children == []
    assert serialize(second.tree) == '<p:j xmlns:p="u"/>'


def test_lines_and_their_implied_root(tmp_path: Path) -> None:
    """The root is called as the source says, else as the schema says, else 'root'."""
    path = file(tmp_path, b"<photon><en>1</en></photon>\n<photon/>\n")
    assert contents(path) == ["<photon><en>1</en></photon>", "<photon/>"]
    schema = Schema.from_dtd(DTD)
    assert str(read(Source("s", path), Limits()).root.name) == "root"
    assert str(read(Source("s", path, schema=schema), Limits()).root.name) == "photons"
    assert str(read(Source("s", path, schema=schema, root="all"), Limits()).root.name) == "all"


def test_json_lines(tmp_path: Path) -> None:
    """Items are called 'item' unless the source says otherwise; a bad line is set aside."""
    path = file(tmp_path, b'{"en": 1.30}\n{"en": }\n{"en": [1, 2]}\n')
    good = "<item><en>1.30</en></item>", "<item><en>1</en><en>2</en></item>"
    found = contents(path)
    assert (found[0], found[2]) == good
    assert found[1] == ("in", 13, "not JSON: expecting value at character 8")
    assert contents(path, item="photon")[0] == "<photon><en>1.30</en></photon>"


def test_control_elements(tmp_path: Path) -> None:
    """They are read under any prefix that the root declares; a malformed one is a dead letter."""
    path = file(tmp_path, b'<r xmlns:x="urn:anabranch:stream"><x:punctuation at="2.5"/><x:nonsense/><i x:at="3"/></r>')
    heartbeat, nonsense, item = read(Source("s", path), Limits())
    assert heartbeat == Punctuation(None, Place("s", "in", 34), Decimal("2.5"))
    assert isinstance(nonsense, DeadLetter)
    assert nonsense.reason == "unknown control element 'x:nonsense'"
    assert isinstance(item, Item)
    assert item.at == 3


def test_gzip_is_told_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    """Positions count unpacked bytes; a file may have several members; a plain file may be called .gz."""
    packed = file(tmp_path, gzip.compress(b"<r><i>1</i>") + gzip.compress(b"<j/></r>") + b"\0" * 10, "in.xml")
    assert contents(packed) == ["<i>1</i>", "<j/>"]
    assert [each.place.offset for each in read(Source("s", packed), Limits())] == [3, 11]
    assert contents(file(tmp_path, b"<r><i/></r>", "in.gz")) == ["<i/>"]


def test_a_large_gzip_file(tmp_path: Path) -> None:
    """More than one chunk, packed and unpacked, comes through whole."""
    random = Random(7)
    items = [f"<i>{random.getrandbits(40_000):x}</i>" for _ in range(300)]
    assert contents(file(tmp_path, gzip.compress(("<r>" + "".join(items) + "</r>").encode()))) == items


def test_a_gzip_file_that_is_cut_short(tmp_path: Path) -> None:
    """The items before the cut are given, then the unfinished one and the cut are reported."""
    packed = gzip.compress(b"<r>" + b"".join(b"<i>%d</i>" % number for number in range(1_000)) + b"</r>")
    *items, unfinished, cut = contents(file(tmp_path, packed[:-100]))
    assert items == [f"<i>{number}</i>" for number in range(len(items))]
    assert len(items) > 500
    assert unfinished[2] == "'i' is not closed"
    assert cut[2] == "the gzip data is cut short"


def test_a_gzip_file_that_is_damaged(tmp_path: Path) -> None:
    """Also what zlib had unpacked before it noticed is given; here only the checksum is wrong."""
    packed = bytearray(gzip.compress(b"<r>" + b"<i/>" * 1_000 + b"</r>"))
    packed[-5] ^= 1
    *items, damage = contents(file(tmp_path, bytes(packed)))
    assert items == ["<i/>"] * 1_000
    assert damage == ("in", 4_007, "the gzip data is damaged")


def test_a_directory_is_one_sequence(tmp_path: Path) -> None:
    """Files come in order of name, dot-files and folders are ignored, the partition is the file's name."""
    file(tmp_path, b"<r><i>2</i>", "b")
    file(tmp_path, gzip.compress(b"<r><i>1</i><i></r>"), "a")
    file(tmp_path, b"  ", "c")
    file(tmp_path, b"<r><i>no</i></r>", ".hidden")
    (tmp_path / "folder").mkdir()
    assert contents(tmp_path) == ["<i>1</i>", ("a", 11, "'i' is not closed"), "<i>2</i>"]


def test_the_first_file_with_something_in_it_decides_the_format(tmp_path: Path) -> None:
    """One source has one format."""
    file(tmp_path, b"\n", "a")
    file(tmp_path, b"<i>1</i>\n<i>2</i>\n", "b")
    file(tmp_path, b"<i><j/></i>\n", "c")
    assert contents(tmp_path) == ["<i>1</i>", "<i>2</i>", "<i><j/></i>"]


def test_white_space_in_front_hides_nothing(tmp_path: Path) -> None:
    """However much there is, what follows is read."""
    assert contents(file(tmp_path, b"\n" * (3 << 20) + b"<r><i/></r>")) == ["<i/>"]


def test_strict_streams_set_undeclared_paths_aside(tmp_path: Path) -> None:
    """The reason names the path; without `strict` the item passes."""
    path = file(tmp_path, b"<photons><photon><en>1</en></photon><photon><x/></photon></photons>")
    schema = Schema.from_dtd(DTD)
    assert contents(path, schema=schema)[1] == "<photon><x/></photon>"
    assert contents(path, schema=schema, strict=True)[1] == ("in", 36, "the path 'x' is not declared")


def test_an_empty_stream_has_a_root(tmp_path: Path) -> None:
    """The written one, or else the implied one."""
    assert str(read(Source("s", file(tmp_path, b"<r/>")), Limits()).root.name) == "r"
    assert str(read(Source("s", file(tmp_path, b"")), Limits()).root.name) == "root"


def test_looking_at_the_root_loses_nothing(tmp_path: Path) -> None:
    """What had to be read to find it still comes, in order."""
    stream = read(Source("s", file(tmp_path, b"rubbish <r><i/><j/></r>")), Limits())
    assert str(stream.root.name) == "r"
    assert [type(each) for each in stream] == [DeadLetter, Item, Item]


def test_an_unreadable_root(tmp_path: Path) -> None:
    """Its own items are set aside with the reason, be it the first or a later one."""
    reason = "the stream's root element cannot be read: not well-formed: invalid token at byte 5"
    assert contents(file(tmp_path, b"<r a=1><i/></r>")) == [("in", 7, reason)]
    later = contents(file(tmp_path, b"<r><i/></r><r a=1><j/></r><r><k/></r>"), format="document")
    assert (later[0], later[2]) == ("<i/>", "<k/>")
    assert later[1][2].startswith("the stream's root element cannot be read")


def test_a_dead_letter_shows_the_front_of_a_long_item(tmp_path: Path) -> None:
    """2,000 characters, bad bytes replaced."""
    (letter,) = read(Source("s", file(tmp_path, b"<r><i>\xff" + b"x" * 5_000 + b"</i></r>")), Limits())
    assert isinstance(letter, DeadLetter)
    assert letter.raw == "<i>\ufffd" + "x" * 1_996


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """It names the stream and the path, at once and not at the first item."""
    with pytest.raises(UsageError, match=r"the stream 's' has no file or directory '.*nothing'"):
        read(Source("s", tmp_path / "nothing"), Limits())


# --- several partitions -----------------------------------------------------------------------------------


def test_partitions_are_read_apart(tmp_path: Path) -> None:
    """Each is one sequence; the first root of all is the stream's, and looking at it loses nothing."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, items in ((first, b"12"), (second, b"3")):
        folder.mkdir()
        file(folder, b"<r k='%c'>" % items[0] + b"".join(b"<i>%c</i>" % each for each in items), "part.xml")
    file(first, b"<r><i>4</i>", "with-more.xml")
    root, partitions = read_partitions(Source("s", first, more=(second,)), Limits())
    assert root.get("k") == "1"
    read_apart = [[serialize(each.tree) for each in part if isinstance(each, Item)] for part in partitions]
    assert read_apart == [["<i>1</i>", "<i>2</i>", "<i>4</i>"], ["<i>3</i>"]]


def test_an_empty_partition_leaves_the_root_to_the_next(tmp_path: Path) -> None:
    """The format and the root are those of the first partition that holds something."""
    empty, other = file(tmp_path, b"", "empty"), file(tmp_path, b"<r k='v'/>", "other")
    source = Source("s", empty, more=(other,))
    root, partitions = read_partitions(source, Limits())
    assert (root.get("k"), [list(each) for each in partitions]) == ("v", [[], []])
    assert read(source, Limits()).root.get("k") == "v"


def test_read_gives_one_partition_after_the_other(tmp_path: Path) -> None:
    """For whoever does not ask for times."""
    first, second = file(tmp_path, b"<i>1</i>\n<i>2</i>", "z"), file(tmp_path, b"<i>3</i>\n", "a")
    assert contents(first, more=(second,)) == ["<i>1</i>", "<i>2</i>", "<i>3</i>"]
