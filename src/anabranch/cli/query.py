"""`anabranch query`: answers over inputs that have an end, printed, or written to one file for each query."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from anabranch.algebra.reactions.signature import POLICIES
from anabranch.cli.arguments import Commands, pairs_of
from anabranch.cli.inputs import declare_inputs, inputs_of
from anabranch.cli.printing import print_answer, print_lines
from anabranch.engine import FiniteRun, Inputs, Prepared, answering, prepare
from anabranch.engine.finite import failing
from anabranch.engine.reports.timelines import timelines
from anabranch.engine.reports.unanswered import Unanswered, Watched, unanswered
from anabranch.errors import Aborted, DynamicError, UsageError
from anabranch.law.steps import allow
from anabranch.stream.elements import DeadLetter
from anabranch.stream.files import DEAD_LETTERS, Claim, called, check_claims, stream_claims
from anabranch.stream.limits import Limits
from anabranch.stream.reading.toml_tables import read_text
from anabranch.stream.settings import Settings
from anabranch.visible import note, tell, visible


def declare(commands: Commands) -> None:
    """The command and what it takes."""
    query = commands.add_parser("query", help="answer queries over inputs that have an end")
    query.add_argument("queries", nargs="+", type=Path, metavar="Q.xq", help="a file with one query")
    declare_inputs(query)
    query.add_argument("--policy", choices=POLICIES, default="accumulate", help="what queries do with accents")
    query.add_argument("--out", type=Path, metavar="DIR", help="write DIR/<query>.xml instead of printing")
    query.add_argument("--no-sharing", action="store_true", help="do nothing once for several queries")
    query.add_argument("--engine", choices=("spark", "reference"), help="default: spark where it can, else reference")
    query.add_argument(
        "--timeline", action="store_true", help="one JSON line for each element that changes what is shown"
    )
    query.add_argument("--dead-letter", type=Path, metavar="FILE", help="what was set aside, one JSON line each")
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
    files: list[Path] = options.queries
    names = [file.stem for file in files]
    if len(files) > 1 and options.out is None:
        raise UsageError("several queries need a place for their answers", hint="give one with --out DIR")
    if len(set(names)) < len(names):
        raise UsageError("two queries have the same name", hint="their answers would be written to one file")
    suffix = ".jsonl" if options.timeline else ".xml"
    outs = {} if options.out is None else {name: called(options.out, name, suffix, "the query") for name in names}
    _check_files(options, inputs, outs)
    prepared, failed = _prepared(files, inputs, options)
    for query in prepared:
        for warning in (*query.warnings, *((query.note,) if query.note else ())):
            note(warning)
    with _running(prepared, inputs, limits, options) as found:
        run = failing(found, failed)
        answers = _write(run, outs, timeline=options.timeline)
        dead = _report(run, options.dead_letter)
        silent = [unanswered(each, answers[each.name], run, dead, inputs, limits) for each in prepared]
    status = _warn([each for each in silent if each is not None], options.dead_letter)
    if run.aborted:
        raise Aborted("; ".join(f"the query '{name}' has ended: {why}" for name, why in run.aborted.items()))
    return status


def _check_files(options: argparse.Namespace, inputs: Inputs, outs: Mapping[str, Path]) -> None:
    """See to it that no answer and no dead letter is written over what is read, or over another."""
    read = [
        *stream_claims(inputs.streams),
        *(Claim(file, f"the query '{file.stem}'") for file in options.queries),
        *(Claim(Path(file), f"the DTD of '{name}'") for name, file in pairs_of(options.dtd, "--dtd").items()),
        *(Claim(path, f"the document '{name}'") for name, path in (inputs.documents or {}).items()),
    ]
    written = [Claim(path, f"the answer to '{name}'") for name, path in outs.items()]
    if options.dead_letter is not None:
        written.append(Claim(options.dead_letter, DEAD_LETTERS))
    check_claims(read, written)


def _prepared(
    files: Sequence[Path], inputs: Inputs, options: argparse.Namespace
) -> tuple[list[Prepared], dict[str, DynamicError]]:
    """The queries that can be answered, and by name why others fail before their streams begin (LAWS 2.4)."""
    prepared: list[Prepared] = []
    failed: dict[str, DynamicError] = {}
    asked = {"timeline": options.timeline}
    for each in files:
        try:
            prepared.append(prepare(each.stem, read_text(each), inputs, options.engine, label=str(each), **asked))
        except DynamicError as error:
            failed[each.stem] = error
    return prepared, failed


@contextmanager
def _running(
    prepared: Sequence[Prepared], inputs: Inputs, limits: Limits, options: argparse.Namespace
) -> Iterator[FiniteRun]:
    """The answers of some queries, or their timelines; they can be read while inside."""
    if options.timeline:
        with timelines(prepared, inputs, limits) as run:
            yield run
        return
    with (
        Console(stderr=True).status("starting") as status,
        answering(
            prepared,
            inputs,
            Settings(limits=limits, sharing=not options.no_sharing),
            policy=options.policy,
            on_progress=lambda now: status.update(f"{now.items:,} items read"),
        ) as run,
    ):
        status.stop()
        yield run


def _write(run: FiniteRun, outs: Mapping[str, Path], *, timeline: bool) -> dict[str, Watched]:
    """Print the one answer, or write each to a file of its own; a timeline is lines that bring their ends along.

    Of a query that has ended without any answer nothing is printed, and its file is empty.
    """
    show, end = (print_lines, "") if timeline else (print_answer, "\n")
    answers = {name: Watched(pieces) for name, pieces in run.answers.items()}
    for name, answer in answers.items():
        has_answer = name not in run.aborted or answer.has_text
        if outs:
            _write_file(answer, outs[name], end if has_answer else "")
        elif has_answer:
            show(answer)
    return answers


def _write_file(answer: Iterable[str], path: Path, end: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(answer)
            file.write(end)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _warn(silent: Sequence[Unanswered], dead_letter: Path | None) -> int:
    """Name the queries that answer nothing; gives the exit status, 3 where all items were set aside for one."""
    for each in silent:
        where = f"see {dead_letter}" if dead_letter else "--dead-letter FILE shows them"
        tell(f"warning: {visible(f'{each}; {where}')}")
    return 3 if any(each.is_all for each in silent) else 0


def _report(run: FiniteRun, dead_letter: Path | None) -> list[DeadLetter]:
    """Write what was set aside, and say how much it is; gives it."""
    dead = list(run.dead)
    if dead_letter is not None:
        _write_dead_letters(dead, dead_letter)
    where = f", see {dead_letter}" if dead_letter and dead else ""
    parts = [f"items: {run.items:,}", f"dead letters: {len(dead):,}{where}"]
    if run.late:
        parts.append(f"late items: {run.late:,}")
    tell(visible(", ".join(parts)))
    return dead


def _write_dead_letters(dead: Iterable[DeadLetter], path: Path) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for letter in dead:
                file.write(f"{letter.to_json()}\n")
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None
