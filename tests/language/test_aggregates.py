from __future__ import annotations

import pytest

from anabranch.language import ast, parse
from anabranch.language.printer import print_query
from anabranch.language.windows.aggregates import Aggregated, aggregated


def taken(rest: str, source: str = 'stream("s")/r/i', registered: tuple[str, ...] = ()) -> Aggregated | None:
    """What becomes of a window query with this behind its `for`."""
    flwor = parse(f"for $w in {source} |t diff 10| {rest}").body
    assert isinstance(flwor, ast.Flwor)
    clause = flwor.clauses[0]
    assert isinstance(clause, ast.For)
    return aggregated(flwor, clause, registered)


def test_calls_become_variables() -> None:
    """Each call is one variable, however often it is written, and each path is one, whatever is asked of it."""
    found = taken("let $a := avg($w/en) where fn:avg($w/en) > 1 return <o n='{count($w)}'>{ $a, max($w/en) }</o>")
    assert found is not None
    calls = [(each.variable, each.function, each.path) for each in found.calls]
    assert calls == [("avg#0", "avg", 0), ("count#1", "count", 1), ("max#2", "max", 0)]
    assert found.paths == (parse("$w/en").body, ast.Variable("w"))
    assert "$avg#0 > 1" in print_query(ast.Query(found.flwor))


@pytest.mark.parametrize(
    "call",
    ["count($w)", "sum($w/a/b)", "min($w//b)", "max($w/@id)", "avg($w/en[. > 1])", "count($w[en > 1])",
     "avg($w[en > 1]/c/en)", "sum($w/*)", "sum($w/a/text())", "count($w/node())", "avg($w/en[not(contains(., 'x'))])"],
)  # fmt: skip
def test_an_aggregate_of_what_lies_in_the_items_is_taken(call: str) -> None:
    """Paths that go down from the window, with at most one predicate that looks at nothing outside."""
    assert taken(f"return <o>{{ {call} }}</o>") is not None


@pytest.mark.parametrize(
    "rest",
    ["return $w", "let $v := $w/en[. > 1] return avg($v)", "let $v := $w/en return <o>{ avg($v), $v }</o>",
     "return <o>{ avg($w/en), $w/t }</o>", "return sum($w/..)",
     "return sum($w/node())", "return avg($w/a[b > 1]/c[. > 1])", "let $a := 1 return avg($w/en[. > $a])",
     "return exists($w)", "return for $w in $w return <o/>", "return <o>{ count($w), distinct-values($w/a) }</o>",
     "return count($w[../x > 1])", 'return count($w[n = doc("d")/n])', "return count(($w/a, $w/b))"],
)  # fmt: skip
def test_a_window_that_is_seen_otherwise_is_kept(rest: str) -> None:
    """Whatever needs the items themselves, or a path whose errors come in another order."""
    assert taken(rest) is None


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        ("let $v := $w/c return avg($v)", "return avg($w/c)"),
        ("let $v := $w let $u := $v/c return (avg($u/en), count($v))", "return (avg($w/c/en), count($w))"),
        ("let $v := $w/c/en where count($v[. > 1]) > 2 return sum($v)",
         "where count($w/c/en[. > 1]) > 2 return sum($w/c/en)"),
        ("let $v := $w return count($v[en])", "return count($w[en])"),
    ],
)  # fmt: skip
def test_a_name_for_a_path_is_the_path(named: str, plain: str) -> None:
    """A `let` that names a path without predicates hides no aggregate."""
    assert taken(named) is not None
    assert taken(named) == taken(plain)


def test_nodes_that_may_lie_in_each_other_are_kept() -> None:
    """Below `//i` an item may hold another, and what both lead to counts once."""
    assert taken("return count($w/a)", 'stream("s")//i') is None
    assert taken("return count($w/a)", 'stream("s")/r/i[a > 1]/b') is not None


def test_a_registered_function_goes_before_a_built_in_one() -> None:
    """A user's own `avg` is no aggregate of ours."""
    assert taken("return avg($w/en)", registered=("avg",)) is None
