"""The one form of a FLWR expression: plain loops where that says the same, a pipeline where it does not."""

from __future__ import annotations

import pytest

from anabranch.language import ast, parse
from anabranch.language.printer import print_query

SAME = (
    ("for $p in a where b let $c := d return e", "for $p in a where b return let $c := d return e"),
    ("for $p in a where b where c return e", "for $p in a where b and c return e"),
    ("for $p in a for $q at $i in b return e", "for $p in a return for $q at $i in b return e"),
    ("for $q at $i in b where c for $p in a return e", "for $q at $i in b where c return for $p in a return e"),
    ("for $w in s|count 2| for $o in $w group by $k := $o/k return e",
     "for $w in s|count 2| return for $o in $w group by $k := $o/k return e"),
    ("for $w in s|count 2| let $n := count($w) where $n > 1 for $o in $w group by $k := $o/k count $i return $i",
     "for $w in s|count 2| let $n := count($w) where $n > 1 return "
     "for $o in $w group by $k := $o/k count $i return $i"),
    ("for $w in s|count 2| let $n := count($w) for $o in $w group by $k := $o/k return $n",
     "for $w in s|count 2| return let $n := count($w) for $o in $w group by $k := $o/k return $n"),
    ("for $w in s|count 2| let $n := count($w) for $o in $w group by $n return e",
     "for $w in s|count 2| return let $n := count($w) for $o in $w group by $n return e"),
    ("for $d in a where b for $w in s|count 2| for $o in $w group by $k := 1 return e",
     "for $d in a where b return for $w in s|count 2| return for $o in $w group by $k := 1 return e"),
)  # fmt: skip


@pytest.mark.parametrize(("written", "nested"), SAME)
def test_clauses_that_are_loops_inside_one_another(written: str, nested: str) -> None:
    """Both are read as the second, which is what is printed."""
    assert parse(written) == parse(nested)
    assert print_query(parse(written)) == nested


WHOLE = (
    "for $p in a group by $k := $p/k return $k",
    "for $p in a count $i return $i",
    "for $p in a where b let $c := d order by $c return e",
    "for $p in a order by $p count $i where $i < 3 return $p",
    "for $p at $i in a return $i",
    "for $w in s|count 2| group by $k := count($w) return $k",
    "for $w in s|count 2| for $o in $w order by $o count $i return $i",
)


@pytest.mark.parametrize("written", WHOLE)
def test_clauses_that_need_all_tuples(written: str) -> None:
    """They are a pipeline, which nobody can take for a plain loop."""
    body = parse(written).body
    assert isinstance(body, ast.Pipeline)
    assert print_query(parse(written)) == written


PREDICATES = (
    *((each, ast.Positional) for each in ("1", "-1", "last()", "position() < 3", "b and position() = 1", "count(b)")),
    *((each, ast.Positional) for each in ("$n", "f(.)", "if (b) then 1 else c", "head((1, 2))", "local:two()")),
    *((each, ast.Predicate) for each in ("b", "b[1]", "b[last()] > 2", "not(b)", "'x'", "local:yes(b)", "data(b)")),
    *((each, ast.Predicate) for each in (".", "some $x in b satisfies $x", "if (b) then c else d", "head(b)")),
)


@pytest.mark.parametrize(("condition", "kind"), PREDICATES)
def test_which_predicates_are_positions(condition: str, kind: type) -> None:
    """Those that may be a number, as far as the writing tells, and those that ask for a position of their own."""
    functions = "declare function local:two() { 2 }; declare function local:yes($v) { $v > 1 }; "
    path = parse(f"{functions}$p/a[{condition}]").body
    assert isinstance(path, ast.Path)
    (found,) = path.steps[0].tail
    assert type(found) is kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("stream('s')/r/i[$n]", ast.Predicate),
        ("stream('s')//i[$n]", ast.Predicate),
        ("stream('s')/r/i/a[$n]", ast.Positional),
        ("stream('s')/r/i//a[$n]", ast.Positional),
        ("stream('s')/r/i[1]", ast.Positional),
        ("doc('d')/r/i[$n]", ast.Positional),
        ("stream('s')/r/i#1/a[$n]", ast.Positional),
        ("stream('s')/r/i#1[$n]", ast.Predicate),
    ],
)
def test_what_may_be_a_position_on_items_is_a_condition(path: str, kind: type) -> None:
    """Items have no positions, so a variable asks there whether something is so; a number is refused."""
    found = parse(path).body
    assert isinstance(found, ast.Path)
    assert type(found.steps[-1].tail[-1]) is kind
