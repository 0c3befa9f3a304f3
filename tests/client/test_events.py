"""Server-sent events from bytes: whole events, in order, however the bytes are cut, and none that is cut off."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.events import EventReader, ServerEvent
from anabranch.client.refusals import RemoteError

_TEXTS = st.text(st.characters(exclude_characters="\r", codec="utf-8"), max_size=30)


def _read(*pieces: bytes, most: int = 1000) -> list[ServerEvent]:
    reader = EventReader(most)
    return [event for piece in pieces for event in reader.feed(piece)]


def _written(texts: list[str], end: str) -> bytes:
    lines = []
    for number, text in enumerate(texts):
        lines += [f"id: 1-{number}", ": a comment", *(f"data: {line}" for line in text.split("\n")), ""]
    return "".join(f"{line}{end}" for line in lines).encode()


@given(st.lists(_TEXTS, max_size=4), st.sampled_from(("\n", "\r\n", "\r")), st.data())
def test_any_cut_gives_the_same_events(texts: list[str], end: str, data: st.DataObject) -> None:
    """With each of the three ends of lines, and cut anywhere, the texts come out as they went in."""
    written = _written(texts, end)
    cuts = data.draw(st.lists(st.integers(0, len(written)), max_size=8).map(sorted))
    pieces = [written[start:stop] for start, stop in pairwise((0, *cuts, len(written)))]
    expected = [ServerEvent("message", f"1-{number}", text) for number, text in enumerate(texts)]
    assert _read(*pieces, most=10_000) == expected


def test_kinds_and_ids() -> None:
    """An event has its kind and its own id; what has no data is none; one blank behind the colon is not data."""
    found = _read(b"\xef\xbb\xbfevent: end\ndata:gone\n\nid: 7-1\n\ndata:  x\nother: y\nretry: 5\ndata\n\n")
    assert found == [ServerEvent("end", None, "gone"), ServerEvent("message", None, " x\n")]


def test_what_is_cut_off_is_no_event() -> None:
    """Without the empty line behind it an event is not there."""
    assert _read(b"id: 1-0\ndata: a\n\nid: 1-1\ndata: b\n") == [ServerEvent("message", "1-0", "a")]


@pytest.mark.parametrize("piece", [b"data: xxxxxxxxxxxxx", b"data: x\n", b"other: x\n", b"id: 1\n", b"x"])
def test_what_never_ends_is_refused(piece: bytes) -> None:
    """Neither a line nor an event may go on for ever: the reader gives up at its bound, and holds no more than that."""
    with pytest.raises(RemoteError, match="more than 1,000 bytes"):
        _read(*[piece] * 1001)


def test_what_may_go_on() -> None:
    """Comments and empty lines may come as long as they like: a service that has nothing to say sends them."""
    assert _read(*[b": still here\n\n\n"] * 10_000) == []
    assert _read(*[b": still here\n"] * 10_000, b"data: x\n\n") == [ServerEvent("message", None, "x")]


def test_bytes_that_are_no_text() -> None:
    """An event that is not UTF-8 is the service's fault."""
    with pytest.raises(RemoteError, match="not UTF-8"):
        _read(b"data: \xff\n\n")
