"""The process in which queries are tried out: whatever a query does there, the run goes on, and it can be ended.

It takes jobs from its standard input and answers each on its standard output, both with their length in front.
Both are JSON, and a job is read by the types of its fields.
It ends when its input does, and when nothing has come for some minutes.

usage: python -m anabranch.service.queries.preview_process
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.finite import FiniteRun, answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Prepared, prepare
from anabranch.errors import AnabranchError
from anabranch.law.calls import ImportedFunction
from anabranch.spark.answers.log import CommittedAnswer
from anabranch.sql import Language
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.limits import Limits
from anabranch.stream.plain import from_plain
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source, read
from anabranch.stream.settings import Settings

LENGTH_BYTES = 8
READY = b"ready"
"""What comes before the first answer, once all is loaded."""
MOST_ANSWERS = 500
MOST_CHARACTERS = 2 << 20
"""Of all answers together."""
MOST_LETTERS = 50
_IDLE_SECONDS = 300.0
_MOST_MEMORY = 3 << 30
"""Bytes of addresses, most of which libraries reserve and never use."""


@dataclass(frozen=True, slots=True)
class PreviewJob:
    """A query to be answered over files."""

    text: str
    language: Language | None
    streams: tuple[Source, ...]
    documents: Mapping[str, tuple[str, str, str]]
    """By name: where it is, and the names of its root and records."""
    functions: Mapping[str, ImportedFunction]
    limits: Limits
    policy: Policy


def answer(job: PreviewJob) -> dict[str, Any]:
    """The answer of a query over its files, as an object for the service."""
    documents = {name: DocumentSource(*each) for name, each in job.documents.items()}
    inputs = Inputs(job.streams, documents, job.functions, finite=True)
    try:
        query = prepare("query", job.text, inputs, language=job.language)
        with answering([query], inputs, Settings(limits=job.limits), policy=job.policy) as run:
            return _found(query, run, job)
    except AnabranchError as error:
        return {"refused": error.message, "hint": error.hint, "code": error.code}
    except (MemoryError, RecursionError):
        return {"refused": "the query takes more memory than there is for trying it", "hint": None, "code": None}


def _found(query: Prepared, run: FiniteRun, job: PreviewJob) -> dict[str, Any]:
    texts: list[str] = []
    left, more = MOST_CHARACTERS, False
    for each in _results(run.answers[query.name]):
        if len(texts) == MOST_ANSWERS or len(each) > left:
            more = True
            break
        texts.append(each)
        left -= len(each)
    read_by = {each.name: each for each in job.streams if each.name in query.checked.streams}
    return {
        "answers": texts,
        "more": more,
        "items": {name: sum(isinstance(each, Item) for each in read(one, job.limits)) for name, one in read_by.items()},
        "dead_letters": [_letter(each) for each in islice(run.dead, MOST_LETTERS)],
        "ended": run.aborted.get(query.name),
    }


def _results(answered: Iterable[str]) -> Iterator[str]:
    """The results one by one, where they can be told apart, or else the answer as a whole."""
    if isinstance(answered, CommittedAnswer) and not answered.subscription.shows:
        json_lines = answered.frame.json or answered.frame.items
        return (each.removesuffix("\n") for each in answered.results()) if json_lines else answered.results()
    return (each for each in ("".join(answered),) if each)


def _letter(letter: DeadLetter) -> dict[str, Any]:
    return {"stream": letter.place.stream, "reason": letter.reason, "code": letter.code, "raw": letter.raw}


# --- the process ------------------------------------------------------------------------------------------------------


def frame(data: bytes) -> bytes:
    """Data with its length in front."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def _jobs(given: BinaryIO, jobs: SimpleQueue[bytes]) -> None:
    """Read jobs until the service is gone; then what is being worked on is nobody's business any more."""
    while len(head := given.read(LENGTH_BYTES)) == LENGTH_BYTES:
        jobs.put(given.read(int.from_bytes(head, "big")))
    os._exit(0)


def main() -> None:
    """Answer jobs, one after the other."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    out = os.dup(1)
    os.dup2(2, 1)  # what functions of users print must not come between
    jobs: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_jobs, args=(sys.stdin.buffer, jobs), daemon=True).start()
    _write(out, READY)  # from here on a job takes the time that it takes
    while True:
        try:
            job = from_plain(PreviewJob, json.loads(jobs.get(timeout=_IDLE_SECONDS)))
        except Empty:
            return
        _write(out, json.dumps(answer(job)).encode())


def _write(out: int, answered: bytes) -> None:
    data = frame(answered)
    while data:
        data = data[os.write(out, data) :]


if __name__ == "__main__":
    main()
