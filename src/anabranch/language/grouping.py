"""Windows whose groups are seen through aggregates only (LAWS 3.8).

    for $w in stream("s")/r/i |t diff 60| return
      for $o in $w let $n := $o/n group by $k := $o/k let $s := sum($n) where $s > 5 return <g k="{$k}">{ $s }</g>

says of each group nothing but its key and the sum of `$o/n`.
`groups_of` makes of it what is said of one group, in the form of a query about one window:

    for $o in stream("s")/r/i |t diff 60| let $s := sum($o/n) where $s > 5 return <g k="{$k}">{ $s }</g>

whose aggregates `aggregated` takes out (`aggregates.py`); the variables of the keys are bound nowhere in it.

Made for this are groups of the items of a window by paths that lead to single texts, or by a text that is made of such.
In front of the `group by` only names for paths may stand, behind it `let`s and then one condition: so groups are looked
at one after the other, and what a group gives follows from that group alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.language import ast
from anabranch.language.aggregates import is_bare, is_ours, with_paths
from anabranch.language.rewrite import bindings_in, parts

_TEXTUAL = frozenset(
    (
        *("string", "concat", "substring", "substring-before", "substring-after"),
        *("upper-case", "lower-case", "normalize-space", "translate"),
    )
)
"""Functions that make a text of texts and numbers."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a query says of the groups of its windows."""

    flwor: ast.Flwor
    """What it says of one group, whose items have the name of a window's."""
    clause: ast.For
    """The loop in it that stands for the window's."""
    names: tuple[str, ...]
    keys: tuple[ast.Expression, ...]
    """The variables of the keys, and what they are in each item."""


def groups_of(flwor: ast.Flwor, clause: ast.For) -> Grouping | None:
    """What an expression says of the groups of its window; None where it says something else, or of anything else."""
    match flwor:
        case ast.Flwor(
            (only,),
            None,
            (),
            ast.Pipeline((ast.For(item, ast.Variable(window), None), *others), result),
        ) if only is clause and window == clause.variable:
            pass
        case _:
            return None
    at = next((place for place, each in enumerate(others) if isinstance(each, ast.GroupBy)), len(others))
    paths, said = _named(others[:at], item), _said(others[at + 1 :])
    if paths is None or said is None or at == len(others):
        return None
    group = others[at]
    assert isinstance(group, ast.GroupBy)
    names = tuple(key.variable for key in group.keys)
    values = [paths.get(key.variable) if key.value is None else with_paths(key.value, paths) for key in group.keys]
    keys = tuple(each for each in values if each is not None and _is_text(each, item))
    bound = bindings_in(flwor)
    if any(bound[name] != times for name, times in Counter((window, item, *paths, *names)).items()):
        return None  # a name means something else somewhere
    lets, where = said
    loop = replace(clause, variable=item)
    kept = {name: path for name, path in paths.items() if name not in names}
    about: ast.Flwor = with_paths(ast.Flwor(lets, where, (), result, span=flwor.span), kept)
    if len(keys) < len(names) or any(part == ast.Variable(window) for part in parts(about)):
        return None
    return Grouping(replace(about, clauses=(loop, *about.clauses)), loop, names, keys)


def _named(clauses: Sequence[ast.Clause], item: str) -> dict[str, ast.Path | ast.Variable] | None:
    """The names for paths from an item that clauses give; None where they do anything else."""
    paths: dict[str, ast.Path | ast.Variable] = {}
    for each in clauses:
        match with_paths(each, paths):
            case ast.Let(name, ast.Path() | ast.Variable() as path) if is_bare(path, item):
                paths[name] = path
            case _:
                return None
    return paths


def _said(clauses: Sequence[ast.Clause]) -> tuple[tuple[ast.Let, ...], ast.Expression | None] | None:
    """Clauses as `let`s and a condition behind them; None for others."""
    where: ast.Expression | None = None
    match clauses:
        case [*ahead, ast.Where(where)]:
            pass
        case _:
            ahead = list(clauses)
    lets = tuple(each for each in ahead if isinstance(each, ast.Let))
    return (lets, where) if len(lets) == len(ahead) else None


def _is_text(key: ast.Expression, item: str) -> bool:
    """Whether a key is a path inside an item, which ends in text, or a text that is made of such."""
    match key:
        case ast.Call(name, (_, *_) as arguments):
            made_of = (each for each in arguments if not isinstance(each, ast.Number))
            return name.removeprefix("fn:") in _TEXTUAL and all(_is_text(each, item) for each in made_of)
        case _:
            return isinstance(key, ast.String) or is_ours(key, item)
