"""A display that is also told on the wire: the answer as an update stream of our own (LAWS 5.7).

`wire` gives what brings a reader of the stream from the answer it knew to the one on display: new regions as insertions
before those it knows, changed ones as replacements, removed ones as empty replacements.
A reader knows the regions at the top and in elements; a region in a region is part of its content.
So that there is always something to insert before, each element ends with an empty region, as the whole answer does.
A region that is empty for now, but not removed, takes its id again, so that a reader does not forget it (LAWS 5.8).

An answer that fails as a whole is *hidden*: a reader is told that nothing is there, and later everything anew.
What a reader was told is plain data (`told`), so a display that was rebuilt goes on where the one before it was.
Content that stands in an element on display may use the prefixes that this one declares; on the wire it stands alone,
so the control element around it declares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from anabranch.algebra.display.display import Body, Display, DisplayElement, DisplayRegion, Namespaces, Piece
from anabranch.stream.serialize import escape_attribute
from anabranch.stream.tree import STREAM_NAMESPACE

_END = "end"


@dataclass(frozen=True, slots=True)
class _Inserted:
    """A new region or element, before a region that is known."""

    target: str
    id: str
    part: DisplayRegion | DisplayElement


@dataclass(frozen=True, slots=True)
class _Deleted:
    id: str


_News: TypeAlias = _Inserted | _Deleted


class ReaderState(NamedTuple):
    """What a reader of the wire knows: how often it was told everything, and whether it knows what is there now."""

    times: int = 0
    known: bool = False


class Published(Display):
    """A display whose changes can be asked for as stream elements."""

    def __init__(self) -> None:
        super().__init__()
        self._news: list[_News] = []
        self._dirty: dict[int, DisplayRegion] = {}
        """The regions a reader knows in which something has changed."""
        self._told = ReaderState()
        self._texts = 0

    @property
    def told(self) -> ReaderState:
        """What a reader was told."""
        return self._told

    def resume(self, told: ReaderState) -> None:
        """Go on where a display with the same regions was, which has told this."""
        self._told, self._news, self._dirty = told, [], {}

    def wire(self, at: Decimal | None = None, *, hidden: bool = False) -> list[str]:
        """The stream elements of all changes since this was last asked, each as its text on the wire.

        With `hidden`, nothing is to be seen for now.
        """
        when = "" if at is None else f' at="{at:f}"'
        found: list[str] = []
        news, dirty, told = self._news, self._dirty, self._told
        self._news, self._dirty = [], {}
        if hidden:
            news, dirty = [_Deleted(id) for id, _ in self._parts_in(self.root)] if told.known else [], {}
            self._told = ReaderState(told.times, known=False)
        elif not told.known:
            if not told.times:
                found.append(_control("mutable", f' id="{_END}"{when}', ""))
            self._told = ReaderState(told.times + 1, known=True)
            news, dirty = list(self._everything(self.root, None)), {}
        for each in news:
            match each:
                case _Inserted(target, id, part):
                    dirty.pop(part.handle, None)
                    found.append(_control("before", f"{_named(target, id)}{when}", *self._content(part)))
                case _Deleted(id):
                    found.append(_control("replace", f"{_named(id)}{when}", ""))
        for region in dirty.values():
            if self._parts.get(region.handle) is region:
                id, (content, declared) = min(region.ids), self._content(region)
                found.append(_control("replace", f"{_named(id, None if content else id)}{when}", content, declared))
        return found

    def _everything(self, body: Body, inside: str | None) -> Iterator[_News]:
        """All that stands in a body, as if it were new."""
        for id, part in self._parts_in(body):
            yield _Inserted(self._end(inside), id, part)
            if isinstance(part, DisplayElement):
                yield from self._everything(part, part.id)

    def _parts_in(self, body: Body) -> Iterator[tuple[str, DisplayRegion | DisplayElement]]:
        """The regions and elements that stand in a body, by the ids that a reader has for them."""
        for handle in body.parts:
            match self._parts[handle]:
                case DisplayElement() as element:
                    yield _itself(element.id), element
                case DisplayRegion() as region:
                    yield min(region.ids), region
                case _:
                    raise AssertionError("text stands in regions")

    def _content(self, part: DisplayRegion | DisplayElement) -> tuple[str, Mapping[str, str]]:
        """What stands in a region or an element, and the namespaces that are declared around it."""
        declared = _declared(part)
        if isinstance(part, DisplayElement):
            end = _control("mutable", f" id={_quoted(self._end(part.id))}", "")
            return f"{part.start}>{end}{part.close}", declared
        return self._text(part), declared

    def _end(self, element: str | None) -> str:
        """The empty region that an element, or the answer, ends with; each time it is told, it is another one."""
        if element is None:
            return _END
        return f"{element} {_END}" if self._told.times == 1 else f"{element} {_END} {self._told.times}"

    # --- what is new ----------------------------------------------------------------------------------------

    def element(self, id: str, start: str, close: str, inside: str | None = None, namespaces: Namespaces = ()) -> None:
        super().element(id, start, close, inside, namespaces)
        element = self._elements[id]
        if _is_known(element):
            self._news.append(_Inserted(self._end(inside), _itself(id), element))

    def write(self, pieces: Iterable[Piece], inside: str | None = None) -> None:
        self._texts += 1
        self.region(f"text {self._texts}", pieces, inside=inside)

    def region(
        self,
        id: str,
        pieces: Iterable[Piece] = (),
        *,
        inside: str | None = None,
        before: str | None = None,
    ) -> None:
        super().region(id, pieces, inside=inside, before=before)
        region = self.names[id]
        if _is_known(region):
            self._news.append(_Inserted(before or self._end(inside), id, region))

    def delete(self, id: str) -> None:
        is_known = _is_known(self.names[id])
        super().delete(id)
        if is_known:
            self._news.append(_Deleted(id))

    def changed(self, body: Body) -> None:
        outermost = None
        for each in (body, *_around(body)):
            outermost = each if isinstance(each, DisplayRegion) else outermost
        if outermost is not None:
            self._dirty[outermost.handle] = outermost


def _is_known(part: DisplayRegion | DisplayElement) -> bool:
    """Whether a reader knows a region or an element by itself: it stands in no region."""
    return not any(isinstance(each, DisplayRegion) for each in _around(part))


def _around(body: Body) -> Iterator[Body]:
    """All that a body stands in, inner ones first."""
    while body.around is not None:
        body = body.around
        yield body


def heartbeat(at: Decimal) -> str:
    """What ends a moment on the wire: whoever reads it sees that all of the moment has come."""
    return _control("punctuation", f' at="{at:f}"', "")


def _declared(part: DisplayRegion | DisplayElement) -> dict[str, str]:
    """The namespaces that the elements around a region or an element declare."""
    found: dict[str, str] = {}
    for each in _around(part):
        found = {**dict(each.namespaces), **found} if isinstance(each, DisplayElement) else found
    return found


def _itself(element: str) -> str:
    """The region around an element."""
    return f"{element} itself"


def _named(target: str, id: str | None = None) -> str:
    return f" target={_quoted(target)}" + ("" if id is None else f" id={_quoted(id)}")


def _quoted(text: str) -> str:
    return f'"{escape_attribute(text)}"'


def _control(name: str, attributes: str, content: str, declared: Mapping[str, str] | None = None) -> str:
    prefix = "s"
    while prefix in (declared or {}):
        prefix += "_"
    others = "".join(
        f" xmlns{':' if each else ''}{each}={_quoted(uri)}" for each, uri in (declared or {}).items() if content
    )
    start = f'{prefix}:{name} xmlns:{prefix}="{STREAM_NAMESPACE}"{others}{attributes}'
    return f"<{start}>{content}</{prefix}:{name}>" if content else f"<{start}/>"
