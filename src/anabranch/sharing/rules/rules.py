"""The inference rules of the sharing paper, (1) to (10) for trees (3.2.4) and (11) to (20) for forests (appendix A).

Each rule is one function, and `RULES` and `clause` say which one is for which kind of expression.
One walk serves trees and forests: rule (10 + n) is rule (n) with each path and each condition given to the input it
belongs to, and a condition that names several inputs is the join annotation.
The example in a rule's docstring is a query, and behind the arrow the tree that comes out of it; a test runs them all.

The rules walk through what a query returns and carry along the condition under which it is returned: conditions on the
way to one occurrence of a path are joined by *and*, occurrences by *or*.
(As printed, the rules unite both alike, and the branches of an `if` would contradict each other.)

What the subscriber looks at again when it runs the query over what it is sent is an output too, and here the rules need
care that the paper does not take:

* the printed plain form marks the path of a `for` whole, and with it all of each item; what it needs is the element
  itself, and only where its round gives something that does not come from that element, as `<hit/>` does (`rounds`);
* elements that a condition looks at may be missing where it does not hold, unless a `not` or an `else` would turn their
  absence into a yes (`tree.looked_at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from anabranch.aggregates import AGGREGATES
from anabranch.algebra.window import Extent
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.predicate import EVERYTHING, Predicate, and_, terms
from anabranch.sharing.rules.conditions import (
    CONTEXT,
    LocatedPath,
    Names,
    OpaqueValue,
    StreamNodes,
    Understood,
    conditions_at_nodes,
    conditions_on_way,
    locate,
    understand,
)
from anabranch.sharing.rules.findings import Environment, Findings, touch
from anabranch.sharing.tree import ITEM, Steps, WindowAnnotation, both, conjuncts, is_value, looked_at, positive_part


def translate(expression: ast.Expression, env: Environment, found: Findings) -> None:
    """Add what an expression returns, by the rule for its kind."""
    for each in rounds(expression, env):
        found.output(each.path, env.when, whole=False, input=each.input)
    RULES.get(type(expression), touch)(expression, env, found)


# --- what is returned -----------------------------------------------------------------------------------------


def constructor(element: ast.ElementConstructor, env: Environment, found: Findings) -> None:
    """Rules (1) and (2): a constructor returns what the expressions in it return, in attributes too.

    for $p in stream("s")/r/i return <o k="{ $p/k }">{ $p/a }</o>
    ->
    r
      i
        a •
        k •
    """
    for part in (*(each for attribute in element.attributes for each in attribute.value), *element.content):
        match part:
            case ast.Enclosed(value):
                translate(value, env, found)
            case ast.ElementConstructor():
                translate(part, env, found)


def conditional(expression: ast.If, env: Environment, found: Findings) -> None:
    """Rule (7): the first branch is returned under the condition, the second under its negation.

    for $p in stream("s")/r/i return if ($p/a > 1) then $p/b else $p/c
    ->
    r
      i
        a •
        b •  σ a > 1
        c •  σ not(a > 1)
    """
    holds = understand(expression.condition, env.names, found.aggregate)
    translate(expression.then, under(holds, env, found), found)
    if expression.otherwise != ast.Sequence(()):
        fails = understand(ast.Call("not", (expression.condition,)), env.names, found.aggregate)
        translate(expression.otherwise, under(fails, env, found), found)


def path(expression: ast.Path | ast.Filter | ast.Variable, env: Environment, found: Findings) -> None:
    """Rule (8): a path returns the elements it leads to, under the conditions of its predicates.

    for $p in stream("s")/r/i return $p[b > 1]/a
    ->
    r
      i  σ b > 1
        a •
        b •
    """
    at = locate(expression, env.names)
    if at is None:
        return touch(expression, env, found)
    if at.from_stream:  # a loop over the stream that is not written out
        found.stream_loops += 1
        found.unfit(unless=found.window is None and not found.values)
        if env.loops or len(at.path) < ITEM:  # it is about other items than the loops, or about no item
            return touch(expression, env, found)
    if not at.complete:
        return touch(expression, env, found)
    found.output(at.path, along(at, env, found).when, input=at.base.input)


def variable(expression: ast.Variable, env: Environment, found: Findings) -> None:
    """Rule (9): a variable returns the elements it is bound to, or the value of its aggregate.

    for $p in stream("s")/r/i for $c in $p/c return $c
    ->
    r
      i
        c •
    """
    value = found.aggregate(expression, env.names)
    if value is not None:
        found.select(value, env.when)
    else:
        path(expression, env, found)


def sequence(expression: ast.Sequence, env: Environment, found: Findings) -> None:
    """Rule (10): a sequence returns what its parts return.

    for $p in stream("s")/r/i return ($p/a, $p/b)
    ->
    r
      i
        a •
        b •
    """
    for item in expression.items:
        translate(item, env, found)


def flwor(expression: ast.Flwor, env: Environment, found: Findings) -> None:
    """Rules (3) to (6) in combination: the clauses one after another, the `where`, and what is returned under them.

    for $p in stream("s")/r/i let $c := $p/c where $c/x > 1 order by $p/k return $p/a
    ->
    r
      i  σ c/x > 1
        a •
        c
          x •
        k •
    """
    if expression is not env.join and sum(_is_over_stream(each, env.names) for each in expression.clauses) > 1:
        touch(expression, env, found)
        return found.unfit()
    before, around = found.window, env.loops
    loops: list[StreamNodes] = []
    for place, each in enumerate(expression.clauses):
        rest = (expression.clauses[place + 1 :], expression.where, expression.result, expression.order)
        env = clause(each, rest, env, found)
        meaning = env.names[each.variable]
        if isinstance(each, ast.For) and isinstance(meaning, StreamNodes):
            loops.append(meaning)
    if expression.where is not None:
        env = where(expression.where, env, found, of_window=found.window is not before)
    for key in expression.order:
        touch(key.key, env, found)
    translate(expression.result, replace(env, loops=(*around, *loops)), found)


# --- clauses --------------------------------------------------------------------------------------------------


def clause(each: ast.For | ast.Let, rest: Any, env: Environment, found: Findings) -> Environment:
    """The environment behind a clause, by the rule for its kind; `rest` is what of the query can see its variable."""
    if isinstance(each, ast.Let):
        return let(each, env, found)
    source = locate(each.source, env.names)
    inside = source is not None and not source.from_stream
    if source is None or not source.complete or (each.window if inside else len(source.path) < ITEM):
        touch(each.source, env, found)  # with all that is below, a window's reference too
        return env.bind(each.variable, OpaqueValue())
    if inside:
        return for_elements(each, source, env, found)
    if env.join is not None:
        return for_join(each, source, env, found)
    found.stream_loops += 1
    if each.window is not None or (found.windows and len(source.path) == ITEM and _aggregates(each.variable, rest)):
        return for_window(each, source, env, found)
    return for_items(each, source, env, found)


def for_items(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rule (3): what a loop over items returns is returned under the predicates of its path and its `where`.

    for $p in stream("s")/r/i[b > 1] where $p/c > 2 return $p/a
    ->
    r
      i
        a •  σ b > 1 and c > 2
        b •  σ b > 1
        c •  σ b > 1 and c > 2
    """
    env = along(source, env, found)
    found.unfit(unless=found.window is None and not (found.values and found.windows))
    return env.bind(each.variable, StreamNodes(source.path, len(source.path) == ITEM, input=source.base.input))


def for_elements(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rule (3) for a loop over elements inside an item: conditions hold for the item only as far as they can.

    for $p in stream("s")/r/i for $c in $p/c where $c/x > 1 and not($c/y > 2) return $c/z
    ->
    r
      i
        c  σ c/x > 1
          x •
          y •
          z •
    """
    env = along(source, env, found)
    return env.bind(each.variable, replace(source.base, path=source.path, exact=False))


def for_window(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rules (4) and (5): the loop has a window; the predicates of its path are the window's preselection.

    An aggregate over the item of each round is one over a window of one item.
    A window that does not fit into the tree, because of another one or of a condition around it, is a construct without
    a rule: the items that it holds are sent.

    for $p in stream("s")/r/i return sum($p/a)
    ->
    r
      i  ω |count 1 step 1|
        a  γ sum(a) •
    """
    if found.windows and found.stream_loops == 1 and not found.values and env.when == EVERYTHING:
        window = window_annotation(each, source, env, found)
        if window is not None:
            found.window = window
            return env.bind(each.variable, StreamNodes(source.path, window=True))
    found.unfit(unless=not found.windows)
    env = along(source, env, found)
    found.output(source.path, env.when, whole=False, input=source.base.input)
    match each.window:
        case ast.TimeWindow(reference) | ast.SessionWindow(reference, by=None):
            looked_at = [reference]
        case ast.SessionWindow(reference, by=ast.Path() as key):
            looked_at = [reference, key]
        case _:
            looked_at = []
    for path in looked_at:
        found.output(_reference(path, source.path) or source.path, env.when, input=source.base.input)
    return env.bind(each.variable, StreamNodes(source.path, False, usable=False, input=source.base.input))


def for_join(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rules (13) to (15): each loop of a join has a tree of its own, also where two are over the same stream.

    for $x in stream("s")/r/i[a > 1]|count 4| for $y in stream("u")/r/i|t diff 6| where $x/k = $y/k return $y/b
    ->
    s
      r
        i  ω |count 4 step 4|, pre-σ a > 1
          a
          k •  ⋈ s/k = u/k
    u
      r
        i  ⋈ s/k = u/k, ω |t diff 6 step 6|
          b •
          k •
          t
    """
    own = replace(source, base=replace(source.base, input=input_name(len(found.inputs))))
    pre = conditions_at_nodes(own, env.names, found.aggregate)
    window = window_annotation(each, own, env, found) if each.window else None
    found.unfit(unless=len(source.path) == ITEM and pre is not None and bool(window) == bool(each.window))
    found.inputs.append((source.path, window))
    if pre is not None and window is None:  # asked of each item before it meets others, so not asked again
        env = env.under(both(env.when, and_(*(condition for _, condition in pre))))
    return env.bind(each.variable, StreamNodes(source.path, input=own.base.input))


def window_annotation(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> WindowAnnotation | None:
    """The window of a loop over items, one of a single item where it has none; None where there is no rule for it."""
    conditions = conditions_at_nodes(source, env.names, found.aggregate)
    if conditions is None or len(source.path) != ITEM:
        return None
    pre = and_(*(condition for _, condition in conditions))
    match each.window:
        case None:
            return WindowAnnotation(source.path, Extent(Fraction(1), Fraction(1)), None, pre)
        case ast.CountWindow():
            return count_window(each.window, source.path, pre)
        case ast.TimeWindow():
            return time_window(each.window, source.path, pre)
        case ast.SessionWindow():
            return None


def count_window(window: ast.CountWindow, item: Steps, pre: Predicate) -> WindowAnnotation:
    """Rule (4): a count window has no reference element.

    for $w in stream("s")/r/i[k = "u"]|count 4 step 2| return <o>{ $w/a }</o>
    ->
    r
      i  ω |count 4 step 2|, pre-σ k = 'u'
        a •
        k
    """
    return WindowAnnotation(item, _extent(window), None, pre)


def time_window(window: ast.TimeWindow, item: Steps, pre: Predicate) -> WindowAnnotation | None:
    """Rule (5): a time window has a reference element; None where that is no plain path below the item.

    None also where a size is a duration: its length in units of the reference depends on the stream.

    for $w in stream("s")/r/i|t diff 4| return <o>{ $w/a }</o>
    ->
    r
      i  ω |t diff 4 step 4|
        a •
        t
    """
    if isinstance(window.size, ast.Duration) or isinstance(window.step, ast.Duration):
        return None
    reference = _reference(window.reference, item)
    return None if reference is None else WindowAnnotation(item, _extent(window), reference, pre)


def let(each: ast.Let, env: Environment, found: Findings) -> Environment:
    """Rule (6): a variable stands for an aggregate, which is annotated; or it names a path, which adds nothing.

    for $w in stream("s")/r/i|count 2| let $a := avg($w/c[x > 1]/y) return <o>{ $a }</o>
    ->
    r
      i  ω |count 2 step 2|
        c
          x
          y  γ avg(c[x > 1]/y) •
    """
    aggregate = found.aggregate(each.value, env.names)
    if aggregate is not None:
        return env.bind(each.variable, aggregate)
    named = locate(each.value, env.names)
    if named is not None and named.complete and not named.from_stream and not named.tails:
        return env.bind(each.variable, replace(named.base, path=named.path))
    touch(each.value, env, found)
    return env.bind(each.variable, OpaqueValue())


def where(condition: ast.Expression, env: Environment, found: Findings, *, of_window: bool) -> Environment:
    """The environment behind a `where`: the selection of what is returned.

    In a window query, conjuncts that name an aggregate select what is returned; the others speak of the window alone,
    and become its postselection (rules (4) and (5)).
    In a join the variables are items (LAWS 3.4), so all of its `where` selects what is returned.

    for $w in stream("s")/r/i|count 2| let $m := max($w/a) where $m > 3 and $w/b > 1 return $m
    ->
    r
      i  ω |count 2 step 2|, post-σ b > 1
        a  γ max(a) •, σ max(a) > 3
        b •
    """
    known = understand(condition, env.names, found.aggregate)
    if found.window is None or not of_window:
        return under(known, env, found)
    about_values = [each for each in conjuncts(known.predicate) if any(map(is_value, terms(each)))]
    post = and_(*(each for each in conjuncts(known.predicate) if each not in about_values))
    found.window = replace(found.window, post=both(found.window.post, post))
    for term, _ in looked_at(post):
        found.output(term.path.steps, EVERYTHING)
    return under(Understood(and_(*about_values), False, known.rest), env, found)


# --- conditions -----------------------------------------------------------------------------------------------


def under(known: Understood, env: Environment, found: Findings) -> Environment:
    """The environment inside a condition; elements that it looks at are needed: subscribers evaluate it again."""
    inner = both(env.when, known.predicate)
    for term, needed in looked_at(inner):
        if is_value(term):
            found.select(next(each for each in found.aggregates if each.term == term), needed)
        else:
            found.output(term.path.steps, needed, input=term.input)
    for each in known.rest:
        touch(each, env.under(positive_part(inner)), found)
    return env.under(inner)


def along(source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """The environment behind the predicates of a path."""
    for inside, known in conditions_on_way(source, env.names, found.aggregate):
        env = env.under(under(known, replace(env, names=inside), found).when)
    return env


def rounds(expression: ast.Expression, env: Environment) -> Iterator[StreamNodes]:
    """The elements of loops that must be sent so that an expression is evaluated once for each of them."""
    match expression:
        case ast.Sequence() | ast.If() | ast.Flwor():
            return  # their parts are asked one by one
        case ast.Path() | ast.Filter() | ast.Variable() if at := locate(expression, env.names):
            for each in env.loops:  # an element that is above what is returned comes along with it
                if each.input != at.base.input or at.path[: len(each.path)] != each.path:
                    yield each
        case ast.Source() if locate(expression, env.names):
            return
        case ast.Variable(name) if not isinstance(env.names.get(name), OpaqueValue):
            return
        case _:
            yield from env.loops


Rule = Callable[[Any, Environment, Findings], None]

RULES: Mapping[type, Rule] = {
    ast.ElementConstructor: constructor,  # rules (1) and (2)
    ast.Flwor: flwor,  # rules (3) to (6)
    ast.If: conditional,  # rule (7)
    ast.Path: path,  # rule (8)
    ast.Filter: path,
    ast.Variable: variable,  # rule (9)
    ast.Sequence: sequence,  # rule (10)
}
"""The rule for each kind of expression; all others are touched."""


# --- what clauses are by themselves -----------------------------------------------------------------------------


def input_name(number: int) -> str:
    """The name of an input of a forest in conditions: `$1`, `$2` and so on, in the order of the loops."""
    return f"${number + 1}"


def _is_over_stream(each: ast.For | ast.Let, names: Names) -> bool:
    """Whether a clause loops over a stream, and not over elements of an item."""
    source = locate(each.source, names) if isinstance(each, ast.For) else None
    return source is not None and source.from_stream


def _aggregates(variable: str, rest: Any) -> bool:
    """Whether an aggregate is taken over the item of each round."""
    for part in parts(rest):
        match part:
            case ast.Call(name, (ast.Variable(start) | ast.Path(ast.Variable(start)),)):
                if start == variable and name.removeprefix("fn:") in AGGREGATES:
                    return True
    return False


def _reference(reference: ast.Path, item: Steps) -> Steps | None:
    """The absolute path of a window's reference element; None where it is no plain path below the item."""
    start = ast.Source("stream", "") if isinstance(reference.start, ast.Root) else None
    at = locate(replace(reference, start=start), {CONTEXT: StreamNodes(item)})
    plain = at is not None and at.complete and not at.tails and at.path[: len(item)] == item
    return at.path if at is not None and plain else None


def _extent(window: ast.CountWindow | ast.TimeWindow) -> Extent:
    size, step = window.size, window.step or window.size
    return Extent(size.exact, step.exact)
