"""What comes of hostile input in a stream: of one item among good ones, or of a whole document."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.errors import AnabranchError
from anabranch.stream.reading.source import Source
from hostile.attacks import Carry, Outcome

COPIES = 'for $i in stream("s")/*/* return $i'
NUMBERS = 'for $i in stream("s")/*/* where $i/a * 2 >= 1 return <n>{ $i/a + 1 }</n>'
TEXTS = 'for $i in stream("s")/*/* where contains($i, "good") or string-length($i) > 3 return <t>{ string($i) }</t>'
BEFORE, BEHIND = b"<i><a>41</a><b>good</b></i>", b"<i><a>43</a><b>good</b></i>"
BEFORE_JSON, BEHIND_JSON = b'{"a": 41, "b": "good"}', b'{"a": 43, "b": "good"}'
QUERIES = {"copies": COPIES, "numbers": NUMBERS, "texts": TEXTS}


def answered(folder: Path, data: bytes, source: Source, queries: dict[str, str]) -> tuple[dict[str, str], int]:
    """The answers over a stream, and how many dead letters there are."""
    (folder / "s").write_bytes(data)
    inputs = Inputs([source], finite=True)
    with answering([prepare(name, text, inputs, "local") for name, text in queries.items()], inputs) as run:
        return {name: "".join(pieces) for name, pieces in run.answers.items()}, len(list(run.dead))


def among_lines(item: bytes, *, is_json: bool = False, asked: Collection[str] = tuple(QUERIES)) -> Carry:
    """An item as a line among good ones, which are answered whatever it is."""

    def carry_out(folder: Path) -> Outcome:
        queries = {name: QUERIES[name] for name in asked}
        before, behind = (BEFORE_JSON, BEHIND_JSON) if is_json else (BEFORE, BEHIND)
        source = Source("s", folder / "s", format="json" if is_json else "lines", root=None if is_json else "r")
        found, dead = answered(folder, before + b"\n" + item + b"\n" + behind + b"\n", source, queries)
        for name, text in found.items():
            first, second = ("42", "44") if name == "numbers" else ("41", "43")
            assert first in text, (name, text[:200])
            assert second in text, (name, text[:200])
        return "set aside" if dead else "answered"

    return carry_out


def whole_document(data: bytes) -> Carry:
    """A document that is a stream by itself."""

    def carry_out(folder: Path) -> Outcome:
        try:
            found, dead = answered(folder, data, Source("s", folder / "s", format="document"), {"copies": COPIES})
        except AnabranchError:
            return "refused"
        assert "root:" not in found["copies"], "a file of the system was read"
        return "set aside" if dead else "answered"

    return carry_out
