"""Run the W3C's test suite for XQuery, QT3, against the law: `python scripts/qt3.py PATH [SET ...]`.

PATH is a checkout of github.com/w3c/qt3tests; it is not part of this repository.
Run are the sets `prod-*`, `fn-*`, `op-*` and `app-XMark`, as far as they need neither a schema, nor a serialization
option, nor anything from outside, nor recursion, and are about types that the language has.
A test is *passed*; or *refused*, where the query is, by name; or it gives an error where one is expected, but of
*another code*; or it *deviates* in what the laws decide otherwise; or it is *wrong*.
A context document is a `doc()`, but for XMark, whose auction is a stream.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as Xml
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from anabranch.errors import AnabranchError, QueryError, Refused
from anabranch.language import ast, check, parse
from anabranch.language.rewrite import parts, with_input
from anabranch.law import Input, document_input, evaluate, text_input
from anabranch.law.construct import content_text
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.library.operators import value_compared
from anabranch.stream.reading.parse import parse_document
from anabranch.values.atomic import spell
from anabranch.values.sequence_types import ATOMIC_TYPES, is_of
from anabranch.values.sequences import Values, atomize

Verdict: TypeAlias = Literal["passed", "refused", "another code", "deviates", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("passed", "refused", "another code", "deviates", "wrong")

QT3 = "{http://www.w3.org/2010/09/qt-fots-catalog}"
_LEFT_OUT_SETS = re.compile(
    r"op-(g|base64|hex|QName|NOTATION|anyURI)"
    r"|fn-(transform|load-xquery-module|collection|uri-collection|unparsed-text|environment-variable|available-env)"
    r"|fn-(doc|json|parse-json|xml-to-json|serialize|parse-xml|random-number|base-uri|static-base-uri|resolve-uri)"
    r"|fn-(document-uri|function-lookup|function-name|function-arity|id|idref|element-with-id|nilled|lang|put)"
    r"|fn-(QName|resolve-QName|node-name|local-name-from-QName|namespace-uri-from-QName|prefix-from-QName)"
    r"|fn-(in-scope-prefixes|namespace-uri-for-prefix|current|implicit-timezone|apply|collation-key)"
    r"|prod-(ModuleImport|SchemaImport|ValidateExpr|OptionDecl|ArrayTest|MapTest|Lookup|UnaryLookup|MapConstructor)"
    r"|prod-(CurlyArray|SquareArray|NamedFunctionRef|WindowClause|ExtensionExpr|StringConstructor|Annotation)"
    r"|prod-(BaseURIDecl|DecimalFormatDecl|ContextItemDecl|VarDecl.external|schema|.*\.schema|.*static-typing)"
)
"""Sets about what is not run here, or has no place here."""
_FEATURES = ("higherOrderFunctions", "moduleImport")
_LEFT_OUT_TYPES = re.compile(r"xs:(QName|NOTATION|hexBinary|base64Binary|g[YMD]\w+)\b")
"""Types that are not for this suite here: a test that names one is not run."""
_OTHER_TYPES = re.compile(
    r"xs:(float|anyURI|duration|normalizedString|token|language"
    r"|NMTOKENS?|Name|NCName|ID\b|IDREFS?|ENTITY|ENTITIES|\w*(Integer|[lL]ong|[iI]nt|[sS]hort|[bB]yte)\b|error"
    r"|dateTimeStamp|anySimpleType|untyped\b|anyType)"
)
"""Types that no stream needs: a test that names one is refused whole."""
_NOTATION = re.compile(r"Q\{|[\w)]#\d|\(\s*\?|,\s*\?\s*[,)]|\?\w|``\[|\(#")
"""Expanded names, references to functions, partial application, lookups, pragmas."""
_UNSAID = re.compile(r""""(?:[^"]|"")*+"|'(?:[^']|'')*+'|\(:(?:[^:]|:(?!\)))*+:\)""")
"""String literals and comments, in which a notation or the name of a type says nothing."""
_EXTERNAL = r"declare\s+variable\s+\$%s(\s+as\s+[^;]+?)?\s+external\s*(:=[^;]*)?;"
_VERSION = re.compile(r"\s*(\(:.*?:\)\s*)*xquery\s+(version|encoding)[^;]*;", re.DOTALL)
_DOUBLES = "LAWS 2.1: what avg(), min() and max() compute is a double"
_LIMITS = "LAWS 2.7: how long a duration may be is the processor's to say, and ours may be longer"
_ORDERED = "LAWS 2.3: values of any types have an order"
_MORE = "accepted, though XQuery would not: the meaning is plain"
_ID = "xml:id is an attribute like others"
_MEMBERS = "LAWS 7.1: where a value is asked for, an array stands for its members"
_ITEMS = "LAWS 2.8: a path from '/' starts at the outermost node, be it a document or not"
_PLACES = "LAWS 2.8: a place changes nothing in how a time is written"
DEVIATIONS: Mapping[str, str] = {
    **dict.fromkeys(("K-SeqAVGFunc-9", *(f"K-SeqMAXFunc-{n}" for n in (49, 50, 51))), _DOUBLES),
    **dict.fromkeys((f"K2-SeqMINFunc-{n}" for n in (11, 12, 13)), _DOUBLES),
    "fn-distinct-values-mixed-args-013": "LAWS 2.2: numbers are compared exactly, 1.2 as a decimal is none as a double",
    **dict.fromkeys(("cbcl-avg-003", "cbcl-divide-yearMonthDuration-003"), _LIMITS),
    **dict.fromkeys(("cbcl-subtract-yearMonthDurations-003",), _LIMITS),
    **dict.fromkeys((f"cbcl-{k}-yearMonthDuration-00{n}" for k in ("castable", "cast") for n in (1, 2)), _LIMITS),
    **dict.fromkeys(("fn-sort-error-1", "fn-sort-error-3", "fn-sort-error-4", "orderBy68"), _ORDERED),
    "fn-matches-26": "LAWS 2.8: '^' with the flag m also holds behind a last line feed, as RE2 has it",
    **dict.fromkeys(("K2-Axes-2", "K2-NodeTest-28"), _ITEMS),
    **dict.fromkeys((f"fn-string-{n}" for n in (33, 37, 38)), _MEMBERS),
    "ElemContentArray-002": "LAWS 7.2: an array in an element stands for its members, and these are values of JSON",
    "K-FilterExpr-3": "LAWS 7.1: `[]` gives the members of an array",
    **dict.fromkeys(("Constr-compattr-id-2", "K2-ComputeConAttr-48", "Constr-attr-id-2"), _ID),
    **dict.fromkeys(("K2-DirectConOther-48", "K2-DirectConElem-51"), _ID),
    **dict.fromkeys((f"PathExpr-{n}" for n in (5, 7, 8, 9)), _MORE),
    **dict.fromkeys((f"Steps-leading-lone-slash-{n}" for n in (2, 3, 4, 5)), _MORE),
    **dict.fromkeys((f"K2-DefaultNamespaceProlog-{n}" for n in (13, 14, 15)), _MORE),
    **dict.fromkeys((f"K2-NamespaceProlog-{n}" for n in (4, 9, 14)), _MORE),
    **dict.fromkeys(("K-FunctionProlog-4", "K-FunctionProlog-5"), _MORE),
    **dict.fromkeys((f"format-dateTime-025{each}" for each in "bcde"), _PLACES),
    **dict.fromkeys((f"format-time-025{each}" for each in "bc"), _PLACES),
    **dict.fromkeys(("generate-id-020", "generate-id-022"), "LAWS 2.8: an id depends on the place of a node alone"),
    "K2-DirectConElem-38": "the prefix xml is not declared: it has its namespace by itself",
    "K2-Steps-31": "a variable that a function uses is evaluated there: nodes that it makes are new each time",
}
"""Tests whose outcome the laws decide otherwise, by name, and which law does."""
_UNTYPED_NUMBERS = re.compile(r"generalexpression\d+")
"""LAWS 2.3: `<` and kin compare untyped text as numbers where both sides are numbers."""


@dataclass(frozen=True)
class Source:
    """A document of an environment."""

    role: str
    uri: str
    file: Path


@dataclass(frozen=True)
class Environment:
    """What a test may use."""

    sources: tuple[Source, ...] = ()
    namespaces: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str, bool], ...] = ()
    reason: str = ""
    """Why it cannot be had here."""


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    reason: str = ""


class OutOfScope(Exception):  # a signal, not an error
    """A test is not for this language."""


# --- the suite --------------------------------------------------------------------------------------------


def environment_of(node: Xml.Element, folder: Path) -> Environment:
    """An environment as the suite writes it."""
    reason = ""
    for child in node:
        kind = child.tag.removeprefix(QT3)
        if kind in ("schema", "collection", "collation", "function-library", "decimal-format", "static-base-uri"):
            reason = kind
        if kind == "resource" or (kind == "context-item"):
            reason = kind
    sources = tuple(
        Source(each.get("role", ""), each.get("uri", ""), folder / each.get("file", ""))
        for each in node.iter(f"{QT3}source")
    )
    if any(each.get("validation") not in (None, "skip") for each in node.iter(f"{QT3}source")):
        reason = "schema"
    names = tuple((each.get("prefix", ""), each.get("uri", "")) for each in node.iter(f"{QT3}namespace"))
    parameters = tuple(
        (each.get("name", ""), each.get("select", "()"), each.get("declared") == "true")
        for each in node.iter(f"{QT3}param")
    )
    return Environment(sources, names, parameters, reason)


def wanted(name: str) -> bool:
    """Whether a set is run."""
    chosen = name.startswith(("prod-", "fn-", "op-")) or name == "app-XMark"
    return chosen and not _LEFT_OUT_SETS.match(name)


def out_of_scope(node: Xml.Element) -> bool:
    """Whether a test or a set depends on what is not there."""
    for each in node.findall(f"{QT3}dependency"):
        value, satisfied = each.get("value", ""), each.get("satisfied", "true") == "true"
        match each.get("type"):
            case "spec":
                if not any(word in ("XQ10+", "XQ30+", "XQ31+", "XQ31") for word in value.split()):
                    return True
            case "feature":
                if (value in _FEATURES) != satisfied:
                    return True
            case "xml-version":
                if "1.0" not in value:
                    return True
            case _:
                return True
    return False


def tests(root: Path, only: list[str]) -> Iterator[tuple[str, Xml.Element, Path, Mapping[str, Environment]]]:
    """All tests of the sets that are run."""
    catalog = Xml.parse(root / "catalog.xml").getroot()
    shared = {each.get("name", ""): environment_of(each, root) for each in catalog.findall(f"{QT3}environment")}
    for entry in catalog.findall(f"{QT3}test-set"):
        name, file = entry.get("name", ""), root / entry.get("file", "")
        if (name not in only) if only else not wanted(name):
            continue
        tree = Xml.parse(file).getroot()
        if out_of_scope(tree):
            continue
        own = {each.get("name", ""): environment_of(each, file.parent) for each in tree.findall(f"{QT3}environment")}
        for test in tree.findall(f"{QT3}test-case"):
            yield name, test, file.parent, {**shared, **own}


# --- one test ---------------------------------------------------------------------------------------------


@cache
def read_document(file: Path) -> str:
    """The text of a document."""
    return file.read_text(encoding="utf-8-sig")


def query_text(test: Xml.Element, folder: Path) -> str:
    """The query of a test."""
    written = test.find(f"{QT3}test")
    assert written is not None
    return (folder / written.get("file", "")).read_text() if written.get("file") else "".join(written.itertext())


def run(set_name: str, test: Xml.Element, folder: Path, environments: Mapping[str, Environment]) -> Outcome:
    """What comes of a test."""
    if out_of_scope(test) or test.find(f"{QT3}module") is not None:
        raise OutOfScope
    environment = Environment()
    given = test.find(f"{QT3}environment")
    if given is not None:
        environment = environments[given.get("ref", "")] if given.get("ref") else environment_of(given, folder)
    if environment.reason:
        raise OutOfScope
    text = query_text(test, folder)
    expected = test.find(f"{QT3}result")
    assert expected is not None
    said = _UNSAID.sub('""', text)
    if _LEFT_OUT_TYPES.search(said):
        raise OutOfScope
    if _OTHER_TYPES.search(said) or any(_OTHER_TYPES.search(select) for _, select, _ in environment.parameters):
        return Outcome("refused", "a type that is not known")
    if _NOTATION.search(said):
        return Outcome("refused", "a notation that is not known, or means something else")
    values: Values = []
    error: AnabranchError | None = None
    try:
        values = answer(with_environment(text, environment), environment, is_stream=set_name == "app-XMark")
    except Refused as refusal:
        return Outcome("refused", refusal.message)
    except AnabranchError as failure:
        error = failure
    except RecursionError:
        return Outcome("wrong", "recursion")
    verdict = judged(list(expected), values, error, folder, environment)
    if verdict == "wrong" and error is not None and _is_refusal(error):
        return Outcome("refused", _reason(error))
    name = test.get("name", "")
    if verdict == "wrong" and name in DEVIATIONS:
        return Outcome("deviates", DEVIATIONS[name])
    if verdict == "wrong" and set_name.startswith("prod-GeneralComp.") and _UNTYPED_NUMBERS.fullmatch(name):
        return Outcome("deviates", "LAWS 2.3: '<' and kin compare untyped numbers as numbers")
    return Outcome(verdict, "" if verdict == "passed" else _reason(error))


def _is_refusal(error: AnabranchError) -> bool:
    """Whether a query is refused for what the language does not have: a function, a pattern, or more steps.

    Maps and arrays are objects and arrays of JSON (LAWS 7.2), so there are no other keys than strings, no members of
    several values, and no functions in them.
    """
    if error.code in ("SERE0021", "SERE0023") or error.message.startswith("a key is a string"):
        return True
    if error.code == "XQDY0074" and re.match(r"' *Q\{", error.message):  # an expanded name that is computed
        return True
    if isinstance(error, QueryError):
        return error.code in (
            "XPST0017",
            "XPST0003",
            "XPST0051",
            "XPST0081",
            "FODC0002",
            "XPDY0002",
            "XQST0034",
            "XQST0089",
        )
    unknown = error.code in ("FORX0002", "FORX0004") and re.search("known|too large|than|groups", error.message)
    return bool(error.code in ("XPDY0130", "FOCH0002") or unknown)


def _reason(error: AnabranchError | None) -> str:
    if error is None:
        return "another answer"
    return re.sub(r"'[^']*'|\d+", "...", error.message)[:60] + f" [{error.code}]"


def with_environment(text: str, environment: Environment) -> str:
    """The query with what the environment declares in its prolog."""
    before: list[str] = []
    for prefix, uri in environment.namespaces:
        if not re.search(rf"declare\s+namespace\s+{re.escape(prefix)}\s*=", text):
            before.append(
                f'declare namespace {prefix} = "{uri}";' if prefix else f'declare default element namespace "{uri}";'
            )
    bindings = [(name, select, declared) for name, select, declared in environment.parameters]
    for source in environment.sources:
        if source.role.startswith("$"):
            bindings.append((source.role[1:], f'doc("{source.role[1:]}")', False))
    for name, select, _ in bindings:
        external = re.compile(_EXTERNAL % re.escape(name))
        found = external.search(text)
        declaration = f"declare variable ${name}{found[1] or '' if found else ''} := ({select});"
        if found:
            text = external.sub(lambda _, new=declaration: new, text)  # type: ignore[misc]
        else:
            before.append(declaration)
    if not before:
        return text
    version = _VERSION.match(text)
    cut = version.end() if version else 0
    return text[:cut] + " ".join(before) + " " + text[cut:]


def inputs_of(environment: Environment) -> dict[str, str]:
    """The documents of an environment, by the names that they have in a query."""
    found: dict[str, str] = {}
    for each in environment.sources:
        if each.role == ".":
            found["context"] = read_document(each.file)
        elif each.role.startswith("$"):
            found[each.role[1:]] = read_document(each.file)
        if each.uri:
            found[each.uri] = read_document(each.file)
    return found


def answer(text: str, environment: Environment, *, is_stream: bool) -> Values:
    """The answer of a query."""
    query = parse(text)
    texts = inputs_of(environment)
    if "context" in texts:
        query = with_input(query, ast.Source("stream" if is_stream else "doc", "context"))
    checked = check(query, text, inputs=dict.fromkeys(texts), finite=True)
    names = {part.name for part in _sources(checked.query)}
    try:
        inputs = {name: document(name, texts[name], is_stream) for name in texts if name in names}
    except AnabranchError:  # a document type, or a character that XML does not have
        raise OutOfScope from None
    return evaluate(checked.query, inputs).values


def _sources(query: ast.Query) -> Iterator[ast.Source]:
    return (part for part in parts(query) if isinstance(part, ast.Source))


@cache
def document(name: str, text: str, is_stream: bool) -> Input:
    """A document, read once."""
    return text_input(text, name=name) if is_stream else document_input(parse_document(text.encode()), name)


# --- what is expected -------------------------------------------------------------------------------------


def judged(
    assertions: list[Xml.Element], values: Values, error: AnabranchError | None, folder: Path, environment: Environment
) -> Verdict:
    """Whether all of some assertions hold."""
    found = [holds(each, values, error, folder, environment) for each in assertions]
    return max(found, key=VERDICTS.index) if found else "wrong"


def holds(
    node: Xml.Element, values: Values, error: AnabranchError | None, folder: Path, environment: Environment
) -> Verdict:
    """Whether one assertion holds."""
    kind, text = node.tag.removeprefix(QT3), node.text or ""
    match kind:
        case "all-of":
            return judged(list(node), values, error, folder, environment)
        case "any-of":
            return min((holds(each, values, error, folder, environment) for each in node), key=VERDICTS.index)
        case "not":
            return "wrong" if judged(list(node), values, error, folder, environment) == "passed" else "passed"
        case "error":
            if error is None:
                return "wrong"
            return "passed" if node.get("code") in ("*", error.code) else "another code"
    if error is not None:
        return "wrong"
    try:
        if node.get("file"):
            text = (folder / node.get("file", "")).read_text(encoding="utf-8-sig")
        return "passed" if fits(kind, node, text, values, environment) else "wrong"
    except (AnabranchError, Xml.ParseError):
        return "wrong"


def fits(kind: str, node: Xml.Element, text: str, values: Values, environment: Environment) -> bool:
    """Whether the answer is as an assertion says."""
    match kind:
        case "assert-true" | "assert-false":
            return values == [kind == "assert-true"] and isinstance(values[0], bool)
        case "assert-empty":
            return not values
        case "assert-count":
            return len(values) == int(text)
        case "assert-string-value":
            found = " ".join(spell(each) for each in atomize(values))
            if node.get("normalize-space") == "true":
                return " ".join(found.split()) == " ".join(text.split())
            return found == text
        case "assert-eq":
            (other,) = atomize(asserted(text, values, environment))
            (own,) = atomize(values)
            return value_compared("eq", own, other) or spell(own) == spell(other) == "NaN"
        case "assert-deep-eq":
            return asserted(f"deep-equal($result, ({text}))", values, environment) == [True]
        case "assert-permutation":
            other_values = asserted(text, values, environment)
            return sorted(map(spell, atomize(values))) == sorted(map(spell, atomize(other_values)))
        case "assert-type":
            return of_type(values, text.strip())
        case "assert":
            return asserted(f"boolean(({text}))", values, environment) == [True]
        case "assert-xml":
            ignores = node.get("ignore-prefixes") == "true"
            own_text = content_text(values)
            return own_text == text or canonical(own_text, ignores) == canonical(text, ignores)
        case "serialization-matches" | "assert-serialization-error":
            raise OutOfScope
        case _:
            raise AssertionError(kind)


def of_type(values: Values, name: str) -> bool:
    """Whether values are of a type; one that is not known cannot be asked for."""
    if "function(" in name and name != "function(*)":
        raise OutOfScope
    try:
        return is_of(values, name.replace(" ", ""), {})
    except KeyError:
        item = name.rstrip("?*+")
        if item not in ATOMIC_TYPES:
            raise OutOfScope from None
        raise


def asserted(text: str, values: Values, environment: Environment) -> Values:
    """The value of an expression about `$result`."""
    names = "".join(f'declare namespace {prefix} = "{uri}";' for prefix, uri in environment.namespaces if prefix)
    try:
        query = parse(names + text.replace("\r", "&#xD;"))
    except QueryError:
        raise OutOfScope from None
    if _OTHER_TYPES.search(text):
        raise OutOfScope
    evaluator = Evaluator(query, {}, {})
    try:
        return evaluator.value(query.body, Env.of(query).bind("result", values))
    except KeyError:
        raise OutOfScope from None


def canonical(text: str, ignores_prefixes: bool = False) -> str:
    """Content as canonical XML, without the declaration it may begin with."""
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    return Xml.canonicalize(f"<x>{text.strip()}</x>", strip_text=False, rewrite_prefixes=ignores_prefixes)


# --- the report -------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Run the sets, and print what came of them."""
    root, *only = arguments
    shown = "-v" in only
    only = [each for each in only if each != "-v"]
    table: dict[str, Counter[Verdict]] = defaultdict(Counter)
    reasons: Counter[tuple[Verdict, str]] = Counter()
    examples: dict[tuple[Verdict, str], str] = {}
    for name, test, folder, environments in tests(Path(root), only):
        try:
            outcome = run(name, test, folder, environments)
        except (OutOfScope, OSError, UnicodeDecodeError):
            continue
        table[name][outcome.verdict] += 1
        if outcome.verdict != "passed":
            key = outcome.verdict, outcome.reason
            reasons[key] += 1
            examples.setdefault(key, test.get("name", ""))
        if shown and outcome.verdict == "wrong":
            print("wrong:", name, test.get("name"), outcome.reason)
    print(f"{'set':<40}" + "".join(f"{each:>14}" for each in VERDICTS))
    for name, counts in sorted(table.items()):
        print(f"{name:<40}" + "".join(f"{counts[each]:>14,}" for each in VERDICTS))
    total = sum(table.values(), Counter[Verdict]())
    print(f"{'all':<40}" + "".join(f"{total[each]:>14,}" for each in VERDICTS))
    count = sum(total.values()) or 1
    print(f"{count:,} tests; passed: {total['passed'] / count:.1%}")
    for verdict in VERDICTS[1:]:
        print(f"\nthe most frequent reasons, {verdict}:")
        for (_, reason), times in Counter({k: v for k, v in reasons.items() if k[0] == verdict}).most_common(25):
            print(f"{times:>7,}  {reason}  (as {examples[verdict, reason]})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
