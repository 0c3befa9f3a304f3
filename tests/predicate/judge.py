"""z3 as the judge of predicates: an item as variables, and the verdict of a predicate on it as formulas.

Written from LAWS 2.3 and 2.4 and not from the package: every value of a term is a text, which has a kind (a finite
number, INF, -INF, NaN, a dateTime, another word), a number, and a rank among all strings; a term that may repeat has
COPIES values, each of which may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product

import z3

from anabranch.predicate import And, Compare, Difference, Finite, Integers, Not, Or, Predicate, Reals, Term
from anabranch.stream.affine import Affine
from anabranch.values.numbers import exact_number

COPIES = 3
STRINGS = ("", "-INF", "1", "2.5", "INF", "NaN", "a", "b")
"""The strings that generated predicates may name, in their order."""
FINITE, INF, MINUS_INF, NAN, WORD, MOMENT = range(6)


@dataclass(frozen=True)
class Value:
    """One value of a term, as variables."""

    present: z3.BoolRef
    kind: z3.ArithRef
    number: z3.ArithRef
    rank: z3.ArithRef


@dataclass(frozen=True)
class Verdict:
    """When a predicate is yes, and when it is not no."""

    yes: z3.BoolRef
    maybe: z3.BoolRef


class Judge:
    """Asks z3 about items that have these terms."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.values = {term: self._values(term, f"v{index}") for index, term in enumerate(terms)}
        self._known: dict[Predicate, Verdict] = {}

    @cached_property
    def solver(self) -> z3.Solver:
        """z3, told what values each term may have."""
        solver = z3.Solver()
        solver.set("timeout", 10_000)
        for term, values in self.values.items():
            for value in values:
                solver.add(z3.Implies(value.present, self._in_domain(term, value)))
        return solver

    def _values(self, term: Term, name: str) -> list[Value]:
        number = z3.Int if isinstance(term.domain, Integers) else z3.Real
        return [
            Value(
                z3.BoolVal(True) if term.occurs == "one" else z3.Bool(f"{name}p{copy}"),
                z3.IntVal(FINITE) if isinstance(term.domain, Reals | Integers) else z3.Int(f"{name}k{copy}"),
                number(f"{name}n{copy}"),
                z3.Real(f"{name}r{copy}"),
            )
            for copy in range(COPIES if term.occurs == "many" else 1)
        ]

    def _in_domain(self, term: Term, value: Value) -> z3.BoolRef:
        known = [z3.And(value.kind >= FINITE, value.kind <= MOMENT)]
        for rank, text in enumerate(STRINGS):
            kind, number = spelled(text)
            facts = [value.kind == kind]
            if number is not None:
                facts.append(value.number == z3.Q(number.numerator, number.denominator))
            known.append(z3.Implies(value.rank == rank, z3.And(*facts)))
        match term.domain:
            case Reals(low, high) | Integers(low, high):
                known.append(value.kind == FINITE)
                known += [value.number >= _real(low)] if low is not None else []
                known += [value.number <= _real(high)] if high is not None else []
            case Finite(texts):
                known.append(z3.Or(*(value.rank == STRINGS.index(each) for each in texts)))
            case _:
                pass
        return z3.And(*known)

    def never(self, formula: z3.BoolRef) -> bool:
        """Whether a formula holds for no item."""
        self.solver.push()
        self.solver.add(formula)
        result = self.solver.check()
        self.solver.pop()
        assert result != z3.unknown
        return bool(result == z3.unsat)

    def implies(self, p: Predicate, q: Predicate) -> bool:
        """Whether p never stands higher than q."""
        first, second = self.verdict(p), self.verdict(q)
        return self.never(z3.Or(z3.And(first.yes, z3.Not(second.yes)), z3.And(first.maybe, z3.Not(second.maybe))))

    def equivalent(self, p: Predicate, q: Predicate) -> bool:
        """Whether p and q have the same verdict on every item."""
        first, second = self.verdict(p), self.verdict(q)
        return self.never(z3.Or(first.yes != second.yes, first.maybe != second.maybe))

    def never_raises(self, p: Predicate) -> bool:
        """Whether p is yes or no on every item."""
        return self.never(z3.And(self.verdict(p).maybe, z3.Not(self.verdict(p).yes)))

    def maps(self, term: Term, target: Term, change: Affine) -> z3.BoolRef:
        """The law that the values of `target` are those of `term`, changed."""
        pairs = zip(self.values[term], self.values[target], strict=True)
        return z3.And(
            *(
                z3.And(
                    new.present == old.present,
                    new.kind == old.kind,
                    new.number == _real(change.a) * old.number + _real(change.b),
                )
                for old, new in pairs
            )
        )

    def disjoint(self, p: Predicate, q: Predicate) -> bool:
        """Whether p and q never hold together."""
        return self.never(z3.And(self.verdict(p).yes, self.verdict(q).yes))

    def verdict(self, predicate: Predicate) -> Verdict:
        """When a predicate is yes and when it is not no."""
        if predicate not in self._known:
            self._known[predicate] = self._verdict(predicate)
        return self._known[predicate]

    def _verdict(self, predicate: Predicate) -> Verdict:
        match predicate:
            case And(parts):
                inner = [self.verdict(part) for part in parts]
                return Verdict(z3.And(*(each.yes for each in inner)), z3.And(*(each.maybe for each in inner)))
            case Or(parts):
                inner = [self.verdict(part) for part in parts]
                return Verdict(z3.Or(*(each.yes for each in inner)), z3.Or(*(each.maybe for each in inner)))
            case Not(part):
                denied = self.verdict(part)
                return Verdict(z3.Not(denied.maybe), z3.Not(denied.yes))
            case Compare():
                return self._compare(predicate)
            case Difference():
                return self._difference(predicate)

    def _compare(self, predicate: Compare) -> Verdict:
        yes, maybe = [], []
        for value in self.values[predicate.term]:
            if isinstance(predicate.constant, str):
                holds = _ordered(predicate.op, value.rank, z3.RealVal(STRINGS.index(predicate.constant)))
                raises = z3.BoolVal(False)
            else:
                holds = _numeric(predicate.op, value, None, predicate.constant)
                raises = value.kind >= WORD
            yes.append(z3.And(value.present, holds))
            maybe.append(z3.And(value.present, z3.Or(holds, raises)))
        return _verdict(z3.Or(*yes), z3.Or(*maybe))

    def _difference(self, predicate: Difference) -> Verdict:
        yes, maybe = [], []
        lefts, rights = self.values[predicate.left], self.values[predicate.right]
        for left, right in product(lefts, rights):
            there = z3.And(left.present, right.present)
            word = z3.Or(left.kind >= WORD, right.kind >= WORD)
            moments = z3.And(left.kind == MOMENT, right.kind == MOMENT)
            as_text = _ordered(predicate.op, left.rank, right.rank)
            holds = _numeric(predicate.op, left, right, predicate.offset or Fraction(0))
            if predicate.offset is not None:
                yes.append(z3.And(there, holds))
                maybe.append(z3.And(there, z3.Or(word, holds)))
            else:
                as_words = z3.If(moments, _ordered(predicate.op, left.number, right.number), as_text)
                found = as_text if predicate.op in ("=", "!=") else z3.If(word, as_words, holds)
                yes.append(z3.And(there, found))
                maybe.append(z3.And(there, found))
        if predicate.offset is None:
            return _verdict(z3.Or(*yes), z3.Or(*maybe))
        several = z3.AtLeast(*(each.present for each in rights), 2) if len(rights) > 1 else z3.BoolVal(False)
        raises = z3.Or(several, *(z3.And(each.present, each.kind >= WORD) for each in rights))
        return _verdict(z3.And(z3.Not(raises), z3.Or(*yes)), z3.Or(raises, *maybe))

    def same_text(self) -> z3.BoolRef:
        """The law that equal texts are equal numbers of one kind."""
        every = [value for values in self.values.values() for value in values]
        return z3.And(
            *(
                z3.Implies(a.rank == b.rank, z3.And(a.kind == b.kind, a.number == b.number))
                for index, a in enumerate(every)
                for b in every[:index]
            )
        )


def _verdict(yes: z3.BoolRef, maybe: z3.BoolRef) -> Verdict:
    return Verdict(z3.simplify(yes), z3.simplify(maybe))


def spelled(text: str) -> tuple[int, Fraction | None]:
    """The kind of a text, and its number if that is finite."""
    number = exact_number(text)
    if number is None:
        return WORD, None
    if number.is_nan():
        return NAN, None
    if number.is_infinite():
        return (INF if number > 0 else MINUS_INF), None
    return FINITE, Fraction(Decimal(number))


def _real(value: Fraction) -> z3.RatNumRef:
    return z3.Q(value.numerator, value.denominator)


def _numeric(op: str, left: Value, right: Value | None, offset: Fraction) -> z3.BoolRef:
    """`left op right + offset` for texts that are numbers; without `right`, against the offset itself."""
    if right is None:
        kind, number = z3.IntVal(FINITE), _real(offset)
    else:
        kind, number = right.kind, right.number + _real(offset)
    size = [z3.If(each == INF, 1, z3.If(each == MINUS_INF, -1, 0)) for each in (left.kind, kind)]
    numbers = z3.And(left.kind < WORD, kind < WORD)
    nan = z3.Or(left.kind == NAN, kind == NAN)
    finite = z3.And(left.kind == FINITE, kind == FINITE)
    compared = z3.If(finite, _ordered(op, left.number, number), _ordered(op, *size))
    return z3.And(numbers, z3.If(nan, z3.BoolVal(op == "!="), compared))


def _ordered(op: str, a: z3.ArithRef, b: z3.ArithRef) -> z3.BoolRef:
    match op:
        case "=":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b
