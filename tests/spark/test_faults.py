"""Spark's errors in our words, and our own on their way through a task; no Spark needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.columnar.items.coverage import ReadCounts
from anabranch.errors import AnabranchError, StateError, StreamError
from anabranch.spark.answers.segments import (
    BUFFER_BYTES,
    DEAD_LETTERS,
    SegmentWriter,
    read_chunk,
    read_dead_letters,
    read_index,
)
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Carried
from anabranch.spark.epoch.job import Job, Outbox, Report
from anabranch.spark.epoch.task import work
from anabranch.spark.faults import Fault, translated
from anabranch.spark.intake.ranges import Position, Range
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.state.files import SavedState
from anabranch.storage import Location
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream, Source, StreamForm

IN_TASK = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Lost task 0.3
  File "task.py", line 70, in work
    with open(path) as file:
ZeroDivisionError: an earlier one

During handling of the above exception, another exception occurred:
  File "task.py", line 80, in work
{error}
 SQLSTATE: XXKST
	at org.apache.spark.scheduler.Task.run(Task.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            IN_TASK.format(error="OSError: [Errno 5] Input/output error"),
            AnabranchError,
            "the trunk failed on Spark: OSError: [Errno 5] Input/output error",
        ),
        (IN_TASK.format(error="OSError: [Errno 28] No space left on device"), StateError, "the disk is full"),
        (IN_TASK.format(error="anabranch.errors.StreamError: cannot read 'x'"), StreamError, "cannot read 'x'"),
        (
            "[STREAM_FAILED] Query terminated with exception: out of memory\nSQLSTATE: XXKST",
            AnabranchError,
            "the trunk failed on Spark: Query terminated with exception: out of memory",
        ),
        (IN_TASK.format(error="MemoryError"), AnabranchError, "a worker of Spark has no memory left"),
        (
            IN_TASK.format(error="numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB"),
            AnabranchError,
            "a worker of Spark has no memory left",
        ),
        (
            IN_TASK.format(error="pyarrow.lib.ArrowMemoryError: malloc of size 1073741824 failed"),
            AnabranchError,
            "a worker of Spark has no memory left",
        ),
        (
            "An error occurred while calling o1.collect.\n: java.lang.OutOfMemoryError: Java heap space",
            AnabranchError,
            "a worker of Spark has no memory left",
        ),
        (
            IN_TASK.format(error="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"),
            AnabranchError,
            "a worker of Spark has died at each attempt to run a task",
        ),
        ("", AnabranchError, "the trunk failed on Spark: RuntimeError"),
    ],
)
def test_the_innermost_cause_is_shown(text: str, kind: type[AnabranchError], message: str) -> None:
    """Of layers of stack traces one line is left: the last Python error, or Spark's first line."""
    error = translated(RuntimeError(text))
    assert type(error) is kind
    assert error.message == message


def test_an_error_of_ours_travels_as_a_value() -> None:
    """Kind, message, code and hint arrive as they left, by way of JSON."""
    fault = Fault.of(StreamError("no", code="FODC0002", hint="try"))
    kept = SavedState(1, "f:0:1:2", ("g:0:1:2",), 3, {"s/0": 4})
    carries = {"a": None, "b": Carried(5, "{}")}
    sent = Report({"s": ReadCounts(1)}, 2, (), {"a": Position(3, 4)}, carries, {6: kept, 7: None}, fault)
    report = Report.from_json(sent.to_json())
    assert report == sent
    assert report.fault is not None
    error = report.fault.error()
    assert (type(error), error.message, error.code, error.hint) == (StreamError, "no", "FODC0002", "try")


def test_a_task_reports_what_it_cannot_read(tmp_path: Path) -> None:
    """A file that is gone is an error in the report; raised, it would be tried four times."""
    path = tmp_path / "in"
    path.write_text("<p/>\n")
    stream = KnownStream.of(Source("s", path), StreamForm("lines", "<root/>"))
    query = Registration(0, "q", 'stream("s")/root/p', 0)
    plan = PlanFile.save(Plan((stream,), (query,), Limits(), 1), Location.of(tmp_path))
    reach = Range("s", "0", 0, "in", str(path), 0, 5, last=True, packed=False, sequence=0)
    job = Job(plan, Checkpoint.make(tmp_path / "state"), 0, {})
    assert work(job, [reach], Outbox()).items == {"s": 1}
    path.unlink()
    fault = work(job, [reach], Outbox()).fault
    assert fault is not None
    assert fault.error().message == f"cannot read '{path}': No such file or directory"


def test_a_segment_holds_the_answers_of_all_subscriptions(tmp_path: Path) -> None:
    """Chunks by subscription, written out before they grow too large, give back what was added, in order."""
    letter = DeadLetter(Place("s", "in", 7), "bad\u2028line", '<p>"\n', "FORG0001", "q")
    with SegmentWriter(Location.of(tmp_path), 3, 14) as segment:
        for text in ("<a>é</a>", "x" * BUFFER_BYTES, "<b/>"):
            segment.add(0, text)
            segment.add(1, "<c/>")
        segment.bury(letter)
    assert len(list(tmp_path.iterdir())) == 1
    found = dict.fromkeys((0, 1), "")
    index = read_index(Location.of(tmp_path), segment.segments)
    (buried,) = index.of(DEAD_LETTERS)
    assert list(read_dead_letters(Location.of(tmp_path), buried)) == [letter]
    assert segment.segments[0].letters == 1
    for number in found:
        found[number] = "".join(read_chunk(Location.of(tmp_path), chunk) for chunk in index.of(number))
    assert found == {0: "<a>é</a>" + "x" * BUFFER_BYTES + "<b/>", 1: "<c/><c/><c/>"}
    first = index.of(0)[0]
    assert first.entries == 2
    assert read_chunk(Location.of(tmp_path), first, first.first) == "<a>é</a>"
    assert (
        read_chunk(Location.of(tmp_path), first, 4) == "<a>"
    )  # the second byte of the é is missing, so all of it is left out


def test_a_task_without_answers_writes_no_segment(tmp_path: Path) -> None:
    """Nothing to say, no file."""
    with SegmentWriter(Location.of(tmp_path), 0, 0):
        pass
    assert list(tmp_path.iterdir()) == []
