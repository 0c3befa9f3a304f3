"""Who only asks for help, or whose query is refused, does not wait for an engine to be loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_HEAVY = ("numba", "llvmlite", "pyarrow", "pyspark", "py4j", "sqlglot", "starlette", "uvicorn")
_SHOWN = f"""
import json, sys
from anabranch.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code
    print("loaded", status, *(name for name in {_HEAVY} if name in sys.modules))
"""


@pytest.mark.mass
def test_what_commands_load(tmp_path: Path) -> None:
    """Help for all commands together and for some of them, and queries that are not written right or read what is not
    there: nothing of it. Small inputs are answered without Spark, where nobody names an engine: the rest is needed.
    """
    commands = [[*each, "--help"] for each in ([], ["query"], ["explain"], ["run"], ["network", "plan"], ["bench"])]
    texts = ("for $p in stream('s')/r/p retrun $p", "for $p in stream('t')/r/p return $p", "stream('s')/r/p")
    (tmp_path / "s.xml").write_text("<r><p/></r>")
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.xq").write_text(text)
        commands.append(["query", str(tmp_path / f"{number}.xq"), "--stream", f"s={tmp_path / 's.xml'}"])
    done = subprocess.run([sys.executable, "-c", _SHOWN, json.dumps(commands)], capture_output=True, text=True)
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("loaded ")]
    assert found == [*[["0"]] * 6, ["1"], ["1"], ["0", "numba", "llvmlite", "pyarrow"]], done.stderr


def test_what_the_intake_loads() -> None:
    """Spark runs the intake in processes of its own, anew for each run: they load no loops, queries or branches."""
    asked = "import sys, anabranch.spark.intake.source; print(*(name for name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    parts = {name.split(".")[1] for name in loaded if name.startswith("anabranch.")}
    assert "numba" not in loaded
    assert parts.isdisjoint({"language", "law", "algebra", "columnar", "branch", "runtime", "sharing", "engine"})
