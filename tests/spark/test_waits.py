"""What a run says that it waits for: by name, and with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.spark.epoch.waits import Wait
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

ALL = '<all>{ for $p in stream("s")/*/p return $p }</all>'
JOIN = """<r>{ for $x in stream("s")/root/p |t diff 2| for $y in stream("u")/root/p |t diff 2|
    return <o>{ $x, $y }</o> }</r>"""


class Basin:
    """A stream in a folder, and a trunk that reads what is there."""

    def __init__(self, top: Path, form: Literal["auto", "lines", "document"] = "auto") -> None:
        self.folder = top / "in"
        self.folder.mkdir()
        self._trunk = BareTrunk(top / "state", [Source("s", self.folder, form)], Random(1), finite=False)

    def write(self, name: str, data: str | bytes) -> None:
        (self.folder / name).write_bytes(data.encode() if isinstance(data, str) else data)

    def waits(self) -> list[Wait]:
        """Read what can be read, and say what is left."""
        self._trunk.run({"all": ALL}, [1 << 20], [1])
        return self._trunk.waits()

    def message(self) -> str:
        """What is left, with the folder left out."""
        (wait,) = self.waits()
        assert wait.stream == "s"
        assert wait.hint
        return wait.message.replace(str(self.folder), "in")

    def answer(self) -> str:
        return self._trunk.answer("all")


ITEM = "<p>1</p>"
PACKED = gzip.compress(f"{ITEM}\n{ITEM}\n".encode(), mtime=0)


@pytest.mark.parametrize(
    ("form", "name", "data", "message"),
    [
        ("auto", "a", ITEM, "'in/a' is one line, and whether it is a document or the first of many lines shows with"),
        ("auto", "a", f"{ITEM}\n", "'in/a' is one line, and whether it is a document or the first of many lines shows"),
        ("auto", "a", "  \n\n ", "'in/a' holds nothing but blanks"),
        ("auto", "a", "", "all files in 'in' are empty"),
        ("auto", ".a", ITEM, "'in' holds hidden files only, as '.a'"),
        ("auto", "a", PACKED[:10], "the gzip file 'in/a' is not finished: nothing can be unpacked of it yet"),
        ("lines", "a", ITEM, "the last line of 'in/a' has no newline yet"),
        ("lines", "a", f"{ITEM}\n{ITEM}", "the last line of 'in/a' has no newline yet"),
        ("lines", "a", PACKED[:-6], "the gzip file 'in/a' is not finished: the gzip data is cut short"),
        (
            "lines",
            "a",
            gzip.compress(f"{ITEM}\n{ITEM}".encode(), mtime=0),
            "the last line of 'in/a' has no newline yet",
        ),
        ("document", "a", "<ps att", "the start tag of the root element of 'in/a' is not finished"),
        ("document", "a", "<ps><p>1</p><p>2", "'in/a' ends within an item, which begins at byte 12"),
        (
            "document",
            "a",
            gzip.compress(b"<ps><p>1</p><p>2", mtime=0),
            "'in/a' ends within an item, which begins at byte 12",
        ),
    ],
)
def test_what_is_there_and_is_not_read_is_named(
    tmp_path: Path, form: Literal["auto", "lines", "document"], name: str, data: str | bytes, message: str
) -> None:
    """The file and what it lacks."""
    basin = Basin(tmp_path, form)
    basin.write(name, data)
    assert basin.message().startswith(message)
    assert basin.message().startswith(message), "a second look sees the same"


def test_a_stream_without_a_byte(tmp_path: Path) -> None:
    """An empty folder, one with folders only, one that is taken away, a file that is empty."""
    basin = Basin(tmp_path)
    assert basin.message() == "'in' is empty"
    (basin.folder / "inner").mkdir()
    assert basin.message() == "'in' holds folders only, as 'inner'"
    (basin.folder / "inner").rmdir()
    basin.folder.rmdir()
    assert basin.message() == "there is no 'in'"
    basin.folder.write_text("")
    assert basin.message() == "'in' is empty"


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("auto", f"{ITEM}\n{ITEM}\n"),
        ("lines", f"{ITEM}\n"),
        ("lines", f"{ITEM}\n \t"),
        ("lines", PACKED),
        ("document", "<ps><p>1</p>\n"),
        ("document", "<ps><p>1</p></ps>"),
        ("auto", "<ps>\n<p>1</p>\n"),
    ],
)
def test_what_is_read_does_not_wait(
    tmp_path: Path, form: Literal["auto", "lines", "document"], data: str | bytes
) -> None:
    """Nothing is said of a file whose items were all read, also where it may grow."""
    basin = Basin(tmp_path, form)
    basin.write("a", data)
    assert basin.waits() == []
    assert "<p>1</p>" in basin.answer()


def test_a_later_file_ends_the_wait_for_a_newline(tmp_path: Path) -> None:
    """The last line of the first file counts then; now the second is waited for."""
    basin = Basin(tmp_path, "lines")
    basin.write("a", ITEM)
    assert basin.message() == "the last line of 'in/a' has no newline yet"
    basin.write("b", f"{ITEM}\n{ITEM}")
    assert basin.message() == "the last line of 'in/b' has no newline yet"
    basin.write("b", f"{ITEM}\n{ITEM}\n")
    assert basin.waits() == []
    assert basin.answer() == f"<all>{ITEM * 3}</all>"


def test_an_input_that_holds_others_up_is_named(tmp_path: Path) -> None:
    """Of a join, the stream that is behind; of several partitions, the one that has nothing."""
    time = ItemPath.parse("t")
    paths = [tmp_path / each for each in "suv"]
    for path in paths:
        path.mkdir()
    s, u, v = paths
    sources = [Source("s", s, "lines", time=time), Source("u", u, "lines", time=time, more=(v,))]
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=False)
    (s / "a").write_text("".join(f"<p><t>{number}</t></p>\n" for number in (3, 4, 5)))
    (u / "a").write_text("<p><t>1</t></p>\n")
    trunk.run({"join": JOIN}, [1 << 20], [1])
    empty, *held = trunk.waits()
    assert (empty.message, empty.hint) == (f"'{v}' is empty", "the other partitions of the stream wait for it")
    assert [each.message for each in held] == [
        "what has come in 's/0', 'u/0' waits for 'u/1', which may still bring something earlier"
    ]
    (v / "a").write_text("<p><t>9</t></p>\n")
    trunk.run({"join": JOIN}, [1 << 20], [1])
    assert [each.message for each in trunk.waits()] == [
        "what has come in 's/0', 'u/1' waits for 'u/0', which may still bring something earlier"
    ]
