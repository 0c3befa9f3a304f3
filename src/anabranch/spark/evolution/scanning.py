"""Searching ranges for accents and punctuations, and for nothing else.

Control elements carry their name in plain bytes, and in a line of XML also the declaration of its namespace.
So a file of lines is searched at the speed of memory, and only lines that hold such a word are read; of documents and
packed files all items are cut out, and those with such a word read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from anabranch.algebra.accents.passing import is_change
from anabranch.columnar.items.course import ESCAPE, WORDS, may_hold
from anabranch.columnar.scan.kernels import find_word
from anabranch.errors import AnabranchError
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.evolution.changes import Change, changes_of
from anabranch.spark.evolution.rerun import lively
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Range
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, Cut, LineSplitter, line_cut
from anabranch.stream.reading.markup import BOM
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import Format

_SMALL = 1 << 20
"""Bytes that are searched at a time: so few that they are still at hand when they have been read."""
_NEEDLES: dict[Format, Sequence[bytes]] = {"lines": (b"xmlns",), "json": (*WORDS, ESCAPE), "document": WORDS}


def search_ranges(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that Spark maps over the rows of an epoch."""
    found = [Range(**row) for batch in batches for row in batch.to_pylist()]
    if found:
        report = search(job, found).to_json()
        yield pa.RecordBatch.from_pydict({"sequence": [found[0].sequence], "report": [report]})


def search(job: Job, found: Iterable[Range]) -> Report:
    """What is said in some ranges, as far as their streams have had such things lately."""
    plan, searched = job.plan.load(), lively(job)
    streams = {each.stream: each for each in plan.streams if each.stream in searched}
    changes: dict[str, list[Change]] = {}
    with suppress(AnabranchError):  # the job proper comes to the same, and says so
        for reach in found:
            if reach.mark is None and reach.stream in streams:
                stream = streams[reach.stream]
                root, carry = parse_root(stream.root.encode()), job.carry(reach)
                reader = RangeReader(stream, root, plan.limits, reach, carry, accents=plan.accents)
                for element in reader.elements(_cuts(reader, plan.limits, _NEEDLES[stream.format])):
                    if is_change(element):
                        changes.setdefault(reach.stream, []).extend(changes_of(element, reach, job.epoch))
    return Report(changes=changes)


def _cuts(reader: RangeReader, limits: Limits, needles: Sequence[bytes]) -> Iterator[Cut]:
    """The pieces of a range that may be control elements; lines without one of the needles are not."""
    position = reader.start.position
    splitter: LineSplitter | None = None
    for part in reader.parts(_SMALL):
        if isinstance(part, DeadLetter):
            continue
        if reader.lines and splitter is None and (part is None or part.endswith(b"\n")):
            yield from _lines(part or b"", position, limits, needles)
            position += len(part or b"")
            continue
        if reader.lines:  # a line longer than what is read at a time, or the last one, without its newline
            splitter = splitter or LineSplitter(limits, Carry(position))
            cuts = splitter.finish() if part is None else splitter.feed(part)
        else:
            shredded = reader.shredder.finish() if part is None else reader.shredder.feed(part, None)
            cuts = [cut for each in shredded for cut in each.cuts.values()]
        yield from (cut for cut in cuts if any(may_hold(word, cut.raw) for word in WORDS))


def _lines(data: bytes, position: int, limits: Limits, needles: Sequence[bytes]) -> Iterator[Cut]:
    """The lines that hold one of the needles, in order, of data that holds whole lines."""
    starts: set[int] = set()
    searched = np.frombuffer(data, np.uint8)
    for word in needles:
        needle = np.frombuffer(word, np.uint8)
        at = find_word(searched, 0, needle)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            at = find_word(searched, data.find(b"\n", at) + 1, needle)
    for start in sorted(starts):
        first = start + len(BOM) * (position + start == 0 and data.startswith(BOM))
        cut = line_cut(position + first, data[first : data.find(b"\n", start)], limits)
        if cut is not None and any(may_hold(word, cut.raw) for word in WORDS):
            yield cut
