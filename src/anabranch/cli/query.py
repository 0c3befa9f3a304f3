"""`anabranch query`: answers over finite inputs, printed, or written to one file for each query."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from anabranch.algebra.reactions.signature import POLICIES
from anabranch.cli.arguments import Commands, UserFile, declare_conversion, declare_language, pairs_of, user_file
from anabranch.cli.inputs import declare_inputs, inputs_of
from anabranch.engine.inputs import Inputs
from anabranch.errors import UsageError
from anabranch.language import Checked
from anabranch.law.steps import allow
from anabranch.sql import language_of_file
from anabranch.stream.files import DEAD_LETTERS, Claim, called, check_claims, document_claims, stream_claims
from anabranch.stream.limits import Limits
from anabranch.stream.reading.toml_tables import read_text


def declare(commands: Commands) -> None:
    """Declare the command and its arguments."""
    query = commands.add_parser("query", help="answer queries over inputs that have an end")
    query.add_argument("queries", nargs="+", type=user_file, metavar="Q.xq", help="a file with one query")
    declare_language(query)
    declare_inputs(query)
    query.add_argument("--policy", choices=POLICIES, default="accumulate", help="what queries do with accents")
    query.add_argument(
        "--out", type=user_file, metavar="DIR", help="write DIR/<query>.xml, or .jsonl for JSON, instead of printing"
    )
    declare_conversion(query)
    query.add_argument("--no-sharing", action="store_true", help="do nothing once for several queries")
    query.add_argument(
        "--engine", choices=("local", "spark", "reference"), help="default: local for small inputs, else spark"
    )
    query.add_argument(
        "--timeline", action="store_true", help="one JSON line for each element that changes what is shown"
    )
    query.add_argument("--dead-letter", type=user_file, metavar="FILE", help="what was set aside, one JSON line each")
    query.add_argument(
        "--max-item-bytes", type=int, default=Limits().item_bytes, metavar="N", help="larger items are bad"
    )
    query.add_argument("--max-depth", type=int, default=Limits().depth, metavar="N", help="deeper items are bad")
    query.add_argument("--max-steps", type=int, default=Limits().steps, metavar="N", help="longer evaluations fail")
    query.set_defaults(run=_query)


def _query(options: argparse.Namespace) -> int:
    limits = Limits(item_bytes=options.max_item_bytes, depth=options.max_depth, steps=options.max_steps)
    allow(limits.steps)
    inputs = inputs_of(options, limits)
    files: list[UserFile] = options.queries
    names = [file.stem for file in files]
    if len(files) > 1 and options.out is None:
        raise UsageError("several queries need a place for their answers", hint="give one with --out DIR")
    if len(set(names)) < len(names):
        raise UsageError("two queries have the same name", hint="their answers would be written to one file")
    texts = {file: read_text(file) for file in files}
    language = options.language
    queries = {
        file: (text, inputs.check(text, str(file), language_of_file(file, language))) for file, text in texts.items()
    }
    json = {file.stem for file, (_, checked) in queries.items() if _is_json(checked, inputs, options)}
    outs = {} if options.out is None else {name: _file(options.out, name, json=name in json) for name in names}
    _check_files(options, inputs, outs)
    # Imported here, so that refused queries need not wait for the engine.
    from anabranch.cli.answering import answer

    return answer(queries, inputs, limits, outs, options, json)


def _is_json(checked: Checked, inputs: Inputs, options: argparse.Namespace) -> bool:
    """Whether what is written for a query is lines of JSON: a timeline, or its answer (LAWS 7.3)."""
    if options.timeline or options.convert is not None:
        return bool(options.timeline) or options.convert == "json"
    return inputs.gives_json(checked)


def _file(folder: UserFile, name: str, *, json: bool) -> UserFile:
    return called(folder, name, ".jsonl" if json else ".xml", "the query")


def _check_files(options: argparse.Namespace, inputs: Inputs, outs: Mapping[str, UserFile]) -> None:
    """Refuse outputs that would overwrite inputs, or one another."""
    read = [
        *stream_claims(inputs.streams),
        *(Claim(file, f"the query '{file.stem}'") for file in options.queries),
        *(Claim(file, f"the DTD of '{name}'") for name, file in pairs_of(options.dtd, "--dtd").items()),
        *document_claims(inputs.documents or {}),
    ]
    written = [Claim(path, f"the answer to '{name}'") for name, path in outs.items()]
    if options.dead_letter is not None:
        written.append(Claim(options.dead_letter, DEAD_LETTERS))
    check_claims(read, written)
