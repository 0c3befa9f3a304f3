"""Who only asks for help, or whose query is refused, does not wait for an engine to be loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_HEAVY = ("numba", "llvmlite", "pyarrow", "pyspark", "py4j")
_SHOWN = f"""
import sys
from anabranch.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print("loaded", status, *(name for name in {_HEAVY} if name in sys.modules))
"""


def loaded(*arguments: str) -> list[str]:
    """The exit status of a command, and what it has loaded."""
    found = subprocess.run([sys.executable, "-c", _SHOWN, *arguments], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("command", [(), ("query",), ("explain",), ("run",), ("network", "plan"), ("bench",)])
def test_help(command: tuple[str, ...]) -> None:
    """For all commands together, and for some of them."""
    assert loaded(*command, "--help") == ["0"]


@pytest.mark.parametrize("text", ['for $p in stream("s")/r/p retrun $p', 'for $p in stream("t")/r/p return $p'])
def test_refused_queries(tmp_path: Path, text: str) -> None:
    """One that is not written right, and one that reads what is not there."""
    (tmp_path / "q.xq").write_text(text)
    (tmp_path / "s.xml").write_text("<r><p/></r>")
    assert loaded("query", str(tmp_path / "q.xq"), "--stream", f"s={tmp_path / 's.xml'}") == ["1"]


def test_small_inputs(tmp_path: Path) -> None:
    """Where nobody names an engine they are answered without Spark; what the others do without is needed here."""
    (tmp_path / "q.xq").write_text('for $p in stream("s")/r/p return $p')
    (tmp_path / "s.xml").write_text("<r><p/></r>")
    status, *heavy = loaded("query", str(tmp_path / "q.xq"), "--stream", f"s={tmp_path / 's.xml'}")
    assert (status, heavy) == ("0", ["numba", "llvmlite", "pyarrow"])
