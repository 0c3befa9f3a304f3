"""Reads inputs that a fuzzer has found again, in a process of its own, whose loops are compiled with bounds checked.

NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=... python tests/fuzzing/replay.py FOLDER TARGET
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fuzzing.run import corpus_of
from fuzzing.target import try_input
from fuzzing.targets import TARGETS


def main(folder: Path, name: str) -> None:
    """Read all inputs of a target."""
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1", "the compiled loops would read anything"
    target = TARGETS[name]
    for seed in target.seeds:
        target.check(seed)  # without a limit of time, for here most loops are compiled
    found = sorted((corpus_of(name, folder) / "found").iterdir())
    for each in found:
        try_input(target, each.read_bytes())
    print(f"--- {name}: {len(found):,} inputs read again, compiled, with bounds checked", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
