"""Fuzzing with coverage: inputs that reach new code are kept and mutated on, by libFuzzer, which atheris brings.

    python tests/fuzzing/run.py [--seconds 3600] [--folder build/fuzzing] [TARGET ...]    # make fuzz

Each target is fuzzed in a process of its own, in which loops that are otherwise compiled run as Python, so that their
lines count as coverage, too.
Then all that was found is read again by the compiled loops, with their bounds checked (`replay.py`).
What was found stays in the folder, and the next run goes on from it.
An input for which something does not hold ends the run of its target, and is printed with what went wrong.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from subprocess import run

HERE = Path(__file__).parent
_HANGS = 120
"""Seconds behind which libFuzzer gives up an input that is not even in Python code."""
_MEGABYTES = 4_096


def fuzz_all(names: list[str], seconds: float, folder: Path) -> list[str]:
    """Fuzz some targets one after the other, and read what was found again; gives those that failed."""
    from fuzzing.targets import TARGETS

    chosen = names or list(TARGETS)
    if unknown := [each for each in chosen if each not in TARGETS]:
        raise SystemExit(f"no targets: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    each_seconds = max(1, round(seconds / len(chosen)))
    failed = [name for name in chosen if _fuzzed(name, each_seconds, folder) != 0]
    return failed + [name for name in chosen if name not in failed and _replayed(name, folder) != 0]


def _fuzzed(name: str, seconds: int, folder: Path) -> int:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(HERE.parent)}
    asked = ["--seconds", str(seconds), "--folder", str(folder), "--one", name]
    return run([sys.executable, "-W", "ignore", __file__, *asked], env=environment, check=False).returncode


def _replayed(name: str, folder: Path) -> int:
    kept = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder.absolute() / "kernels")}
    environment = {**os.environ, **kept, "PYTHONPATH": str(HERE.parent)}
    return run([sys.executable, HERE / "replay.py", folder, name], env=environment, check=False).returncode


def corpus_of(name: str, folder: Path) -> Path:
    """Where the inputs of a target are."""
    return folder / name.replace(" ", "-")


def fuzz_one(name: str, seconds: int, folder: Path) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["anabranch"]):
        from fuzzing.target import LONGEST, try_input
        from fuzzing.targets import TARGETS

    target = TARGETS[name]
    corpus = corpus_of(name, folder)
    seeds, failures = corpus / "seeds", corpus / "failures"
    for each in (corpus / "found", seeds, failures):
        each.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (seeds / f"{number:04}").write_bytes(seed[:LONGEST])
    words = corpus / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words if word))
    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-timeout={_HANGS}", f"-rss_limit_mb={_MEGABYTES}"]
    places = [f"-artifact_prefix={failures}/", f"-dict={words}", str(corpus / "found"), str(seeds)]
    quiet = ["-verbosity=0", "-print_final_stats=1"]
    print(f"--- {name}, {seconds} seconds", flush=True)
    atheris.Setup([sys.argv[0], *limits, *quiet, *places], lambda data: try_input(target, data))
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    """A word as dictionaries of libFuzzer have it."""
    return "".join(f"\\x{each:02X}" for each in word)


if __name__ == "__main__":
    parser = ArgumentParser(description="fuzz the readers of the project, with coverage")
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--folder", type=Path, default=HERE.parent.parent / "build/fuzzing")
    parser.add_argument("--one", help="fuzz one target, in this process")
    parser.add_argument("targets", nargs="*")
    given = parser.parse_args()
    sys.path[:0] = [str(HERE.parent)]
    if given.one:
        fuzz_one(given.one, round(given.seconds), given.folder)
    elif failed := fuzz_all(given.targets, given.seconds, given.folder):
        raise SystemExit(f"failed: {', '.join(failed)}; their inputs are in {given.folder}")
