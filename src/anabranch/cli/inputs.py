"""The inputs of a query, as options: streams, their settings by NAME=VALUE, and documents."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from anabranch.cli.arguments import UserFile, declare_functions, functions_of, pairs_of
from anabranch.engine.inputs import Inputs
from anabranch.engine.reading import looked_into
from anabranch.errors import UsageError, did_you_mean
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source, domains_of
from anabranch.stream.schema import Schema
from anabranch.values.declared import declared_origin, declared_slack, declared_time

_SETTINGS = ("dtd", "time", "time_unit", "slack", "origin", "format", "root", "item")
"""The settings that are given by NAME=VALUE, each by its own option."""
_OPTIONS = (
    ("--stream", "NAME=FILE", "a file or directory"),
    ("--doc", "NAME=FILE", "a document for doc()"),
    ("--dtd", "NAME=FILE", "the schema of a stream"),
    ("--time", "NAME=PATH", "where items carry their time"),
    ("--time-unit", "NAME=U", "what times count in: s, ms, us or ns"),
    ("--slack", "NAME=N", "how late items may come: a number, or PT5S"),
    ("--origin", "NAME=N", "where time windows begin: a number or dateTime"),
    ("--format", "NAME=F", "lines, document or json"),
    ("--root", "NAME=TAG", "the root of a stream in lines; default: root"),
    ("--item", "NAME=TAG", "what items in JSON are called; default: item"),
    ("--domain", "NAME=PATH:V,V", "the only values that items have there"),
)
"""The options for inputs, each given any number of times: name, form of its value, help."""


def declare_inputs(query: argparse.ArgumentParser) -> None:
    """Declare the options for streams and documents."""
    declare_functions(query)
    for option, form, words in _OPTIONS:
        query.add_argument(option, action="append", default=[], metavar=form, help=words)


def inputs_of(options: argparse.Namespace, limits: Limits) -> Inputs:
    """The inputs by the options."""
    streams = pairs_of(options.stream, "--stream")
    settings = {key: pairs_of(getattr(options, key), _option(key)) for key in _SETTINGS}
    for key, given in settings.items():
        for name in given:
            if name not in streams:
                raise _not_given(_option(key), name, streams)
    documents = {name: DocumentSource(_located(path)) for name, path in pairs_of(options.doc, "--doc").items()}
    for name in documents.keys() & streams.keys():
        raise UsageError(f"'{name}' is both a stream and a document")
    domains = _domains(options.domain, streams)
    sources = [_source(name, _located(path), settings, domains.get(name, {})) for name, path in streams.items()]
    return Inputs([looked_into(each, limits) for each in sources], documents, functions_of(options), finite=True)


def _not_given(option: str, name: str, streams: Mapping[str, str]) -> UsageError:
    hint = did_you_mean(name, streams, f"add --stream {name}=FILE")
    return UsageError(f"{option} names stream '{name}', which is not given", hint=hint)


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _domains(given: Sequence[str], streams: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """By stream and path, the values of `NAME=PATH:V,V`."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in given:
        name, _, rest = each.partition("=")
        path, colon, values = rest.rpartition(":")
        if not colon:
            raise UsageError(f"--domain takes NAME=PATH:V,V, not '{each}'", hint="as in --domain sensors=s:1,2")
        if name not in streams:
            raise _not_given("--domain", name, streams)
        if path in found.setdefault(name, {}):
            raise UsageError(f"--domain is given twice for '{name}={path}'")
        found[name][path] = values.split(",")
    return found


def _located(text: str) -> UserFile:
    return Location.of(text) if "://" in text else Path(text)


def _is_there(path: UserFile) -> bool:
    """Whether there is a file or folder; of an object store, its reader says what is wrong."""
    return path.exists() if isinstance(path, Path) else True


def _source(
    name: str, path: UserFile, settings: dict[str, dict[str, str]], domains: Mapping[str, Sequence[str]]
) -> Source:
    if not _is_there(path):
        raise UsageError(f"stream '{name}': there is no '{path}'")
    dtd, path_to_time, unit, slack, origin, given_format, root, item = (settings[key].get(name) for key in _SETTINGS)
    form = given_format or "auto"
    if form not in ("auto", "lines", "document", "json"):
        raise UsageError(f"--format {name}={form} is unknown", hint="use lines, document or json")
    time = declared_time(path_to_time, unit)
    return Source(
        name,
        path,
        form,  # type: ignore[arg-type]  # just checked
        Schema.read_dtd(dtd) if dtd else None,
        root,
        item,
        time=time,
        slack=declared_slack(slack, time, "--slack"),
        origin=declared_origin(origin, time, "--origin"),
        domains=domains_of(domains),
    )
