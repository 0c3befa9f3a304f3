"""The documents behind `doc()`: XML and JSON, packed or not, within limits."""

from __future__ import annotations

import gzip
from pathlib import Path
from unittest import mock

import pytest

from anabranch.errors import StreamError, UsageError
from anabranch.stream.limits import Limits
from anabranch.stream.reading import documents
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.serialize import serialize

SOURCE = DocumentSource(Path("t"), "t", "row")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<?xml version='1.0'?><!DOCTYPE t SYSTEM 'http://x/y'><t><a/></t>", "<t><a/></t>"),
        (
            b'{"k": 1.30, "v": ["a", "b"]}\r\n\n{"k": null}',
            "<t><row><k>1.30</k><v>a</v><v>b</v></row><row><k/></row></t>",
        ),
        (b'\xef\xbb\xbf[{"@id": "x"}, {"k": true}]', '<t><row id="x"/><row><k>true</k></row></t>'),
        (b"[]", "<t/>"),
        (gzip.compress(b"<t>1</t>", mtime=0), "<t>1</t>"),
    ],
)
def test_documents_are_read(data: bytes, expected: str) -> None:
    """As streams of their kind are."""
    assert serialize(SOURCE.parse(data)) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<t>", "no element found"),
        (b"", "no element found"),
        (b"<t>&e;</t>", "undefined entity"),
        (b'{"k": 1}\n[1]', "line 2: a record must be a JSON object"),
        (b'[{"k": 1}, 7]', "record 2: a record must be a JSON object"),
        (b'[{"k": 1}', "not JSON"),
        (b'{"$at": 1}', "reserved key"),
        (b'{"k": "\xff"}', "not UTF-8"),
        (b"[" * 5_000, "nested too deep"),
        (gzip.compress(b"<t>1</t>", mtime=0)[:-6], "cut short"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(data: bytes, reason: str) -> None:
    """Never is half of a document taken for one."""
    with pytest.raises(StreamError, match=f"/t': the document cannot be read: .*{reason}"):
        SOURCE.parse(data)


def test_limits(tmp_path: Path) -> None:
    """They are those of all records together, and of what a packed file holds."""
    small = Limits(item_bytes=200, nodes=8)
    with mock.patch.object(documents, "DOCUMENT", small):
        for data in (b'{"k": 1}\n' * 4, gzip.compress(b" " * 300 + b"<t/>", mtime=0), b'{"k": 1}' + b" " * 200):
            with pytest.raises(StreamError, match="more than"):
                SOURCE.parse(data)
        (tmp_path / "t").write_bytes(b" " * 201)
        with pytest.raises(UsageError, match="more than 200 bytes"):
            DocumentSource(tmp_path / "t").read()
