"""Names and data that would act where they are shown or written: terminals, pages, folders, other streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.spark.checkpoint.folder import Checkpoint, file_name
from anabranch.stream.reading.source import Source
from anabranch.visible import visible
from hostile.attacks import Attack, Carry, Outcome
from hostile.streams import COPIES, answered

SHOWN = {
    "a command of a terminal": "\x1b[2J\x1b]0;owned\x07",
    "a command of eight bits": "\x9b2J",
    "a carriage return": "good\rbad",
    "a backspace": "good\b\b\b\bbad",
    "a new line": 'good\n{"kind": "epoch"}',
    "a line of Unicode": "good\u2028bad",
    "writing from right to left": "\u202efdp.exe",
    "an isolate": "\u2066good\u2069",
    "a character without width": "go\u200bod",
    "a tag": "good\U000e0041",
    "half a character": "\ud800",
    "a soft hyphen": "go\u00adod",
}
FOLDERS = {
    "the folder above": "../../../etc/passwd",
    "the root": "/etc/passwd",
    "a dot": ".",
    "two dots": "..",
    "nothing": "",
    "a NUL": "a\x00b",
    "a name of ten thousand characters": "n" * 10_000,
    "a new line": "a\nb",
    "a backslash": "..\\..\\x",
    "a tilde": "~root",
    "a name like a flag": "--help",
}
FORGED = {
    "an accent": '<s:accent xmlns:s="urn:anabranch:stream"><s:drop path="a"/></s:accent>',
    "a punctuation": '<s:punctuation xmlns:s="urn:anabranch:stream" at="999999"/>',
    "an update": '<s:replace xmlns:s="urn:anabranch:stream" target="1"><x/></s:replace>',
    "the end of the root": "</answer><answer>",
    "a comment's end": "-->",
    "a CDATA section's end": "]]>",
    "a tag": "<script>alert(1)</script>",
    "an entity": "&laugh;",
}


def _shown(text: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        found = visible(text)
        assert found.isprintable(), found
        assert "\n" not in found
        return "answered"

    return carry_out


def _named(name: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        found = file_name(name)
        assert "/" not in found
        assert found not in (".", "..")
        assert len(found.encode()) < 200
        where = Checkpoint.at(folder).order(name).path
        assert where is not None
        where.mkdir(parents=True)
        assert where.resolve().is_relative_to(folder.resolve())
        return "answered"

    return carry_out


def _forged(text: str) -> Carry:
    """Text of an item stays text in an answer: whoever reads the answer as a stream finds it there."""
    data = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def carry_out(folder: Path) -> Outcome:
        source = Source("s", folder / "s", format="lines", root="r")
        found, dead = answered(folder, f"<i>{data}</i>\n".encode(), source, {"q": COPIES})
        assert not dead
        (folder / "again").mkdir()
        again = Source("s", folder / "again/s", format="document")
        second, dead = answered(folder / "again", f"<r>{found['q']}</r>".encode(), again, {"q": COPIES})
        assert not dead
        assert second == found
        return "answered"

    return carry_out


def attacks() -> Iterator[Attack]:
    """Text of others for people, for folders, and for streams made of answers."""
    for name, text in SHOWN.items():
        yield Attack("text on a terminal", name, _shown(text), "answered")
    for name, text in FOLDERS.items():
        yield Attack("a name of a folder", name, _named(text), "answered")
    for name, text in FORGED.items():
        yield Attack("forged in an answer", name, _forged(text), "answered")
