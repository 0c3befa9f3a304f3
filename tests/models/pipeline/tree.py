"""The tree of what is written in regions: where each part stands, and what stands before it.

What shows of it, and from when to when, is the matter of `regions.py`; what it is made of is in `bodies.py`.
A part is named by its handle, a number that no other part ever has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from anabranch.algebra.display.ordered import V
from models.pipeline.bodies import Body, Chain, Frame, P, Part, Scale


class Tree(Generic[P, V]):
    """A body that everything stands in."""

    def __init__(self, scale: Scale[P, V]) -> None:
        self.scale = scale
        self.root: Body[P, V] = Body(None, scale.zero)
        self.names: dict[str, Chain[P, V]] = {}
        """The regions by their ids; an id names the one that took it last (LAWS 5.3)."""
        self._parts: dict[int, Part[P, V]] = {}
        self.next = 0
        """The next handle."""

    # --- asking ---------------------------------------------------------------------------------------------

    @property
    def total(self) -> V:
        """What all that shows comes to."""
        return self.root.parts.total

    @property
    def size(self) -> int:
        """How many parts are kept, those that do not show among them."""
        return len(self._parts)

    def part(self, handle: int) -> Part[P, V]:
        return self._parts[handle]

    def scope(self, body: Body[P, V]) -> tuple[Body[P, V], V]:
        """The outermost body through which this one shows, and what stands there before it; the root, if it shows."""
        start = self.scale.zero
        while (owner := body.owner) is not None:
            if isinstance(owner, Frame):
                start = owner.body.parts.before(owner.handle) + self.scale.inset(owner.piece) + start
                body = owner.body
                continue
            if not owner.shows:
                return body, start
            chain = owner.chain
            for version in chain.versions:
                if version is owner:
                    break
                if version.shows:
                    start = version.body.parts.total + start
            start = chain.body.parts.before(chain.handle) + start
            body = chain.body
        return body, start

    def start(self, body: Body[P, V], handle: int) -> V:
        """What stands in front of a part that shows."""
        found: V = self.scope(body)[1] + body.parts.before(handle)
        return found

    def is_shown(self, body: Body[P, V]) -> bool:
        return self.scope(body)[0] is self.root

    def walk(self, body: Body[P, V]) -> Iterator[tuple[P, Frame[P, V] | None, bool]]:
        """What shows of a body, in order: pieces, and frames twice, at their start and (last is True) at their end."""
        pending: list[tuple[Part[P, V], bool]] = [(self._parts[each], False) for each in reversed(list(body.parts))]
        while pending:
            part, is_end = pending.pop()
            match part:
                case Chain():
                    shown = [handle for each in part.versions if each.shows for handle in each.body.parts]
                    pending.extend((self._parts[each], False) for each in reversed(shown))
                case Frame():
                    yield part.piece, part, is_end
                    if not is_end:
                        pending.append((part, True))
                        pending.extend((self._parts[each], False) for each in reversed(list(part.inside.parts)))
                case _:
                    yield part, None, False

    def _chains(self, body: Body[P, V]) -> Iterator[Chain[P, V]]:
        """All chains in a body, shown or not."""
        pending = [body]
        while pending:
            for handle in pending.pop().parts:
                match self._parts[handle]:
                    case Chain() as chain:
                        yield chain
                        pending.extend(each.body for each in chain.versions)
                    case Frame() as frame:
                        pending.append(frame.inside)
                    case _:
                        pass

    # --- coming and going -----------------------------------------------------------------------------------

    def name(self, id: str, chain: Chain[P, V] | None) -> None:
        """From now on an id names this region, or none that is known here."""
        before = self.names.pop(id, None)
        if before is not None:
            before.ids.discard(id)
        if chain is not None:
            self.names[id] = chain
            chain.ids.add(id)

    def restore(self, handle: int, part: Part[P, V]) -> None:
        """A part as it was kept."""
        self._parts[handle] = part

    def _place(
        self, body: Body[P, V], part: Part[P, V], before: Chain[P, V] | None, after: Chain[P, V] | None, value: V
    ) -> int:
        handle = self.next
        self.next += 1
        self._parts[handle] = part
        if before is not None:
            body.parts.insert_before(before.handle, handle, value)
        elif after is not None:
            body.parts.insert_after(after.handle, handle, value)
        else:
            body.parts.append(handle, value)
        return handle

    def _forget_body(self, body: Body[P, V]) -> None:
        self._forget([part for handle in body.parts if isinstance(part := self._parts.pop(handle), Chain | Frame)])

    def _forget(self, parts: list[Chain[P, V] | Frame[P, V]]) -> None:
        while parts:
            part = parts.pop()
            self._parts.pop(part.handle, None)
            if isinstance(part, Frame):
                bodies = [part.inside]
            else:
                for id in part.ids:
                    del self.names[id]
                bodies = [each.body for each in part.versions]
            for body in bodies:
                parts += [each for handle in body.parts if isinstance(each := self._parts.pop(handle), Chain | Frame)]
