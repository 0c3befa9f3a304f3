"""An answer that is an update stream, read back: what it shows, and how that changes (LAWS 5.7).

The text of the stream may come in any pieces; each moment ends with a heartbeat (`publishing.py`), and between two
heartbeats there is nothing to be seen.
Only what shows is kept, so the cost of reading is that of the stream, and memory that of the answer and the ids in it.
Results that have left the answer are forgotten as in any stream (LAWS 5.8): when their ids are taken again, or when a
thousand others have left behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from anabranch.algebra.history.edits import Edit
from anabranch.algebra.history.events import EndRegion
from anabranch.algebra.history.showing import Shown
from anabranch.algebra.history.tokens import Tokens
from anabranch.errors import StateError
from anabranch.stream.elements import DeadLetter, Punctuation, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.split import DocumentSplitter

OPENING, CLOSING = "<answer>\n", "</answer>\n"
"""What stands around the stream where it is a document of its own."""
_LIMITS = Limits(item_bytes=(64 << 20) - 1, depth=400, nodes=1 << 30, attributes=1 << 20)
"""It was written here: no result in it is larger than what it was made of."""
_MOST_LEFT = 1_000
"""So many regions that were deleted are known, the latest."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a moment has changed."""

    at: Decimal
    edits: tuple[Edit, ...]


class Replay:
    """A display that follows an answer."""

    def __init__(self) -> None:
        self._shown, self._tokens = Shown(), Tokens()
        self._shown.run(self._tokens.start())
        self._splitter = DocumentSplitter(_LIMITS)
        self._splitter.feed(OPENING.encode())
        self._reader = ElementReader("answer", "document", _LIMITS)
        self._edits: list[Edit] = []
        self._left: dict[str, None] = {}
        """The ids of regions that were deleted."""

    @property
    def text(self) -> str:
        """What is on display."""
        return self._shown.text

    def feed(self, text: str) -> Iterator[Moment]:
        """Take in more of the stream, without what stands around it; gives the moments that are complete then."""
        for element in self._reader.elements(self._splitter.feed(text.encode()), ""):
            match element:
                case DeadLetter(reason=reason):
                    raise StateError(f"the answer log is damaged: {reason}")
                case Punctuation(at=Decimal() as at):
                    yield Moment(at, tuple(self._edits))
                    self._edits.clear()
                case _:
                    self._forget(element)
                    for event in self._tokens.of(element):
                        self._edits += self._shown.edit(event)
                        if isinstance(event, EndRegion) and not event.id.is_spelled:
                            self._shown.display.name(event.id.name, None)  # nobody can name it any more

    def _forget(self, element: StreamElement) -> None:
        """Forget the region of an id that is taken from it now, or one that was deleted long ago."""
        match element:
            case Update("replace", target, None, ()):
                self._left.pop(target, None)
                self._left[target] = None
            case Update("replace", target):
                self._left.pop(target, None)
            case Update(id=str(own)) if own in self._left:
                self._remove(own)
            case _:
                pass
        if len(self._left) > _MOST_LEFT:
            self._remove(next(iter(self._left)))

    def _remove(self, id: str) -> None:
        del self._left[id]
        if id in self._shown.display.names:
            self._shown.display.delete(id)
