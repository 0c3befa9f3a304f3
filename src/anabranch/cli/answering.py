"""The work of `anabranch query`: checked queries are answered, and dead letters reported."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from rich.console import Console

from anabranch.cli.arguments import UserFile
from anabranch.cli.printing import print_answer, print_lines
from anabranch.engine.converting import converted
from anabranch.engine.finite import FiniteRun, answering, failing
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Prepared, prepare
from anabranch.engine.reports.timelines import timelines
from anabranch.engine.reports.unanswered import Unanswered, Watched, unanswered
from anabranch.errors import Aborted, DynamicError, UsageError
from anabranch.language import Checked
from anabranch.storage import Location, Where
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.settings import Settings
from anabranch.visible import note, tell, visible

CheckedText: TypeAlias = tuple[str, Checked]
"""A query as written, and as checked."""


def answer(
    queries: Mapping[UserFile, CheckedText],
    inputs: Inputs,
    limits: Limits,
    outs: Mapping[str, UserFile],
    options: argparse.Namespace,
    json: Collection[str] = (),
) -> int:
    """Answer queries, given by their files, as the options ask for; gives the exit status.

    `json` are those whose answers are lines of JSON.
    """
    prepared, failed = _prepared(queries, inputs, options)
    for query in prepared:
        for warning in (*query.warnings, *((query.note,) if query.note else ())):
            note(warning)
    with _running(prepared, inputs, limits, options) as found:
        run = failing(found, failed)
        if options.convert is not None and not options.timeline:
            run = replace(run, answers={name: converted(each, options.convert) for name, each in run.answers.items()})
        answers = _write(run, outs, timeline=options.timeline, json=json)
        dead = _report(run, options.dead_letter)
        silent = [unanswered(each, answers[each.name], run, dead, inputs, limits) for each in prepared]
    status = _warn([each for each in silent if each is not None], options.dead_letter)
    if run.aborted:
        raise Aborted("; ".join(f"the query '{name}' has ended: {why}" for name, why in run.aborted.items()))
    return status


def _prepared(
    queries: Mapping[UserFile, CheckedText], inputs: Inputs, options: argparse.Namespace
) -> tuple[list[Prepared], dict[str, DynamicError]]:
    """The queries that can be answered, and by name why others fail before their streams begin (LAWS 2.4)."""
    prepared: list[Prepared] = []
    failed: dict[str, DynamicError] = {}
    for file, (text, checked) in queries.items():
        asked = {"label": str(file), "timeline": options.timeline, "checked": checked}
        try:
            prepared.append(prepare(file.stem, text, inputs, options.engine, **asked))
        except DynamicError as error:
            failed[file.stem] = error
    return prepared, failed


@contextmanager
def _running(
    prepared: Sequence[Prepared], inputs: Inputs, limits: Limits, options: argparse.Namespace
) -> Iterator[FiniteRun]:
    """The answers of some queries, or their timelines; they can be read while inside."""
    if options.timeline:
        with timelines(prepared, inputs, limits, options.convert, options.policy) as run:
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


def _write(
    run: FiniteRun, outs: Mapping[str, UserFile], *, timeline: bool, json: Collection[str]
) -> dict[str, Watched]:
    """Print the one answer, or write each to a file of its own; the lines of a timeline end with newlines already.

    For a query that has ended without an answer nothing is printed, and its file is empty; so too for no lines of JSON.
    """
    show, end = (print_lines, "") if timeline else (print_answer, "\n")
    answers = {name: Watched(pieces) for name, pieces in run.answers.items()}
    for name, answer in answers.items():
        has_answer = name not in run.aborted or answer.has_text
        if outs:
            _write_file(answer, outs[name], end if has_answer and outs[name].suffix != ".jsonl" else "")
        elif has_answer and (name not in json or answer.has_text):
            show(answer)
    return answers


def _write_file(answer: Iterable[str], where: Where, end: str = "") -> None:
    """Write a file of the user's, over what is there."""
    at = Location.of(where)
    try:
        if at.path is None:
            with at.writer() as writer:
                for piece in chain(answer, (end,)):
                    writer.write(piece.encode())
            return
        at.path.parent.mkdir(parents=True, exist_ok=True)
        with at.path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(answer)
            file.write(end)
    except OSError as error:
        raise UsageError(f"cannot write '{where}': {error.strerror}") from None


def _warn(silent: Sequence[Unanswered], dead_letter: UserFile | None) -> int:
    """Name the queries without an answer; gives the exit status, 3 where all items were set aside for one."""
    for each in silent:
        where = f"see {dead_letter}" if dead_letter else "--dead-letter FILE shows them"
        tell(f"warning: {visible(f'{each}; {where}')}")
    return 3 if any(each.is_all for each in silent) else 0


def _report(run: FiniteRun, dead_letter: UserFile | None) -> list[DeadLetter]:
    """Write the dead letters, and report their number; gives them."""
    dead = list(run.dead)
    if dead_letter is not None:
        _write_file((f"{letter.to_json()}\n" for letter in dead), dead_letter)
    where = f", see {dead_letter}" if dead_letter and dead else ""
    parts = [f"items: {run.items:,}", f"dead letters: {len(dead):,}{where}"]
    if run.late:
        parts.append(f"late items: {run.late:,}")
    tell(visible(", ".join(parts)))
    return dead
