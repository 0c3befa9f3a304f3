"""The work of `anabranch explain`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from anabranch.cli.arguments import UserFile, functions_of, pairs_of
from anabranch.cli.printing import print_json, print_report, write_picture
from anabranch.engine.reports.columns import SupposedLook, columns_verdict
from anabranch.engine.reports.retention import past_explained
from anabranch.errors import Unsupported
from anabranch.language import check
from anabranch.law.calls import PythonFunction
from anabranch.sharing.explain.drawing import draw
from anabranch.sharing.explain.text import Explained, explain_json, explain_text
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sql import Language, language_of_file, read_query
from anabranch.stream.files import Claim
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.toml_tables import read_text
from anabranch.stream.schema import Schema


def explain(options: argparse.Namespace) -> None:
    """Explain queries by the options."""
    dtds = pairs_of(options.dtd, "--dtd")
    schemas = {name: Schema.read_dtd(file) for name, file in dtds.items()}
    streams = pairs_of(options.stream, "--stream")
    sources = {name: Source(name, file, schema=schemas.get(name)) for name, file in streams.items()}
    names = dict.fromkeys((*schemas, *sources))
    found = {name: SupposedLook.of(sources.get(name), schemas.get(name)) for name in names}
    looks = {name: look for name, look in found.items() if look is not None}
    functions = functions_of(options)
    queries = [
        _explained(file, language_of_file(file, options.language), schemas, looks, options.updates, functions)
        for file in options.queries
    ]
    if options.svg is not None:
        write_picture(
            draw(queries),
            options.svg,
            [Claim(file, "a file that is explained") for file in (*options.queries, *dtds.values(), *streams.values())],
        )
    if options.json:
        print_json(explain_json(queries))
    else:
        print_report(explain_text(queries))


def _explained(
    file: UserFile,
    language: Language | None,
    schemas: Mapping[str, Schema],
    looks: Mapping[str, SupposedLook],
    edited: Sequence[str],
    functions: Mapping[str, PythonFunction],
) -> Explained:
    text = read_text(file)
    query = read_query(text, str(file), language=language)
    checked = check(query, text, functions=functions, name=str(file), edited=edited)
    past = past_explained(file.stem, checked.query, edited)
    if past is not None:
        return past
    columns = columns_verdict(checked.query, text, looks, functions)
    try:
        return Explained(file.stem, derive_forest(checked.query, schemas, text), columns=columns)
    except Unsupported as error:
        return Explained(file.stem, None, error.message, columns=columns)
