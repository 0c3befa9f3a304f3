"""The documentation as a site: `scripts/docs.py OUT` builds it with Sphinx, and what its reference says of the code.

Pages are the Markdown files in docs/, as they stand in the repository; nothing is generated into that folder.
A page that has a line `<!-- generated: NAME -->` is completed while Sphinx reads it (docs/conf.py) by the function of
that name here, from what the code itself says: the parser of the command line, the reader of SITE.toml, the OpenAPI
document of the service, its metrics.
So the reference cannot be behind the code, and a reader of the repository sees where the rest is.

The pages in docs/project/ stand for files elsewhere: `<!-- file: ARCHITECTURE.md -->` is completed by that file, with
its links changed to what they are in the site.
Nothing is fetched, and a warning is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from tempfile import TemporaryDirectory
from typing import Any

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
MOVED = {
    "README.md": "docs/project/readme.md",
    "ARCHITECTURE.md": "docs/project/architecture.md",
    "CONTRIBUTING.md": "docs/project/contributing.md",
    "deploy/README.md": "docs/project/deploy.md",
}
"""Files that are pages of the site and do not lie in docs/, and the pages that stand for them."""
_GENERATED = re.compile(r"(?:^In the site, .*\n\n)?^<!-- generated: (\w+) -->$", re.M)
"""The place, with the line in front of it for those who read the page elsewhere."""
_FILE = re.compile(r"^<!-- file: ([\w./]+) -->$", re.M)
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


# --- pages ------------------------------------------------------------------------------------------------


def completed(page: str, text: str) -> str:
    """The text of a page, by its path below docs/, with what is generated or lies elsewhere in its place."""
    where = f"docs/{page}"
    found = _FILE.search(text)
    if found:
        text = linked((TOP / found[1]).read_text(encoding="utf-8"), found[1], where)
    else:
        text = linked(text, where, where)
    return _GENERATED.sub(lambda match: GENERATORS[match[1]](), text)


def linked(text: str, origin: str, page: str) -> str:
    """Text with relative links as they are written at `origin`, changed to what they are on a page of the site."""

    def at_page(found: re.Match[str]) -> str:
        target = found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        whole = normpath(str(PurePosixPath(origin).parent / target))
        whole = MOVED.get(whole, whole)
        return f"{found[1]}{relpath(whole, str(PurePosixPath(page).parent))}{found[3]}"

    return _LINK.sub(at_page, text)


# --- tables -----------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Text as it is, in a cell."""
    escaped = re.sub(r"([\\`*_\[\]<>|$])", r"\\\1", " ".join(text.split()))
    return escaped


def _code(text: str) -> str:
    """Text as code, in a cell."""
    return "`" + text.replace("|", r"\|") + "`" if text else ""


# --- the command line -------------------------------------------------------------------------------------


def command_line() -> str:
    """Each command with its usage and arguments, as its parser knows them."""
    from anabranch.cli.parser import command_parser
    from anabranch.cli.remote import remote_parser

    local, remote = command_parser(), remote_parser()
    return "\n\n".join([*_commands(local, "", local.prog), *_commands(remote, "", f"{remote.prog} --url URL")])


def _commands(parser: argparse.ArgumentParser, help_text: str, name: str) -> Iterator[str]:
    """The text on a parser, called by its name, and on the commands in it."""
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    own = [
        each
        for each in parser._actions
        if not isinstance(each, argparse._HelpAction | argparse._SubParsersAction)
        and each.help is not argparse.SUPPRESS
    ]
    formatter = argparse.HelpFormatter(name if help_text else parser.prog, width=100)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    usage = formatter.format_help().strip().removeprefix("usage: ")
    if not inner or own:
        yield f"## {name}"
        yield help_text[:1].upper() + help_text[1:] + "." if help_text else parser.description or ""
        yield f"```text\n{usage}\n```"
    if own:
        rows = [(_code(_invocation(each)), _cell(formatter._expand_help(each) if each.help else "")) for each in own]
        yield _table(("argument", ""), rows)
    for commands in inner:
        told = {each.dest: each.help or "" for each in commands._choices_actions}
        for each, command in commands.choices.items():
            yield from _commands(command, told.get(each, ""), f"{name} {each}")


def _invocation(action: argparse.Action) -> str:
    """An argument as it is written."""
    value = action.metavar if isinstance(action.metavar, str) else None
    if value is None and action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    value = value or action.dest.upper()
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + (f" {value}" if action.nargs != 0 else "")


# --- SITE.toml --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key of a table of SITE.toml: what it takes, and what holds where it is left out."""

    table: str
    name: str
    takes: str
    default: object


_SITE = """
[engine]
checkpoint = "state"
[streams.f]
path = "in"
updates = true
[streams.h]
source = "http"
[streams.a]
source = "answer"
of = "q"
[streams.k]
source = "kafka"
topic = "t"
brokers = "127.0.0.1:9092"
[documents.d]
path = "d.xml"
[subscriptions.q]
query = "q.xq"
[subscriptions.t]
query = "q.xq"
sink = "kafka"
topic = "u"
brokers = "127.0.0.1:9092"
"""
"""A site that has a table of each kind, so that reading it asks for every key."""

_TABLES = ("engine", "streams.NAME", "subscriptions.NAME", "documents.NAME", "http", "kafka")


def site_keys() -> str:
    """Each table of SITE.toml with its keys, as the code that reads it asks for them."""
    meanings = told_keys()
    parts = []
    for table in _TABLES:
        keys = [each for each in asked_keys() if each.table == table]
        rows = [
            (_code(each.name), _cell(each.takes), _code(_default(each.default)), meanings.get((table, each.name), ""))
            for each in keys
        ]
        parts += [f"## `[{table}]`", _table(("key", "takes", "without it", "meaning"), rows)]
    return "\n\n".join(parts)


def asked_keys() -> list[Key]:
    """The keys that reading a site asks for, in their order."""
    from anabranch.site import read_site

    with TemporaryDirectory() as folder, _recording() as found:
        site = Path(folder) / "SITE.toml"
        site.write_text(_SITE)
        site.with_name("in").mkdir()
        site.with_name("d.xml").write_text("<d/>")
        site.with_name("q.xq").write_text('for $i in stream("f")/f/i return <r>{ $i }</r>')
        read_site(site)
    known: dict[tuple[str, str], Key] = {}
    for each in found:
        if each.table and each.takes not in ("a table",):
            known.setdefault((each.table, each.name), each)
    return list(known.values())


@contextmanager
def _recording() -> Iterator[list[Key]]:
    """The keys that are taken from tables meanwhile."""
    from anabranch.stream.reading.toml_tables import Table

    found: list[Key] = []
    take = Table.take

    def recorded(self: Table, key: str, fits: Callable[[Any], bool], kind: str, default: Any) -> Any:
        table, dot, _ = self.name.partition(".")
        found.append(Key(f"{table}.NAME" if dot else table, key, kind, default))
        return take(self, key, fits, kind, default)

    Table.take = recorded  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Table.take = take  # type: ignore[method-assign]


def told_keys() -> dict[tuple[str, str], str]:
    """What keys are for, by table and key."""
    tables = tomllib.loads((DOCS / "reference/site-keys.toml").read_text(encoding="utf-8"))
    return {(table, key): text for table, keys in tables.items() for key, text in keys.items()}


def _default(value: object) -> str:
    if value is None or value == {} or value == []:
        return ""
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, default=str)


# --- Python -----------------------------------------------------------------------------------------------

_API: Mapping[str, Sequence[str]] = {
    "The engine": ("anabranch.Engine",),
    "What an engine returns": (
        "anabranch.engine.handles.Stream",
        "anabranch.engine.handles.LiveSubscription",
        "anabranch.engine.handles.LiveDisplay",
        "anabranch.algebra.plans.builder.DerivedStream",
        "anabranch.spark.epoch.metrics.Metrics",
        "anabranch.CostCaps",
    ),
    "Where streams come from, and where answers go": (
        "anabranch.Topic",
        "anabranch.KafkaCluster",
        "anabranch.Http",
        "anabranch.Files",
        "anabranch.Parquet",
        "anabranch.Kafka",
        "anabranch.Console",
    ),
    "A site at another address": (
        "anabranch.connect",
        "anabranch.client.RemoteSite",
        "anabranch.client.RemoteSubscription",
        "anabranch.client.RemoteAnswer",
        "anabranch.client.RemoteDisplay",
    ),
    "Errors": (
        "anabranch.errors.AnabranchError",
        "anabranch.errors.UsageError",
        "anabranch.errors.QueryError",
        "anabranch.errors.Refused",
        "anabranch.errors.Unsupported",
        "anabranch.errors.DynamicError",
        "anabranch.errors.Aborted",
        "anabranch.errors.StreamError",
        "anabranch.errors.SourceUnavailable",
        "anabranch.errors.StateError",
        "anabranch.errors.DiskFull",
        "anabranch.client.RemoteError",
        "anabranch.client.RemoteUnavailable",
    ),
}
"""The classes and functions for programs, by heading."""


def python_api() -> str:
    """Each class and function for programs, for Sphinx to document by its docstrings."""
    parts = []
    for heading, names in _API.items():
        parts.append(f"## {heading}")
        for name in names:
            kind = "autoclass" if name.rpartition(".")[2][0].isupper() else "autofunction"
            members = "\n   :members:" if kind == "autoclass" else ""
            parts.append(f"```{{eval-rst}}\n.. {kind}:: {name}{members}\n```")
    return "\n\n".join(parts)


def tour() -> str:
    """The cells of the notebook docs/tour.ipynb, as a page."""
    cells = json.loads((DOCS / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells[1:]:  # the first one is the title
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text.replace("\n## ", "\n### "))
    return re.sub(r"(?m)^## ", "### ", "\n\n".join(parts))


# --- HTTP -------------------------------------------------------------------------------------------------


def http_api() -> str:
    """Each request that the service answers, from its OpenAPI document."""
    from anabranch.service.app import routes

    document = routes().openapi()
    schemas = document.get("components", {}).get("schemas", {})
    parts = []
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            parts += [f"### `{method.upper()} {path}`", told.get("description") or told.get("summary", "")]
            parameters = [
                (_code(each["name"]), _cell(each["in"]), _cell(_shape(each["schema"])), _code(_least(each["schema"])))
                for each in told.get("parameters", ())
            ]
            if parameters:
                parts.append(_table(("parameter", "in", "takes", "without it"), parameters))
            for body in told.get("requestBody", {}).get("content", {}).values():
                parts.append(f"Body: {_cell(_shape(body['schema']))}.")
            answers = [
                (_code(status), _cell(each.get("description", "")), _cell(_content(each)))
                for status, each in told["responses"].items()
            ]
            parts.append(_table(("status", "", "body"), answers))
    parts.append("## Objects")
    for name, schema in schemas.items():
        rows = [
            (_code(key), _cell(_shape(each)), _cell(each.get("description", "")))
            for key, each in schema.get("properties", {}).items()
        ]
        if rows:
            parts += [f"### {name}", schema.get("description", ""), _table(("key", "holds", ""), rows)]
    text = "\n\n".join(part for part in parts if part)
    told = sorted(name for name, schema in schemas.items() if schema.get("properties"))
    names = re.compile(rf"\b({'|'.join(map(re.escape, told))})\b")
    lines = (
        names.sub(lambda found: f"[{found[0]}](#{found[0].lower()})", line) if line.startswith(("|", "Body:")) else line
        for line in text.splitlines()
    )
    return "\n".join(lines)


def _content(answer: Mapping[str, Any]) -> str:
    return "; ".join(f"{kind}: {_shape(each.get('schema', {}))}" for kind, each in answer.get("content", {}).items())


def _shape(schema: Mapping[str, Any]) -> str:
    """What a JSON schema takes, in a few words."""
    match schema:
        case {"$ref": str(name)}:
            return name.rpartition("/")[2]
        case {"anyOf": list(several)} | {"oneOf": list(several)}:
            return " or ".join(dict.fromkeys(map(_shape, several)))
        case {"enum": list(values)}:
            return " or ".join(json.dumps(each) for each in values)
        case {"const": value}:
            return json.dumps(value)
        case {"type": "array", "items": dict(items)}:
            return f"a list of {_shape(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"an object of {_shape(values)}"
        case {"type": str(kind)}:
            bounds = [
                f"{word} {schema[key]:,}"
                for key, word in _BOUNDS.items()
                if key in schema and isinstance(schema[key], int)
            ]
            return " ".join([_KINDS.get(kind, kind), ", ".join(bounds)]).strip()
    return "anything"


_KINDS = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_BOUNDS = {"minimum": "from", "maximum": "to", "minLength": "of at least", "maxLength": "of at most"}


def _least(schema: Mapping[str, Any]) -> str:
    return "" if schema.get("default") in (None, "") else json.dumps(schema["default"])


# --- metrics ----------------------------------------------------------------------------------------------


def metrics() -> str:
    """Each metric that the service gives, with its type and labels."""
    from anabranch.service.watch.prometheus import FAMILIES

    rows = [
        (_code(each.shown), each.type, ", ".join(map(_code, each.labels)), _cell(each.help))
        for each in FAMILIES.values()
    ]
    return _table(("metric", "type", "labels", ""), rows)


# --- building ---------------------------------------------------------------------------------------------

GENERATORS: Mapping[str, Callable[[], str]] = {
    "command_line": command_line,
    "site_keys": site_keys,
    "python_api": python_api,
    "http_api": http_api,
    "tour": tour,
    "metrics": metrics,
}
"""By the name that stands on a page."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; gives the exit status of Sphinx."""
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("out", type=Path, help="the folder for the site")
    options = parser.parse_args(arguments)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html"]
    done = subprocess.run([*command, "-d", str(options.out / ".doctrees"), str(DOCS), str(options.out)], check=False)
    if done.returncode == 0:
        print(f"the site is {options.out / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
