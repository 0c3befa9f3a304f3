"""What the JVM and its Python workers print on standard error, as far as it is of use to anybody.

Two things are not.
Java says at its start which modules it has.
And Spark ends Python workers that had nothing to do for a minute by closing their socket; each of them then fails to
write that its input has ended, and prints the traceback of that:

    Traceback (most recent call last):
      File ".../pyspark/daemon.py", line 264, in manager
        code = worker(sock, authenticated)
      File ".../pyspark/daemon.py", line 95, in worker
        outfile.flush()
    BrokenPipeError: [Errno 32] Broken pipe

Workers that end together print theirs at the same time, so that lines of one stand among those of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_JAVA_NOTICE = "Using incubator modules"
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = "  File "
_DAEMON = "daemon.py"
_CLOSED = "BrokenPipeError:"


def worth_telling(lines: Iterable[str]) -> Iterator[str]:
    """The lines that users should see, in order; those of a traceback come when its last line is there."""
    held: list[str] = []
    ended = 0  # workers whose tracebacks have begun, and whose last lines are still to come
    for line in lines:
        if line.startswith(_TRACEBACK) or (line.startswith(" ") if held else _is_daemons(line)):
            held.append(line)
            continue
        if line.startswith(_CLOSED) and (held or ended) and all(map(_is_daemons, _frames(held))):
            ended = max(0, ended + sum(each.startswith(_TRACEBACK) for each in held) - 1)
        else:
            yield from held
            if _JAVA_NOTICE not in line:
                yield line
        held.clear()
    yield from held


def _frames(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line.startswith(_FRAME))


def _is_daemons(line: str) -> bool:
    """Whether a line is a frame of the process that starts Python workers."""
    return line.startswith(_FRAME) and "pyspark" in line and _DAEMON in line
