"""Runs seeds of the simulation, many at a time, and prints those that have found something.

usage: make simulate                          10,000 seeds
       make simulate ANABRANCH_SEEDS=500      the first 500
       make simulate seed=17                  one seed again, step by step as before, with all that it says

A test asks it for one seed after the other (`--ask`), in a process of their own: strings must be hashed alike each
time, which is settled before Python starts.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import process_time, time
from traceback import format_exc
from typing import Any

_SEEDS = 10_000
_PATIENCE = 300
"""Seconds after which a seed hangs."""


def run_seed(seed: int, mutant: str = "") -> dict[str, Any]:
    """Run a seed, for a trunk and for the links of a network; its outcome, or what it has found."""
    from simulation.links import send
    from simulation.mutants import MUTANTS
    from simulation.simulation import simulate

    faulthandler.dump_traceback_later(_PATIENCE, exit=True)
    begun = process_time()
    try:
        adapt = [MUTANTS[mutant]] if mutant else []
        found = asdict(simulate(seed, *adapt))
        sent = asdict(send(seed, *adapt))
        found |= {key: found[key] + sent[key] for key in ("steps", "lives", "kills", "epochs", "trace")}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found = {"seed": seed, "error": f"{type(error).__name__}: {error}", "where": format_exc()}
    finally:
        faulthandler.cancel_dump_traceback_later()
    return found | {"seconds": process_time() - begun}


def _answers() -> Iterator[dict[str, Any]]:
    """The outcomes of the seeds that are asked for, line by line: a seed, and perhaps a mutant."""
    for line in sys.stdin:
        seed, *mutant = line.split()
        yield run_seed(int(seed), *mutant)


def _run_all(first: int, count: int) -> int:
    """Run so many seeds from the first one on; gives how many have found something."""
    began, seconds, steps, lives, kills, epochs, bad = time(), 0.0, 0, 0, 0, 0, []
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for done, found in enumerate(processes.map(run_seed, range(first, first + count)), 1):
            seconds += found["seconds"]
            if "error" in found:
                bad.append(found["seed"])
                print(f"seed {found['seed']}: {found['error'][:2_000]}")
                print(f"    again: make simulate seed={found['seed']}", flush=True)
            else:
                steps, lives = steps + found["steps"], lives + found["lives"]
                kills, epochs = kills + found["kills"], epochs + found["epochs"]
            if done % 50 == 0:
                print(f"{done:,} of {count:,} seeds, {len(bad)} have found something", flush=True)
    print(
        f"{count:,} seeds: {lives:,} runs, {kills:,} of them killed, {epochs:,} epochs, {steps:,} steps; "
        f"{len(bad)} seeds have found something; {seconds / count:.2f} s of processor time each, "
        f"{time() - began:,.0f} s in all"
    )
    return len(bad)


def main() -> int:
    """Run what is asked for; gives the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("ANABRANCH_SEEDS") or _SEEDS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--mutant", default="")
    parser.add_argument("--ask", action="store_true")
    given = parser.parse_args()
    if given.ask:
        for found in _answers():
            print(json.dumps(found), flush=True)
        return 0
    if given.seed is None:
        return 1 if _run_all(given.first, given.seeds) else 0
    found = run_seed(given.seed, given.mutant)
    print(found.pop("where", ""), end="")
    print(json.dumps(found, indent=2))
    return 1 if "error" in found else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        tests = str(Path(__file__).resolve().parent.parent)
        settings = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": tests}
        os.execve(sys.executable, [sys.executable, "-m", "simulation.run", *sys.argv[1:]], settings)
    sys.exit(main())
