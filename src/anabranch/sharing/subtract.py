"""Subtracting property trees: the needs of a query that a stream does not meet (the paper's future work, section 4).

`subtract(query, stream)` is the tree of the remainder: the least that would have to be sent beside the stream so that
the query has all it needs; merging it into the stream is the smallest widening.
It is in the optimised form: elements that its conditions only look at are not in it.
It says what a query that does not match lacks; taken the other way round, it says what a stream need no longer send
when one of the queries that share it has ended.

Each element is needed where one condition holds and given where another does, so what remains is where the first holds
and the second does not; but that difference cannot always be evaluated.
Where the stream's condition raises an error for an item, its negation raises too, and an item that the query would
select is then in neither of them.
So a remainder is taken only if it provably has, together with what is given, all that is needed, errors included:

* the difference itself, which serves for comparisons of texts;
* the difference with comparisons inverted (`a > 5` without `a > 7` is `a > 5 and a <= 7`), which serves for numbers
  of the same element; where elements repeat, an item may be in both;
* else all that is needed, beside what is given already.

Windows over other items, of other sizes, or dropped by a postselection have no difference: the remainder is then the
tree of the whole query.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.logic import OPPOSITE
from anabranch.predicate import (
    NOTHING,
    And,
    Compare,
    Difference,
    Not,
    Or,
    Predicate,
    and_,
    covers,
    disjoint,
    disjuncts,
    implies,
    not_,
    or_,
    terms,
)
from anabranch.sharing.match import combine, given_where, is_plain, matches, same_aggregate
from anabranch.sharing.normalize import settled, unwindowed
from anabranch.sharing.tree import PropertyTree


def subtract(query: PropertyTree, stream: PropertyTree) -> PropertyTree | None:
    """What would have to be sent beside the stream for the query; None where nothing is left."""
    if matches(stream, query):
        return None
    if is_plain(stream):
        query = unwindowed(query)
    elif not _has_windows(stream, query):
        return query
    outputs = [replace(each, condition=remaining(each.condition, given_where(stream, each))) for each in query.outputs]
    values = []
    for each in query.aggregates:
        known = same_aggregate(stream, each)
        values.append(replace(each, selection=remaining(each.selection, known.selection if known else NOTHING)))
    asking = [each.condition for each in outputs] + [each.selection for each in values]
    named = {term for condition in asking for term in terms(condition)}
    kept = [
        old if new.selection == NOTHING else new  # a value that is only asked about comes along
        for old, new in zip(query.aggregates, values, strict=True)
        if new.selection != NOTHING or new.term in named
    ]
    return replace(query, outputs=settled(outputs, query.schema), aggregates=tuple(kept))


def _has_windows(stream: PropertyTree, query: PropertyTree) -> bool:
    """Whether the stream has all windows of the query, as they are."""
    if not combine(stream, query):
        return False
    if stream.window is None or query.window is None:
        return True
    return stream.window.extent == query.window.extent and implies(query.window.post, stream.window.post)


def remaining(needed: Predicate, given: Predicate) -> Predicate:
    """A condition that implies `needed`, and holds at least where `needed` does and `given` does not."""
    if implies(needed, given):
        return NOTHING
    if disjoint(needed, given):
        return needed
    for without in (and_(needed, not_(given)), and_(needed, _opposite(given))):
        if covers((given, without), needed):
            return _thinned(without, needed, given)
    return needed


def _thinned(without: Predicate, needed: Predicate, given: Predicate) -> Predicate:
    """A remainder without the disjuncts that are not needed beside what is given."""
    parts = [and_(*each) for each in disjuncts(without)]
    for each in tuple(parts):
        rest = [other for other in parts if other is not each]
        if covers((given, *rest), needed):
            parts = rest
    return or_(*parts)


def _opposite(condition: Predicate) -> Predicate:
    """The condition with inverted comparisons: a value that does not fulfil the one fulfils the other."""
    match condition:
        case And(parts):
            return or_(*map(_opposite, parts))
        case Or(parts):
            return and_(*map(_opposite, parts))
        case Not(part):
            return part
        case Compare(op=op) | Difference(op=op):
            return replace(condition, op=OPPOSITE[op])
