"""What the JVM prints on standard error is passed on, but for what is of no use to anybody."""

from __future__ import annotations

import pytest

from anabranch.spark.jvm_errors import worth_telling

ENDED = """\
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/venv/lib/python3.11/site-packages/pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""
FIRST, *OTHERS = ENDED.splitlines(keepends=True)
FAILED = """\
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
  File "/venv/lib/python3.11/site-packages/pyspark/worker.py", line 1, in main
    write(answer)
BrokenPipeError: [Errno 32] Broken pipe
"""
OTHER = 'Traceback (most recent call last):\n  File "pyspark/daemon.py", line 1, in manager\nMemoryError\n'


def told(text: str) -> str:
    return "".join(worth_telling(text.splitlines(keepends=True)))


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        ENDED,
        ENDED * 4,
        pytest.param(FIRST * 2 + "".join(OTHERS) * 2, id="the second begins before the first has gone on"),
        pytest.param(FIRST * 2 + "".join(each * 2 for each in OTHERS), id="line by line"),
    ],
)
def test_what_is_of_no_use(text: str) -> None:
    """Java's modules, and Python workers that Spark has ended because they had nothing to do."""
    assert told(text) == ""
    assert told(f"before\n{text}behind\n") == "before\nbehind\n"


@pytest.mark.parametrize("text", ["out of memory\n", FAILED, OTHER, FIRST, "".join(OTHERS[:3]), FIRST + OTHER])
def test_everything_else_is_passed_on(text: str) -> None:
    """Also the traceback of another error, or of one in our own code, and one that breaks off."""
    assert told(text) == text
    assert told(ENDED + text) == text
