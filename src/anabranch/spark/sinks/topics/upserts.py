"""A display as upserts: for each entry a message with its key and what it shows now, and a tombstone when it is gone.

So a compacted topic holds what the display shows, and a table that follows the topic does, too.
Of a moment of the display each key has one message at most: its last.

Without a `key`, an entry is a region of the display, which is a result, or the results of one item or group; its key
is the name of the subscription and the id of the region.
Such messages follow from the update stream alone.

With a `key`, an entry is a result by itself, and its key stands in it, as that of a group does.
A region may then lose one key and gain another, or hold many of them, so what regions show is remembered, by key and
digest.
That memory is a pure function of the answer log up to the transaction that was committed last: a *snapshot* of it is
written now and then, and the epochs behind it are read again after a restart.
A key that several results have at once is that of the one that has changed last, until this one goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from anabranch.algebra.display.publishing import is_result
from anabranch.algebra.display.replay import DisplayReader
from anabranch.kafka.transactions import OutgoingMessage
from anabranch.spark.sinks.topics.keys import MessageKey
from anabranch.spark.sinks.topics.messages import TopicAddress
from anabranch.stream.elements import Punctuation, StreamElement, Update
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Text


@dataclass(slots=True)
class ShownKeys:
    """What the regions of a display show: by id, the digests of results by their keys."""

    regions: dict[str, dict[str, str]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """By key, the region whose result was written last."""

    def replace(self, id: str, results: dict[str, bytes]) -> Iterator[tuple[str, bytes | None]]:
        """Let a region show these results by key; gives what has changed, None for a key that is gone."""
        before = self.regions.pop(id, {})
        digests = {key: blake2b(text, digest_size=8).hexdigest() for key, text in results.items()}
        for key in before:
            if key not in digests and self.owners.get(key) == id:
                del self.owners[key]
                yield key, None
        for key, digest in digests.items():
            if before.get(key) != digest:
                self.owners[key] = id
                yield key, results[key]
        if digests:
            self.regions[id] = digests


class Upserts:
    """Turns the update stream of a display into upserts."""

    def __init__(self, name: str, key: str | None, shown: ShownKeys) -> None:
        self._name = name
        self._key = MessageKey(key) if key is not None else None
        self._reader = DisplayReader()
        self._shown = shown
        self._moment: dict[str, bytes | None] = {}
        self.keyless = 0
        """The number of results that have no key, and so no message."""

    def messages(self, texts: Iterable[str], place: TopicAddress) -> Iterator[OutgoingMessage]:
        """The messages for more of the stream."""
        for text in texts:
            for element in self._reader.elements(text):
                match element:
                    case Punctuation():
                        yield from (place.message(value, key.encode()) for key, value in self._moment.items())
                        self._moment = {}
                    case _:
                        for key, value in self._changed(element):
                            self._moment.pop(key, None)
                            self._moment[key] = value

    def _changed(self, element: StreamElement) -> Iterator[tuple[str, bytes | None]]:
        if not isinstance(element, Update):
            return
        id = element.target if element.kind == "replace" else element.id or ""
        if not is_result(id):
            return
        json = self._reader.is_json
        results = [
            each.value.strip() if isinstance(each, Text) and json else serialize(each) for each in element.content
        ]
        if self._key is not None:
            yield from self._shown.replace(id, self._by_key(results))
        elif results:
            yield f"{self._name}/{id}", ("\n" if json else "").join(results).strip().encode()
        elif element.kind == "replace":
            yield f"{self._name}/{id}", None

    def _by_key(self, results: Iterable[str]) -> dict[str, bytes]:
        assert self._key is not None
        found: dict[str, bytes] = {}
        for result in map(str.strip, results):
            key = self._key.of_json(result) if self._reader.is_json else self._key.of_element(result)
            if key is None:
                self.keyless += bool(result)
            else:
                found[key.decode()] = result.encode()
        return found
