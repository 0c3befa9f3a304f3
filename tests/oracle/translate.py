"""A query as standard XQuery 3.1, written from LAWS 1 to 3 and nothing else.

Most of the language is XQuery and is written out as it stands; what the laws add is spelled out with the functions
of `laws.xq`: sums, comparisons, three-valued conditions, windows and movements of joins.
A dynamic error concerns one item, window or pair (LAWS 2.4), so an expression with a `for` over a stream evaluates
each of these, its *unit*, inside a `try` of its own.
The translation never looks at the evaluators it judges, nor do they look at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path as File

from anabranch.language import ast
from anabranch.language.operators import INFIX

LAWS = (File(__file__).parent / "laws.xq").read_text(encoding="utf-8")

_NAMESPACES = {
    "o": "urn:anabranch:oracle",
    "map": "http://www.w3.org/2005/xpath-functions/map",
    "array": "http://www.w3.org/2005/xpath-functions/array",
    "math": "http://www.w3.org/2005/xpath-functions/math",
    "err": "http://www.w3.org/2005/xqt-errors",
}
# These may stop before they have seen all of their argument, and would then miss an error in it.
_HASTY = ("exists", "empty", "not", "boolean")


def translate(query: ast.Query, inputs: Iterable[str], times: Mapping[str, str] | None = None) -> str:
    """The query as XQuery, with each input a document in `$input.NAME`; `times` are the streams' time paths.

    `NAME.1`, `NAME.2` are further partitions of the stream `NAME`.
    """
    partitions: dict[str, list[str]] = {}
    for name in inputs:
        partitions.setdefault(name.partition(".")[0], []).append(name)
    prolog = [
        'xquery version "3.1";',
        "declare boundary-space preserve;",
        *(f"declare namespace {prefix} = {string(uri)};" for prefix, uri in _NAMESPACES.items()),
    ]
    for prefix, uri in query.namespaces:
        prolog.append(f"declare {f'namespace {prefix} =' if prefix else 'default element namespace'} {string(uri)};")
    prolog += (f"declare variable $input.{name} external;" for each in partitions.values() for name in each)
    for name, parts in partitions.items():
        documents, time = ", ".join(f"$input.{each}" for each in parts), _time((times or {}).get(name))
        prolog.append(f"declare variable $merged.{name} := o:merged(({documents}), {time});")
        prolog.append(f"declare variable $items.{name} := o:one($input.{name}/*, $merged.{name})/*/*;")
    translation = Translation(times or {}, {name: len(parts) for name, parts in partitions.items()})
    functions = (
        f"declare function {each.name}({', '.join(f'${name}' for name in each.parameters)}) "
        f"{{ {translation.expression(each.body)} }};"
        for each in query.functions
    )
    # The body is handed over in an element, so that neighbouring atomic values are joined as in any content.
    body = f'o:plain(element {{ QName("", "answer") }} {{ {translation.expression(query.body)} }})'
    return "\n".join((*prolog, LAWS, *functions, body))


@dataclass(frozen=True)
class Translation:
    times: Mapping[str, str]
    partitions: Mapping[str, int]

    # --- expressions --------------------------------------------------------------------------------------

    def expression(self, expression: ast.Expression) -> str:
        match expression:
            case ast.String(value):
                return string(value)
            case ast.Number(text):
                return text
            case ast.Variable(name):
                return f"${name}"
            case ast.ContextItem():
                return "."
            case ast.Root():
                return "(/)"
            case ast.Source(_, name):
                return f"$input.{name}"
            case ast.Sequence(items):
                return f"({', '.join(map(self.expression, items))})"
            case ast.Call(name, arguments):
                return self.call(name, arguments)
            case ast.InlineFunction(parameters, body):
                names = ", ".join(f"${each}" for each in parameters)
                return f"function({names}) {{ {self.expression(body)} }}"
            case ast.Filter(base, tail):
                return f"({self.expression(base)}){self.tail(tail)}"
            case ast.Path(start, steps):
                return self.path(start, steps)
            case ast.Arithmetic(first, rest):
                return f"({self.expression(first)}{''.join(f' {op} {self.expression(each)}' for op, each in rest)})"
            case ast.Negation(operand):
                return f"(-{self.expression(operand)})"
            case ast.Cast(kind, operand, name, optional):
                return f"({self.expression(operand)} {kind} as {name}{'?' if optional else ''})"
            case ast.Comparison(operator, left, right):
                return f"o:holds({string(operator)}, {self.operand(left)}, {self.operand(right)})"
            case ast.And(operands):
                return f"o:every(({', '.join(map(self.judged, operands))}))"
            case ast.Or(operands):
                return f"o:some(({', '.join(map(self.judged, operands))}))"
            case ast.If(condition, then, otherwise):
                branches = f"then {self.expression(then)} else {self.expression(otherwise)}"
                return f"(if ({self.condition(condition)}) {branches})"
            case ast.Quantified(kind, bindings, condition):
                ranges = " ".join(f"for ${name} in {self.expression(each)}" for name, each in bindings)
                return f"o:{kind}({ranges} return {self.judged(condition)})"
            case ast.Flwor():
                return f"({self.flwor(expression)})"
            case ast.Pipeline():
                return f"({self.pipeline(expression)})"
            case ast.ElementConstructor():
                return self.element(expression)

    def call(self, name: str, arguments: tuple[ast.Expression, ...]) -> str:
        if name.startswith("op:"):
            return self.operator(name, arguments)
        given = list(map(self.argument, arguments))
        name = name.removeprefix("fn:")
        if name in ("sum", "avg", "median", "stddev"):
            name = f"o:{name}"
        elif name in ("min", "max"):
            given = [f"o:ordered({each})" for each in given]
        elif name in _HASTY:
            given = [f"o:all({each})" for each in given]
        return f"{name}({', '.join(given)})"

    def operator(self, name: str, arguments: tuple[ast.Expression, ...]) -> str:
        """An operator that is a call in the tree, as XQuery writes it."""
        match name, arguments:
            case "op:try", (ast.InlineFunction(_, body), *catches):
                text = f"try {{ o:all({self.expression(body)}) }}"  # all of it, before anything else
                for codes, handler in zip(catches[::2], catches[1::2], strict=True):
                    assert isinstance(codes, ast.String)
                    assert isinstance(handler, ast.InlineFunction)
                    text += f" catch {codes.value.replace(' ', ' | ')} {{ {self.expression(handler.body)} }}"
                return f"({text})"
            case "op:call", (function, *given):
                return f"({self.expression(function)})({', '.join(map(self.expression, given))})"
            case (("op:instance" | "op:treat"), (operand, ast.String(kind))):
                return f"({self.expression(operand)} {'instance of' if name == 'op:instance' else 'treat as'} {kind})"
            case "op:in-order", (operand,):  # a path of one step more, which gives each node once and in order
                return f"o:in-order({self.expression(operand)})"
            case "op:convert", (operand, ast.String(kind)):
                return f"(function($o:value as {kind}) {{ $o:value }})({self.expression(operand)})"
            case "op:typed", (operand, ast.String(kind)):
                return f"(let $o:value as {kind} := {self.expression(operand)} return $o:value)"
            case "op:nodes", (operand,):
                return self.expression(operand)
            case "op:empty-rank", (operand,):
                return f"o:empty-rank({self.expression(operand)})"
            case _, (one, other) if name in INFIX:
                return f"({self.expression(one)} {INFIX[name].word} {self.expression(other)})"
            case _, (content,):
                return f"{name[3:]} {{ {self.expression(content)} }}"
            case _, (named, content):
                return f"{name[3:]} {{ {self.expression(named)} }} {{ {self.expression(content)} }}"
        raise AssertionError(name)

    def argument(self, expression: ast.Expression) -> str:
        return self.expression(expression)

    def operand(self, expression: ast.Expression) -> str:
        """One side of a comparison: a literal counts with its exact value, also if it is a double (LAWS 2.3)."""
        match expression:
            case ast.Number(text):
                return format(Decimal(text), "f")
            case ast.Negation(operand):
                return f"(-{self.operand(operand)})"
            case _:
                return self.expression(expression)

    def condition(self, expression: ast.Expression) -> str:
        return f"boolean(o:all({self.expression(expression)}))"

    def judged(self, expression: ast.Expression) -> str:
        return f'(try {{ string({self.condition(expression)}) }} catch * {{ "error" }})'

    # --- paths --------------------------------------------------------------------------------------------

    def path(self, start: ast.Expression | None, steps: tuple[ast.Step, ...]) -> str:
        match start:
            case None:
                return f"({self.steps(steps).removeprefix('/')})"
            case ast.Root():
                return f"({self.steps(steps)})"
            case ast.Source("stream", name) if _below_items(steps):
                each = f"try {{ {self.within('$o:item', steps)} }} catch * {{ () }}"
                return f"(for $o:item in $items.{name} return {each})"
            case _:
                return f"({self.expression(start)}{self.steps(steps)})"

    def steps(self, steps: tuple[ast.Step, ...]) -> str:
        return "".join(f"{'//' if each.deep else '/'}{self.step(each, each.axis)}" for each in steps)

    def step(self, step: ast.Step, axis: str) -> str:
        return f"{axis}::{test(step.test)}{self.tail(step.tail)}"

    def tail(self, tail: tuple[ast.Tail, ...]) -> str:
        text = ""
        for each in tail:
            assert not isinstance(each, ast.Qualifier), "temporal qualifiers are not Saxon's to judge"
            is_position = isinstance(each, ast.Positional)
            text += f"[{(self.expression if is_position else self.condition)(each.condition)}]"
        return text

    def within(self, item: str, steps: tuple[ast.Step, ...]) -> str:
        """A path from a stream's document, as seen from one item: a child of the root element."""
        if steps[0].deep:
            return f"{item}/{self.step(steps[0], 'descendant-or-self')}{self.steps(steps[1:])}"
        axis = "descendant-or-self" if steps[1].deep else "self"
        return f"{item}[{self.step(steps[0], 'parent')}]/{self.step(steps[1], axis)}{self.steps(steps[2:])}"

    # --- FLWR ---------------------------------------------------------------------------------------------

    def flwor(self, flwor: ast.Flwor) -> str:
        """What stands before the first `for` over a stream; the units; and the rest, tried for each unit.

        A tuple is an array of its keys and its result, so that sorting comes after the errors are gone.
        """
        feeds = [feed for feed in map(_feed, flwor.clauses) if feed]
        before = flwor.clauses.index(feeds[0].clause) if feeds else 0
        outside = [*map(self.clause, flwor.clauses[:before]), *self.units(feeds)]
        windowed = [feed.clause for feed in feeds if feed.clause.window]
        inside = ["let $o:unit := ()"]  # a beginning, where all clauses of the query are outside
        inside += (self.clause(clause) for clause in flwor.clauses[before:] if clause not in windowed)
        if flwor.where is not None:
            inside.append(f"where {self.condition(flwor.where)}")
        keys = "".join(f"zero-or-one(data({self.expression(each.key)})), " for each in flwor.order)
        tuples = f"{' '.join(inside)} return [{keys}{self.expression(flwor.result)}]"
        if feeds:
            tuples = f"{' '.join(outside)} return try {{ {tuples} }} catch * {{ () }}"
        return f"for $o:tuple in ({tuples}) {order(flwor.order)} return $o:tuple?{len(flwor.order) + 1}"

    def clause(self, clause: ast.For | ast.Let) -> str:
        match clause, _feed(clause):
            case ast.Let(variable, value), _:
                return f"let ${variable} := {self.expression(value)}"
            case ast.For(variable), _Feed(steps=steps):
                return f"for ${variable} in {self.within(f'$o:{variable}', steps)}"
            case ast.For(variable, source), _:
                return f"for ${variable} in {self.expression(source)}"
        raise AssertionError(clause)

    def pipeline(self, pipeline: ast.Pipeline) -> str:
        """Clauses as they stand; an item of a stream or of a window whose key raises is no part of any group."""
        of_items = any(
            _feed(each) or isinstance(each.source, ast.Variable)
            for each in pipeline.clauses
            if isinstance(each, ast.For)
        )
        clauses = "".join(f"{self.pipeline_clause(each, of_items)} " for each in pipeline.clauses)
        return f"{clauses}return {self.expression(pipeline.result)}"

    def pipeline_clause(self, clause: ast.Clause, of_items: bool) -> str:
        match clause:
            case ast.For() | ast.Let():
                feed = _feed(clause)
                units = f"{' '.join(self.units([feed]))} " if feed else ""
                return units + self.clause(clause)
            case ast.PositionalFor(variable, position, source, allows_empty):
                more = (" allowing empty" if allows_empty else "") + ("" if position is None else f" at ${position}")
                return f"for ${variable}{more} in {self.expression(source)}"
            case ast.Where(condition):
                return f"where {self.condition(condition)}"
            case ast.Count(variable):
                return f"count ${variable}"
            case ast.OrderBy(keys):
                ranked = ((f"zero-or-one(data({self.argument(each.key)}))", each.descending) for each in keys)
                parts = (
                    f"o:{part}({key}){' descending' if descending else ''}"
                    for key, descending in ranked
                    for part in ("place", "size", "spelling")
                )
                return f"stable order by {', '.join(parts)}"
            case ast.GroupBy(keys):
                judged = " ".join(self.judged_key(each, of_items) for each in keys)
                named = ", ".join(map(self.key, keys))
                # XQuery leaves the order of groups open, LAWS 3.8 does not
                return f"{judged} count $o:place group by {named} order by min($o:place)"

    def judged_key(self, key: ast.GroupKey, of_items: bool) -> str:
        value = f"${key.variable}" if key.value is None else self.argument(key.value)
        whole = f"[zero-or-one(data({value}))]"
        if of_items:
            whole = f"try {{ {whole} }} catch * {{ () }}"
        return f"let $o:key.{key.variable} := {whole} where exists($o:key.{key.variable})"

    def key(self, key: ast.GroupKey) -> str:
        return f"${key.variable} := $o:key.{key.variable}?1"

    def units(self, feeds: list[_Feed]) -> list[str]:
        """The clauses that run through the items of a stream, through its windows, or through the pairs of a join."""
        if not any(feed.clause.window for feed in feeds):
            return [f"for $o:{feed.clause.variable} in $items.{feed.stream}" for feed in feeds]
        if len(feeds) == 1:
            return [
                f"for $o:window in o:windows({self.window(feeds[0], 1)})",
                f"let ${feeds[0].clause.variable} := $o:window?*",
            ]
        names = [feed.stream for feed in feeds]
        sides = (self.window(feed, names.index(feed.stream)) for feed in feeds)
        pairs = (f"for ${feed.clause.variable} in $o:move?{side}" for side, feed in enumerate(feeds, 1))
        return [f"for $o:move in o:movements(({', '.join(sides)}))", *pairs]

    def window(self, feed: _Feed, rank: int) -> str:
        """What `laws.xq` has to know of a window; `rank` decides ties between streams (LAWS 1.2)."""
        window = feed.clause.window
        assert isinstance(window, ast.CountWindow | ast.TimeWindow)
        reference = "()"
        if isinstance(window, ast.TimeWindow):
            steps = window.reference.steps
            # An absolute reference names the root element and the item first.
            reference = f"$o:item{self.steps(steps[2:] if isinstance(window.reference.start, ast.Root) else steps)}"
        entries = {
            "items": f"$items.{feed.stream}",
            "partition": f"$merged.{feed.stream}?rank",
            "partitions": str(self.partitions[feed.stream]),
            "stream": str(rank),
            "timed": f"{str(isinstance(window, ast.TimeWindow)).lower()}()",
            "size": window.size.text,
            "step": (window.step or window.size).text,
            "choose": f"function($o:item) {{ {self.within('$o:item', feed.steps)} }}",
            "reference": f"function($o:item) {{ {reference} }}",
            "time": _time(self.times.get(feed.stream)),
        }
        return f"map {{ {', '.join(f'{string(key)}: {value}' for key, value in entries.items())} }}"

    # --- constructors -------------------------------------------------------------------------------------

    def element(self, element: ast.ElementConstructor) -> str:
        head = element.name
        for prefix, uri in element.namespaces:
            head += f' {f"xmlns:{prefix}" if prefix else "xmlns"}="{_literal(uri)}"'
        for attribute in element.attributes:
            head += f' {attribute.name}="{"".join(map(self.content, attribute.value))}"'
        return f"<{head}>{''.join(map(self.content, element.content))}</{element.name}>"

    def content(self, part: ast.Content) -> str:
        match part:
            case ast.Characters(value):
                return _literal(value)
            case ast.Enclosed(value):
                return f"{{ {self.expression(value)} }}"
            case ast.CommentConstructor(value):
                return f"<!--{value}-->"
            case ast.ElementConstructor():
                return self.element(part)


@dataclass(frozen=True)
class _Feed:
    """A `for` over a stream, with the path that leads from the stream's document."""

    clause: ast.For
    stream: str
    steps: tuple[ast.Step, ...]


def _feed(clause: ast.For | ast.Let) -> _Feed | None:
    match clause:
        case ast.For(_, ast.Path(ast.Source("stream", name), steps)) if _below_items(steps):
            return _Feed(clause, name, steps)
    return None


def _below_items(steps: tuple[ast.Step, ...]) -> bool:
    """Whether a path from a stream's document reaches its items, or what is inside them."""
    return len(steps) > 1 or steps[0].deep


def _time(path: str | None) -> str:
    return f"function($o:item) {{ {f'$o:item/{path}' if path else '()'} }}"


def order(keys: tuple[ast.OrderKey, ...]) -> str:
    parts = [
        f"o:{part}($o:tuple?{number}){' descending' if each.descending else ''}"
        for number, each in enumerate(keys, 1)
        for part in ("place", "size", "spelling")
    ]
    return f"stable order by {', '.join(parts)}" if parts else ""


def test(test: ast.NameTest | ast.KindTest) -> str:
    match test:
        case ast.KindTest(kind, name):
            return f"{kind}({name or ''})"
        case ast.NameTest(local, prefix):
            return f"{prefix}:{local}" if prefix else local


def string(value: str) -> str:
    return '"' + value.replace("&", "&amp;").replace('"', '""') + '"'


def _literal(value: str) -> str:
    """Characters inside a constructor; all that has a meaning there becomes a reference."""
    references = {each: f"&#{ord(each)};" for each in "&<>\"'\t\r\n"} | {"{": "{{", "}": "}}"}
    return "".join(references.get(each, each) for each in value)
