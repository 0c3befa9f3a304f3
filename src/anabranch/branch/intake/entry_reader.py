"""Reading single entries; the one place where a branch makes elements of raw bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from anabranch.branch.intake.entries import Entry
from anabranch.branch.ports import InputStream
from anabranch.columnar.scan.template import Template, UsualTrees, is_plain_around
from anabranch.stream.elements import Accent, Alter, DeadLetter, Doubt, Drop, Item, Place, StreamElement
from anabranch.stream.tree import Element


class EntryReader:
    """Reads the entries of one stream: by the stream's own reader, but for items that look like others before them."""

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream
        self._reader = stream.reader()
        self._usual = UsualTrees()

    def read(self, entry: Entry) -> StreamElement | DeadLetter:
        """The element in an entry; an item stands below the stream's root; one that may be edited, below its own."""
        cut, origin = entry.cut, entry.origin
        plain = cut.reason is None and is_plain_around(cut.root, cut.encoding)
        tree = self._usual.tree(cut.raw) if plain else None
        if tree is not None:
            self._place(tree)
            return Item(tree, Place(origin.stream, origin.file, cut.start))
        (element,) = self._reader.elements([cut], origin.file)
        if isinstance(element, Item):
            if plain:
                self._usual.learn(cut.raw, element.tree)
            self._place(element.tree)
        if isinstance(element, DeadLetter) and cut.reason is not None:
            return replace(element, doubts=self._doubts(entry))
        return element

    def _place(self, tree: Element) -> None:
        if not self._stream.updates:  # an edited document takes each item with what its own root declares
            tree.parent = self._stream.root

    def _doubts(self, entry: Entry) -> tuple[Doubt, ...]:
        """What an entry leaves in doubt that was set aside by whoever cut it out: an accent, say, that is not valid."""
        match list(self._reader.elements([replace(entry.cut, reason=None)], entry.origin.file)):
            case [Accent(where, Alter(path) | Drop(path))]:
                return (Doubt(path, where),)
            case [DeadLetter(doubts=doubts)]:
                return doubts
            case _:
                return ()

    def template(self, entries: Iterable[Entry]) -> Template | None:
        """The template that most of some entries fit."""
        read = ((entry.cut.raw, self.read(entry)) for entry in entries)
        return Template.learn((raw, element.tree) for raw, element in read if isinstance(element, Item))
