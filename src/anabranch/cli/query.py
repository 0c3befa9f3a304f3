"""`anabranch query`: answers over inputs that have an end, printed, or written to one file for each query."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from anabranch.algebra.signature import POLICIES
from anabranch.cli.arguments import Commands
from anabranch.cli.inputs import declare_inputs, inputs_of
from anabranch.cli.printing import print_lines, print_text
from anabranch.engine import Prepared, Run, answering, prepare
from anabranch.engine.timelines import timelines
from anabranch.errors import Aborted, UsageError
from anabranch.reference.steps import allow
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.tables import read_text


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


def _query(options: argparse.Namespace) -> None:
    limits = Limits(item_bytes=options.max_item_bytes, depth=options.max_depth, steps=options.max_steps)
    allow(limits.steps)
    inputs = inputs_of(options, limits)
    files: list[Path] = options.queries
    names = [file.stem for file in files]
    if len(files) > 1 and options.out is None:
        raise UsageError("several queries need a place for their answers", hint="give one with --out DIR")
    if len(set(names)) < len(names):
        raise UsageError("two queries have the same name", hint="their answers would be written to one file")
    asked = {"timeline": options.timeline}
    prepared = [prepare(each.stem, read_text(each), inputs, options.engine, label=str(each), **asked) for each in files]
    for query in prepared:
        for warning in (*query.warnings, *((query.note,) if query.note else ())):
            print(f"anabranch: note: {warning}", file=sys.stderr)
    if options.timeline:
        with timelines(prepared, inputs, limits) as run:
            _write(prepared, run, options.out, timeline=True)
            _report(run, options.dead_letter)
        _check_aborted(run)
        return
    console = Console(stderr=True)
    with (
        console.status("starting") as status,
        answering(
            prepared,
            inputs,
            limits=limits,
            sharing=not options.no_sharing,
            policy=options.policy,
            on_progress=lambda now: status.update(f"{now.items:,} items read"),
        ) as run,
    ):
        status.stop()
        _write(prepared, run, options.out)
        _report(run, options.dead_letter)
    _check_aborted(run)


def _check_aborted(run: Run) -> None:
    if run.aborted:
        raise Aborted("; ".join(f"the query '{name}' has ended: {why}" for name, why in run.aborted.items()))


def _write(prepared: Sequence[Prepared], run: Run, out: Path | None, *, timeline: bool = False) -> None:
    """Print the one answer, or write each to a file of its own; a timeline is lines that bring their ends along."""
    show, suffix, end = (print_lines, "jsonl", "") if timeline else (print_text, "xml", "\n")
    if out is None:
        show(run.answers[prepared[0].name])
        return
    out.mkdir(parents=True, exist_ok=True)
    for query in prepared:
        with (out / f"{query.name}.{suffix}").open("w", encoding="utf-8", newline="") as file:
            file.writelines(run.answers[query.name])
            file.write(end)


def _report(run: Run, dead_letter: Path | None) -> None:
    dead = list(run.dead)
    if dead_letter is not None:
        _write_dead_letters(dead, dead_letter)
    where = f", see {dead_letter}" if dead_letter and dead else ""
    parts = [f"items: {run.items:,}", f"dead letters: {len(dead):,}{where}"]
    if run.late:
        parts.append(f"late items: {run.late:,}")
    print(f"anabranch: {', '.join(parts)}", file=sys.stderr)


def _write_dead_letters(dead: Iterable[DeadLetter], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for letter in dead:
            file.write(f"{letter.to_json()}\n")
