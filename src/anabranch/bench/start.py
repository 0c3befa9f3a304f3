"""How long a user waits for one command: each figure is the time of a new process, from its start to its end.

`seconds` has the help, a query that is refused, and the query `examples/rxj.xq` over nine photons, by each engine.
`sizes` has the same query over more of them, in this process and on Spark: where the two meet says for how large an
input `anabranch query` does without Spark where no engine is named (`engine/preparing.py`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from anabranch.bench.harness.timing import Figures, Rounds, compare, timed
from anabranch.errors import StateError
from anabranch.stream.photons import photons

_ROUNDS, _QUICK_ROUNDS = 5, 1
_SIZES, _QUICK_SIZES = (1, 16, 64, 256), (1,)
"""The sizes of inputs, in megabytes."""
_ENGINES = ("reference", "local", "spark")
_FEW = 9
_REFUSED = "stream('photons')/photons/photon union 1"


def measure(quick: bool) -> Figures:
    """Run the bench."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    query = files("anabranch").joinpath("examples/rxj.xq").read_text("utf-8")
    with TemporaryDirectory(prefix="anabranch-") as name:
        folder = Path(name)
        asked, refused, few = folder / "rxj.xq", folder / "refused.xq", folder / "few.xml"
        asked.write_text(query, encoding="utf-8")
        refused.write_text(_REFUSED, encoding="utf-8")
        _write_photons(few, _FEW)
        commands: dict[str, tuple[Sequence[str], int]] = {
            "help": (("--help",), 0),
            "refused": (_query(refused, few), 1),
            **{each: (_query(asked, few, each), 0) for each in _ENGINES},
        }
        seconds = {each: median(_seconds(*command) for _ in range(rounds)) for each, command in commands.items()}
        sizes = {
            f"mb{size}": _engines(asked, folder / f"{size}.xml", size << 20, quick)
            for size in (_QUICK_SIZES if quick else _SIZES)
        }
    return {"seconds": seconds, "sizes": sizes}


def _query(text: Path, stream: Path, engine: str = "local") -> Sequence[str]:
    return "query", str(text), "--stream", f"photons={stream}", "--engine", engine


def _seconds(arguments: Sequence[str], status: int) -> float:
    """The seconds of a command that must end with this status."""
    command = (sys.executable, "-c", "import sys; from anabranch.cli import main; sys.exit(main())", *arguments)
    done: list[subprocess.CompletedProcess[bytes]] = []
    seconds = timed(lambda: done.append(subprocess.run(command, capture_output=True, check=False)))
    if done[0].returncode != status:
        raise StateError(f"'{' '.join(arguments)}' ended with {done[0].returncode}: {done[0].stderr.decode()[-500:]}")
    return seconds


def _engines(query: Path, stream: Path, size: int, quick: bool) -> Figures:
    """The seconds that an input of this size takes in a process of its own and on Spark, in turns."""
    _write_photons(stream, size // len(next(photons(1, 1))))
    rounds = Rounds(0, 1) if quick else Rounds(0, 2)
    found = compare(
        lambda: _seconds(_query(query, stream, "local"), 0),
        lambda: _seconds(_query(query, stream, "spark"), 0),
        rounds,
        f"{size >> 20} MB",
    )
    stream.unlink()
    return {"local_s": median(found.first), "spark_s": median(found.second), "local_vs_spark": found.ratio}


def _write_photons(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("<photons>\n")
        file.writelines(f"{photon}\n" for photon in photons(count, 1))
        file.write("</photons>\n")
