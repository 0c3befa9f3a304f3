"""Apart: one path of the output that has a course of its own, since an accent on it did not come out as it came.

Up to there the output was what the input was.
From there on it is told by sets of items who may carry the path in the output, and through which unit changes its
values have gone there; what the inputs have done to their paths is held against it: the difference comes out.

Mostly nothing can come of an accent because hidden values are left that no accent has spoken of (`untouched.py`).
That is known for paths with one source, for alters and for drops apart, from any moment on at which input and output
are in step for all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anabranch.algebra.accents.boxes import combined, without
from anabranch.algebra.reactions.course import Alters
from anabranch.algebra.reactions.origins import Origins, Source
from anabranch.algebra.reactions.signature import unlinked
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.algebra.reactions.untouched import Untouched
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, or_
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path


class Apart:
    """What has become of a path in the output; `sources` have to agree on what comes out."""

    def __init__(self, path: Path, sources: tuple[Source, ...], origins: Origins) -> None:
        self._sources = sources
        self._origins = origins
        self._carried = Tiling(origins.carries(path, None))
        self._taken: Tiling[Alters] = Tiling(())
        """The unit changes of the inputs that the output has gone through, let out or not."""
        self._untouched: dict[bool, Untouched | None] = {}
        """The hidden values left alone since input and output were in step, if any are; for alters, and for drops."""
        if len(sources) == 1:
            [(input, source)] = sources
            if origins.signature.link is unlinked:
                self._untouched = {is_alter: origins.untouched(input) for is_alter in (True, False)}
            known = origins.inputs[input].known(source)
            for part, carried in known.carried.over(EVERYTHING):
                self._carried.change(part, _being(origins.carries(source, carried)))
            self._taken = known.units.mapped(lambda part: part)

    def redeclare(self, tell: Callable[[Predicate], Predicate]) -> None:
        """Tell all sets under other promises."""
        self._carried, self._taken = self._carried.mapped(tell), self._taken.mapped(tell)
        self._untouched = dict.fromkeys(self._untouched)

    # --- what is untouched ------------------------------------------------------------------------------------

    def waits(self, is_alter: bool, tell: Callable[[Untouched], bool]) -> bool:
        """Tell what is untouched of something that has happened; whether nothing can come of it, since it still is."""
        known = self._untouched.get(is_alter)
        if known is not None and not tell(known):
            self._untouched[is_alter] = None
        return self._untouched.get(is_alter) is not None

    def overtake(self) -> None:
        """An add comes out for some of what an item may have come from, and so the output goes ahead of the others."""
        for is_alter in self._untouched:
            if not (is_alter and self._has_first_unit()):
                self._untouched[is_alter] = None

    def _has_first_unit(self) -> bool:
        """Whether nothing at the one source has ever changed its unit."""
        [(input, source)] = self._sources
        units = self._origins.inputs[input].known(source).units
        return not len(units) and units.elsewhere == ()

    def settle(self) -> None:
        """Where input and output are in step for all items, all are untouched by what comes."""
        for is_alter, untouched in self._untouched.items():
            if untouched is None:
                [(input, source)] = self._sources
                known = self._origins.inputs[input].known(source)
                if is_alter:
                    in_step = len(known.units.says() | self._taken.says()) == 1
                else:
                    there = {self._origins.carries(source, each) for each in known.carried.says()}
                    in_step = len(there | self._carried.says()) == 1
                self._untouched[is_alter] = self._origins.untouched(input) if in_step else None

    # --- what comes out ---------------------------------------------------------------------------------------

    def gain(self, items: Predicate) -> Predicate:
        """Have some items carry the path; gives those that did not."""
        gained = without(items, self._carried.where(bool, items))
        self._carried.change(gained, lambda _: True)
        return gained

    def lose(self, items: Predicate) -> Predicate:
        """Have those of some items carry the path no longer that do not, whatever they come from; gives them."""
        before = self._carried.where(bool, items)
        lost = self._origins.for_all(self._sources, before, self._origins.lacking)
        if lost != NOTHING:
            dropped = (self._origins.inputs[input].dropped(source, items) for input, source in self._sources)
            lost = combined(and_(lost, self._origins.for_some(or_(*dropped))))
        self._carried.change(lost, lambda _: False)
        return lost

    def renew(self, items: Predicate) -> None:
        """What some items have there is new, so it has gone through nothing yet."""
        self._taken.change(items, lambda _: ())

    def take(self, items: Predicate, by: Affine) -> None:
        """Have some items go through a unit change."""
        self._taken.change(items, lambda alters: (*alters, by))

    def ready(self, items: Predicate) -> dict[Affine, Predicate]:
        """Of some items, those that have the same unit change next, whatever they come from; by the change."""
        found: dict[Affine, list[Predicate]] = {}
        for part, alters, by in self._next(items):
            ready = self._origins.for_all(self._sources, part, self._origins.gone_through((*alters, by)))
            if ready != NOTHING:
                found.setdefault(by, []).append(ready)
        return {by: combined(or_(*parts)) for by, parts in found.items()}

    def _next(self, items: Predicate) -> Iterator[tuple[Predicate, Alters, Affine]]:
        """The unit changes that some input has after those of the output, by sets of items."""
        for part, alters in self._taken.over(items):
            later = [
                each[len(alters)]
                for input, source in self._sources
                for _, each in self._origins.inputs[input].known(source).units.over(part)
                if len(each) > len(alters) and each[: len(alters)] == alters
            ]
            yield from ((part, alters, by) for by in dict.fromkeys(later))


def _being(carried: bool) -> Callable[[bool], bool]:
    return lambda _: carried
