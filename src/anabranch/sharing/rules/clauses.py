"""What the clauses of loops bind and need: rules (3) to (6) of the sharing paper, and (13) to (15) for joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anabranch.aggregates import AGGREGATES
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.predicate import EVERYTHING, and_, terms
from anabranch.sharing.rules.conditions import (
    LocatedPath,
    Names,
    OpaqueValue,
    StreamNodes,
    Understood,
    conditions_at_nodes,
    locate,
    understand,
)
from anabranch.sharing.rules.findings import Environment, Findings, along, touch, under
from anabranch.sharing.rules.windows import reference_path, window_annotation
from anabranch.sharing.tree import ITEM, both, conjuncts, is_value, looked_at


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
    if env.apart:
        return for_apart(each, source, env, found)
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
            measured = [reference]
        case ast.SessionWindow(reference, by=ast.Path() as key):
            measured = [reference, key]
        case _:
            measured = []
    for path in measured:
        found.output(reference_path(path, source.path) or source.path, env.when, input=source.base.input)
    return env.bind(each.variable, StreamNodes(source.path, False, usable=False, input=source.base.input))


def for_apart(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rule (3) for one of several loops of which nothing is known how their items meet.

    Conditions of this input alone hold for each of its items; those that name others are left to the subscriber.
    A key that may raise does so whatever the rest of the condition says (LAWS 3.5), and whether selected or not, an
    item advances the windows of a step join.

    for $x in stream("s")/r/i[a > 1], $y in stream("u")/r/i where $x/k = $y/k and $y/b > 2 return $x/c
    ->
    s
      r
        i  σ a > 1
          a •
          c •
          k •
    u
      r
        i  σ b > 2
          b •
          k •
    """
    name = input_name(len(found.apart))
    found.apart[name] = source.base.input
    own = replace(source, base=replace(source.base, input=name))
    if each.window is None:
        env = along(own, env, found)
        return env.bind(each.variable, StreamNodes(own.path, len(own.path) == ITEM, input=name))
    env = for_window(each, own, env, found)
    if isinstance(each.window, ast.TimeWindow):
        found.output(reference_path(each.window.reference, own.path) or own.path, EVERYTHING, input=name)
    return env


def for_join(each: ast.For, source: LocatedPath, env: Environment, found: Findings) -> Environment:
    """Rules (13) to (15): each loop of a join has a tree of its own, also where two are over the same stream.

    Without windows a preselection is one more condition on tuples, which gives the same answers.
    What fails is not the same (LAWS 2.4): where it raises, it would for each tuple and not once for the item, or not at
    all if another condition is false; and an item that it leaves out would be asked for its time.

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
    if pre is not None and window is None:
        asked = and_(*(condition for _, condition in pre))
        found.unfit(unless=not found.letters or asked == EVERYTHING)
        env = env.under(both(env.when, asked))  # asked of each item before it meets others, so not asked again
    return env.bind(each.variable, StreamNodes(source.path, input=own.base.input))


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


def input_name(number: int) -> str:
    """The name of an input of a forest in conditions: `$1`, `$2` and so on, in the order of the loops."""
    return f"${number + 1}"


def is_over_stream(each: ast.For | ast.Let, names: Names) -> bool:
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
