"""The parts that a query over update streams falls into, and how to tell people of them.

* `Fixed`: reads no stream;
* `Each`: distributes over the entries of a stream, in the order of the document or, with `order by`, of its keys;
* `Folded`: an aggregate over what distributes;
* `Computed`: anything whose streams are all inside aggregates; they are few and small, the rest is evaluated anew;
* `Beside`, `Built`: a sequence of parts, and an element constructor around them;
* `Whole`: what does not split, with the reason; it is evaluated anew as a whole, exact and slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from anabranch.branch.display.keys import Key
from anabranch.language import ast


@dataclass(frozen=True, slots=True)
class Fixed:
    """What reads no stream, and has its value for good."""

    expression: ast.Expression


@dataclass(frozen=True, slots=True)
class Each:
    """What distributes over the entries of a stream."""

    stream: str
    expression: ast.Expression
    beside: tuple[str, ...] = ()
    """Streams that it reads as a whole."""
    keys: tuple[tuple[str, Key], ...] = ()
    """For some of these, what an entry has in common with all those entries that can matter to it."""

    @property
    def order(self) -> tuple[ast.OrderKey, ...]:
        """The keys by which all results of all entries are ordered."""
        return self.expression.order if isinstance(self.expression, ast.Flwor) else ()

    @property
    def first(self) -> ast.Expression:
        """What is evaluated before any entry is looked at, for the errors that it may raise: the first `let`s."""
        clauses = self.expression.clauses if isinstance(self.expression, ast.Flwor) else ()
        lets = tuple(takewhile(lambda clause: isinstance(clause, ast.Let), clauses))
        return ast.Flwor(lets, None, (), ast.Sequence(())) if lets else ast.Sequence(())


@dataclass(frozen=True, slots=True)
class Folded:
    """An aggregate over what distributes."""

    function: str
    over: Each


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression over the values of aggregates, each under the name of a variable."""

    expression: ast.Expression
    names: tuple[tuple[str, Folded], ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """What does not split, and why."""

    expression: ast.Expression
    streams: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts one after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """An element constructor, and what stands in it."""

    constructor: ast.ElementConstructor
    content: tuple[ast.Characters | ast.CommentConstructor | Part, ...]


Part: TypeAlias = Fixed | Each | Computed | Whole | Beside | Built


def splits(part: Part) -> bool:
    """Whether no part of it is evaluated anew as a whole."""
    match part:
        case Whole():
            return False
        case Beside(inner):
            return all(splits(each) for each in inner)
        case Built(_, content):
            return all(
                splits(each) for each in content if not isinstance(each, ast.Characters | ast.CommentConstructor)
            )
        case _:
            return True


def describe(part: Part | Folded, indent: str = "") -> str:
    """How a query splits, in words, for people."""
    match part:
        case Fixed():
            return f"{indent}fixed"
        case Each(stream, _, beside, keys):
            order = ", kept in order" if part.order else ""
            keyed = tuple(name for name, _ in keys)
            others = tuple(name for name in beside if name not in keyed)
            against = f", against all of {_named(others)}" if others else ""
            matching = f", against those of {_named(keyed)} with an equal key" if keyed else ""
            return f'{indent}each entry of "{stream}"{matching}{against}{order}'
        case Folded(function, over):
            return f"{indent}{function} over {describe(over)}"
        case Computed(_, names):
            return "\n".join((f"{indent}computed from", *(describe(each, indent + "  ") for _, each in names)))
        case Whole(_, streams, reason):
            return f"{indent}all of {_named(streams)}, evaluated anew: {reason}"
        case Beside(inner):
            return "\n".join(describe(each, indent) for each in inner)
        case Built(constructor, content):
            inside = [each for each in content if not isinstance(each, ast.Characters | ast.CommentConstructor)]
            return "\n".join((f"{indent}<{constructor.name}>", *(describe(each, indent + "  ") for each in inside)))


def _named(streams: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in streams)
