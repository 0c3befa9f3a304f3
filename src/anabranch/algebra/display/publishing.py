"""A display published as an update stream (LAWS 5.7).

`wire` gives the elements that bring a reader of the stream from its last answer to the present one: new regions as
insertions before known ones, changed ones as replacements, removed ones as empty replacements.
A reader knows the regions at the top and in elements; a region in a region is part of its content.
So that there is always something to insert before, each element ends with an empty region, as the whole answer does.
A region that is empty for now, but not removed, takes its id again, so that a reader keeps it (LAWS 5.8).

An answer that fails as a whole is *hidden*: readers get an empty answer, and later everything anew.
The reader's state is plain data (`told`), so a restored display continues from it.
Content in an element on display may use the prefixes that this one declares; on the wire it stands alone, so the
control element around it declares them.

An answer in JSON is told as lines (LAWS 7.4): a control object each, whose content is an array of results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from anabranch.algebra.display.display import Body, Display, DisplayElement, DisplayRegion, Namespaces, Piece
from anabranch.stream.reading.json_items import write_object, write_string
from anabranch.stream.serialize import escape_attribute
from anabranch.stream.tree import STREAM_NAMESPACE

_END = "end"


class _Inserted(NamedTuple):
    """A new region or element, before a known region."""

    target: str
    id: str
    part: DisplayRegion | DisplayElement


class _Deleted(NamedTuple):
    id: str


_News: TypeAlias = _Inserted | _Deleted


class ReaderState(NamedTuple):
    """The state of a reader: how often it got everything, and whether it has the present regions."""

    times: int = 0
    known: bool = False


class Published(Display):
    """A display whose changes are available as stream elements; `json` where its text is lines of JSON."""

    def __init__(self, *, json: bool = False) -> None:
        super().__init__()
        self._control = _json_control if json else _control
        self._news: list[_News] = []
        self._dirty: dict[int, DisplayRegion] = {}
        """The regions known to the reader that have changed."""
        self._told = ReaderState()
        self._texts = 0

    @property
    def told(self) -> ReaderState:
        """The state of the reader."""
        return self._told

    def resume(self, told: ReaderState) -> None:
        """Continue from the reader's state of a display with the same regions."""
        self._told, self._news, self._dirty = told, [], {}

    def wire(self, at: Decimal | None = None, *, hidden: bool = False) -> list[str]:
        """The stream elements of all changes since the last call, as text.

        With `hidden`, the answer is empty for now.
        """
        control, told = self._control, self._told
        found: list[str] = []
        news, dirty = self._news, self._dirty
        if not news and not dirty and not hidden and told.known:
            return found
        self._news, self._dirty = [], {}
        if hidden:
            news, dirty = self._withdrawn(news) if told.known else [], {}
            self._told = ReaderState(told.times, known=False)
        elif not told.known:
            if not told.times:
                found.append(control("mutable", "", id=_END, at=at))
            self._told = ReaderState(told.times + 1, known=True)
            news, dirty = list(self._everything(self.root, None)), {}
        for each in news:
            if isinstance(each, _Inserted):
                dirty.pop(each.part.handle, None)
                found.append(control("before", *self._content(each.part), target=each.target, id=each.id, at=at))
            else:
                found.append(control("replace", "", target=each.id, at=at))
        for region in dirty.values():
            if self._parts.get(region.handle) is region:
                id, (content, declared) = min(region.ids), self._content(region)
                own = None if content else id
                found.append(control("replace", content, declared, target=id, id=own, at=at))
        return found

    def _withdrawn(self, news: Iterable[_News]) -> list[_News]:
        """The deletion of all that the reader has, given what has changed since it was last told."""
        first: dict[str, _News] = {}
        for each in news:
            first.setdefault(each.id, each)
        gone = [each for each in first.values() if isinstance(each, _Deleted)]
        return [*gone, *(_Deleted(id) for id in self._known_in(self.root) if id not in first)]

    def _known_in(self, body: Body) -> Iterator[str]:
        """The ids of all that a reader knows in a body, inner ones first: who keeps results by id loses each."""
        for id, part in self._parts_in(body):
            if isinstance(part, DisplayElement):
                yield from self._known_in(part)
            yield id

    def _everything(self, body: Body, inside: str | None) -> Iterator[_News]:
        """All content of a body, as if it were new."""
        for id, part in self._parts_in(body):
            yield _Inserted(self._end(inside), id, part)
            if isinstance(part, DisplayElement):
                yield from self._everything(part, part.id)

    def _parts_in(self, body: Body) -> Iterator[tuple[str, DisplayRegion | DisplayElement]]:
        """The regions and elements in a body, by the reader's ids."""
        for handle in body.parts:
            match self._parts[handle]:
                case DisplayElement() as element:
                    yield _itself(element.id), element
                case DisplayRegion() as region:
                    yield min(region.ids), region
                case _:
                    raise AssertionError("text stands in regions")

    def _content(self, part: DisplayRegion | DisplayElement) -> tuple[str, Mapping[str, str]]:
        """The content of a region or an element, and the namespaces declared around it."""
        declared = _declared(part)
        if isinstance(part, DisplayElement):
            end = _control("mutable", "", id=self._end(part.id))
            return f"{part.start}>{end}{part.close}", declared
        return self._text(part), declared

    def _end(self, element: str | None) -> str:
        """The id of the empty region at the end of an element, or of the answer; new each time everything is sent."""
        if element is None:
            return _END
        return f"{element} {_END}" if self._told.times == 1 else f"{element} {_END} {self._told.times}"

    # --- changes --------------------------------------------------------------------------------------------

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
        outermost: DisplayRegion | None = None
        at: Body | None = body
        while at is not None:
            if isinstance(at, DisplayRegion):
                outermost = at
            at = at.around
        if outermost is not None:
            self._dirty[outermost.handle] = outermost


def _is_known(part: DisplayRegion | DisplayElement) -> bool:
    """Whether a reader knows a region or an element by itself: it is in no region."""
    around = part.around
    while around is not None:
        if isinstance(around, DisplayRegion):
            return False
        around = around.around
    return True


def is_result(id: str) -> bool:
    """Whether a region of a published display holds results; the others hold what stands around them, or nothing."""
    return id != _END and " " not in id


def heartbeat(at: Decimal, *, json: bool = False) -> str:
    """The heartbeat that ends a moment on the wire, with the end of its line."""
    return _json_control("punctuation", "", at=at) if json else f"{_control('punctuation', '', at=at)}\n"


def _declared(part: DisplayRegion | DisplayElement) -> dict[str, str]:
    """The namespaces declared by the elements around a region or an element."""
    found: dict[str, str] = {}
    around = part.around
    while around is not None:
        if isinstance(around, DisplayElement) and around.namespaces:
            found = {**dict(around.namespaces), **found}
        around = around.around
    return found


def _itself(element: str) -> str:
    """The region around an element."""
    return f"{element} itself"


def _quoted(text: str) -> str:
    return f'"{escape_attribute(text)}"'


def _control(
    name: str,
    content: str,
    declared: Mapping[str, str] | None = None,
    *,
    target: str | None = None,
    id: str | None = None,
    at: Decimal | None = None,
) -> str:
    prefix, others = "s", ""
    if declared:
        while prefix in declared:
            prefix += "_"
        if content:
            others = "".join(f" xmlns{':' if each else ''}{each}={_quoted(uri)}" for each, uri in declared.items())
    attributes = "" if target is None else f" target={_quoted(target)}"
    if id is not None:
        attributes += f" id={_quoted(id)}"
    if at is not None:
        attributes += f' at="{at:f}"'
    start = f'{prefix}:{name} xmlns:{prefix}="{STREAM_NAMESPACE}"{others}{attributes}'
    return f"<{start}>{content}</{prefix}:{name}>" if content else f"<{start}/>"


def _json_control(
    name: str,
    content: str,
    declared: Mapping[str, str] | None = None,
    *,
    target: str | None = None,
    id: str | None = None,
    at: Decimal | None = None,
) -> str:
    """The same as a line of JSON; `content` is lines, and namespaces there are none."""
    body = [(key, write_string(value)) for key, value in (("target", target), ("id", id)) if value is not None]
    if at is not None:
        body.append(("at", f"{at:f}"))
    if content:
        body.append(("content", f"[{', '.join(_lines(content))}]"))
    return f"{write_object([(f'${name}', write_object(body))])}\n"


def _lines(content: str) -> list[str]:
    """The results in lines of JSON, in which a newline ends each and stands nowhere else."""
    return content.split("\n")[:-1]
