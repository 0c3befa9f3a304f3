"""Tree to query text, so that `parse(print_query(q)) == q`.

Parentheses stand only where the grammar needs them; white space inside constructors that would be taken for layout
is written as character references.
"""

from __future__ import annotations

import re

from anabranch.language import ast
from anabranch.language.objects import JSON, POSTFIX
from anabranch.language.operators import INFIX, TYPE_OPERATORS, Level

_KEY = re.compile(r"[^\W\d][\w\-]*\Z")
"""A key that needs no quotes; one with a dot would be two."""

# How tightly an expression binds; an operand that binds looser than its place asks for gets parentheses.
_LOOSE, _OR, _AND, _COMPARISON, _RANGE, _ADDITIVE, _MULTIPLICATIVE, _UNION, _INTERSECT = range(9)
_INSTANCE, _TREAT, _CASTABLE, _CAST, _UNARY, _PATH, _PRIMARY = range(9, 16)
_LEVELS: dict[Level, int] = {
    "comparison": _COMPARISON,
    "range": _RANGE,
    "multiplicative": _MULTIPLICATIVE,
    "union": _UNION,
    "intersect": _INTERSECT,
    "instance": _INSTANCE,
    "treat": _TREAT,
}
_LONE_SLASH = -1  # `/ name` would be read as a path, so a lone slash always stands in parentheses


_CONSTRUCTORS = tuple(
    f"op:{kind}" for kind in ("element", "attribute", "processing-instruction", "text", "comment", "document")
)


def print_query(query: ast.Query) -> str:
    """The whole query, prolog first."""
    lines: list[str] = []
    for prefix, uri in query.namespaces:
        lines.append(f"declare {f'namespace {prefix} =' if prefix else 'default element namespace'} {_string(uri)};")
    for function in query.functions:
        parameters = ", ".join(f"${each}" for each in function.parameters)
        lines.append(f"declare function {function.name}({parameters}) {{ {print_expression(function.body)} }};")
    return "\n".join((*lines, print_expression(query.body)))


def print_expression(expression: ast.Expression) -> str:
    """One expression, as it would stand between braces."""
    return _at(_LOOSE, expression)


def _at(place: int, expression: ast.Expression) -> str:
    binding, text = _print(expression)
    return text if binding >= place else f"({text})"


def _print(expression: ast.Expression) -> tuple[int, str]:
    match expression:
        case ast.String(value):
            return _PRIMARY, _string(value)
        case ast.Number(text):
            return _PRIMARY, text
        case ast.Variable(name):
            return _PRIMARY, f"${name}"
        case ast.ContextItem():
            return _PRIMARY, "."
        case ast.Source(kind, name):
            return _PRIMARY, f"{kind}({_string(name)})"
        case ast.Sequence(items):
            return _PRIMARY, f"({', '.join(map(print_expression, items))})"
        case ast.Call(name, (left, right)) if name in INFIX:
            operator, level = INFIX[name].word, _LEVELS[INFIX[name].level]
            return level, f"{_at(level + 1, left)} {operator} {_at(level + 1, right)}"
        case ast.Call(name, (operand, ast.String(text))) if name in TYPE_OPERATORS:
            level = _LEVELS[TYPE_OPERATORS[name].level]
            # Parenthesized in a sum or product: a `+` or `*` behind a type would be read as its occurrence indicator.
            return _RANGE, f"{_at(level + 1, operand)} {TYPE_OPERATORS[name].word} {text}"
        case ast.Call("op:call", (function, *given)):
            return _PRIMARY, f"({print_expression(function)})({', '.join(map(print_expression, given))})"
        case ast.Call("op:try", (ast.InlineFunction(_, body), *catches)):
            return _LOOSE, f"try {{ {print_expression(body)} }}{_catches(catches)}"
        case ast.Call(name, arguments) if name in _CONSTRUCTORS:
            named = f" {{ {print_expression(arguments[0])} }}" if len(arguments) > 1 else ""
            return _PRIMARY, f"{name[3:]}{named} {{ {print_expression(arguments[-1])} }}"
        case ast.Call(name, arguments) if name in JSON:
            return _PRIMARY, _json(name, arguments)
        case ast.Call(name, arguments):
            return _PRIMARY, f"{name}({', '.join(map(print_expression, arguments))})"
        case ast.InlineFunction(parameters, body):
            names = ", ".join(f"${each}" for each in parameters)
            return _PRIMARY, f"function({names}) {{ {print_expression(body)} }}"
        case ast.ElementConstructor():
            return _PRIMARY, _element(expression)
        case ast.Filter(base, tail):
            return _PATH, _at(_PRIMARY, base) + _tail(tail)
        case ast.Root():
            return _LONE_SLASH, "/"
        case ast.Path():
            return _PATH, print_path(expression)
        case ast.Negation(operand):
            return _UNARY, "-" + _at(_UNARY, operand)
        case ast.Cast(kind, operand, name, optional):
            level = _CAST if kind == "cast" else _CASTABLE
            return level, f"{_at(level + 1, operand)} {kind} as {name}{'?' if optional else ''}"
        case ast.Arithmetic(first, rest):
            level = _ADDITIVE if rest[0][0] in ("+", "-") else _MULTIPLICATIVE
            return level, _at(level + 1, first) + "".join(f" {op} {_at(level + 1, each)}" for op, each in rest)
        case ast.Comparison(operator, left, right):
            return _COMPARISON, f"{_at(_RANGE, left)} {operator} {_at(_RANGE, right)}"
        case ast.And(operands):
            return _AND, " and ".join(_at(_COMPARISON, each) for each in operands)
        case ast.Or(operands):
            return _OR, " or ".join(_at(_AND, each) for each in operands)
        case ast.If(condition, then, otherwise):
            parts = map(print_expression, (condition, then, otherwise))
            return _LOOSE, "if ({}) then {} else {}".format(*parts)
        case ast.Quantified(kind, bindings, condition):
            ranges = ", ".join(f"${name} in {print_expression(each)}" for name, each in bindings)
            return _LOOSE, f"{kind} {ranges} satisfies {print_expression(condition)}"
        case ast.Flwor():
            return _LOOSE, _flwor(expression)
        case ast.Pipeline(clauses, result):
            return _LOOSE, " ".join((*map(_clause, clauses), f"return {print_expression(result)}"))


def _catches(catches: list[ast.Expression]) -> str:
    """The clauses behind a `try`: codes and bodies, by turns."""
    text = ""
    for codes, body in zip(catches[::2], catches[1::2], strict=True):
        assert isinstance(codes, ast.String)
        assert isinstance(body, ast.InlineFunction)
        text += f" catch {codes.value.replace(' ', ' | ')} {{ {print_expression(body.body)} }}"
    return text


def _flwor(flwor: ast.Flwor) -> str:
    clauses: list[ast.Clause] = list(flwor.clauses)
    if flwor.where is not None:
        clauses.append(ast.Where(flwor.where))
    if flwor.order:
        clauses.append(ast.OrderBy(flwor.order))
    return " ".join((*map(_clause, clauses), f"return {print_expression(flwor.result)}"))


def _clause(clause: ast.Clause) -> str:
    match clause:
        case ast.For(variable, source, window):
            if window is None:
                return f"for ${variable} in {print_expression(source)}"
            return f"for ${variable} in {_at(_OR, source)}{print_window(window)}"
        case ast.PositionalFor(variable, position, source, allows_empty):
            more = (" allowing empty" if allows_empty else "") + ("" if position is None else f" at ${position}")
            return f"for ${variable}{more} in {print_expression(source)}"
        case ast.Let(variable, value):
            return f"let ${variable} := {print_expression(value)}"
        case ast.Where(condition):
            return f"where {print_expression(condition)}"
        case ast.Count(variable):
            return f"count ${variable}"
        case ast.OrderBy(order):
            keys = (f"{print_expression(k.key)}{' descending' if k.descending else ''}" for k in order)
            return f"order by {', '.join(keys)}"
        case ast.GroupBy(groups):
            return f"group by {', '.join(map(_group_key, groups))}"


def _group_key(key: ast.GroupKey) -> str:
    return f"${key.variable}" + ("" if key.value is None else f" := {print_expression(key.value)}")


def print_window(window: ast.Window) -> str:
    """A window with its bars."""
    match window:
        case ast.CountWindow(size, step):
            return f"|count {size.text}{_window_step(step)}|"
        case ast.TimeWindow(reference, size, step):
            return f"|{print_path(reference)} diff {size.text}{_window_step(step)}|"
        case ast.SessionWindow(reference, gap, by):
            key = "" if by is None else f" by {print_path(by)}"
            return f"|{print_path(reference)} gap {gap.text}{key}|"


def _window_step(step: ast.Amount | None) -> str:
    return "" if step is None else f" step {step.text}"


# --- paths ------------------------------------------------------------------------------------------------


def print_path(path: ast.Path) -> str:
    """A path with all its steps."""
    match path.start:
        case None:
            return _steps(path.steps).removeprefix("/")
        case ast.Root():
            return _steps(path.steps)
        case ast.Filter():
            return _at(_PATH, path.start) + _steps(path.steps)
        case start:
            return _at(_PRIMARY, start) + _steps(path.steps)


def _steps(steps: tuple[ast.Step, ...]) -> str:
    return "".join(f"{'//' if step.deep else '/'}{_step(step)}" for step in steps)


def _step(step: ast.Step) -> str:
    match step.axis, step.test:
        case "parent", ast.KindTest("node"):
            text = ".."
        case "child", test:
            text = _test(test)
        case "attribute", test:
            text = "@" + _test(test)
        case axis, test:
            text = f"{axis}::{_test(test)}"
    return text + _tail(step.tail)


def _test(test: ast.NameTest | ast.KindTest) -> str:
    match test:
        case ast.KindTest(kind, name):
            return f"{kind}({name or ''})"
        case ast.NameTest(local, None):
            return local
        case ast.NameTest(local, prefix):
            return f"{prefix}:{local}"


def _tail(tail: tuple[ast.Tail, ...]) -> str:
    text = ""
    for part in tail:
        match part:
            case ast.Predicate(condition) | ast.Positional(condition):
                text += f"[{print_expression(condition)}]"
            case ast.Qualifier(kind, window, amount):
                text += f"{'#' if kind == 'version' else '?'}{f'[{amount.text}]' if window else amount.text}"
    return text


# --- objects and arrays -----------------------------------------------------------------------------------


def _json(name: str, arguments: tuple[ast.Expression, ...]) -> str:
    written = [print_expression(each) for each in arguments]
    if name in POSTFIX:
        match arguments[0]:
            case ast.Variable() | ast.Call():
                base = written[0]
            case _:
                base = f"({written[0]})"
        match name, arguments[1:]:
            case "op:lookup", (ast.String(key),):
                return f"{base}.{key if _KEY.match(key) else _string(key)}"
            case "op:members", _:
                return f"{base}[]"
            case "op:member", _:
                return f"{base}[[{written[1]}]]"
            case _:
                return f"{base}({written[1]})"
    match name:
        case "op:object":
            pairs = zip(arguments[::2], written[::2], written[1::2], strict=True)
            return "{ " + ", ".join(f"{_object_key(key, text)}: {value}" for key, text, value in pairs) + " }"
        case "op:array":
            return f"[{', '.join(written)}]"
        case _:
            return f"array {{ {'' if arguments[0] == ast.Sequence(()) else written[0]} }}"


def _object_key(key: ast.Expression, text: str) -> str:
    return text if isinstance(key, ast.String) else f"({text})"


# --- constructors -----------------------------------------------------------------------------------------


def _element(element: ast.ElementConstructor) -> str:
    head = element.name
    for prefix, uri in element.namespaces:
        head += f' {f"xmlns:{prefix}" if prefix else "xmlns"}="{_braces(_attribute_text(uri))}"'
    for attribute in element.attributes:
        head += f' {attribute.name}="{"".join(map(_attribute_part, attribute.value))}"'
    if not element.content:
        return f"<{head}/>"
    return f"<{head}>{''.join(map(_content, element.content))}</{element.name}>"


def _content(part: ast.Content) -> str:
    match part:
        case ast.Characters(value):
            if not value.strip(" \t\r\n"):
                return "".join(f"&#{ord(each)};" for each in value)
            return _braces(_escape(value)).replace("\r", "&#xD;")
        case ast.Enclosed(value):
            return f"{{ {print_expression(value)} }}"
        case ast.CommentConstructor(value):
            return f"<!--{value}-->"
        case ast.ElementConstructor():
            return _element(part)


def _attribute_part(part: ast.Characters | ast.Enclosed) -> str:
    match part:
        case ast.Characters(value):
            return _braces(_attribute_text(value))
        case ast.Enclosed(value):
            return f"{{ {print_expression(value)} }}"


def _attribute_text(value: str) -> str:
    escaped = _escape(value).replace('"', "&quot;")
    return escaped.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def _string(value: str) -> str:
    return '"' + value.replace("&", "&amp;").replace('"', '""').replace("\r", "&#xD;") + '"'


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _braces(value: str) -> str:
    return value.replace("{", "{{").replace("}", "}}")
