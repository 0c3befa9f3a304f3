"""The simulated world finds nothing in production, and finds what is taken out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch.storage.disk import sync
from mass import Mass
from simulation.disk import Folder, PowerCut, SimulatedDisk
from simulation.mutants import MUTANTS
from simulation.world import World

_RUN = Path(__file__).parent / "run.py"
_HUNDRED = 100


class Seeds:
    """A process that runs seeds; strings must be hashed alike in it each time."""

    def __init__(self) -> None:
        command = [sys.executable, str(_RUN), "--ask"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, seed: int, mutant: str = "") -> dict[str, Any]:
        """Run a seed; its outcome."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{seed} {mutant}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"seed {seed} has ended its process; again: make simulate seed={seed}"
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture
def seeds() -> Iterator[Seeds]:
    """A process that runs seeds."""
    found = Seeds()
    yield found
    found.close()


def test_every_seed_keeps_all_promises(seeds: Seeds, mass: Mass) -> None:
    """Whatever is killed, cut off, late, lost or done twice: answers and sinks are those of an undisturbed run."""
    for number in mass.cases(200):
        found = seeds.run(number)
        assert "error" not in found, f"again: make simulate seed={number}\n{found['where']}\n{found['error']}"


def test_each_mutant_is_found(seeds: Seeds, mass: Mass) -> None:
    """Without one of the things on which the promises stand, one of the first hundred seeds breaks a promise."""
    names = list(MUTANTS)
    for number in mass.cases(len(names)):
        found = (seeds.run(seed, names[number]) for seed in range(_HUNDRED))
        assert any("error" in each for each in found), f"nothing finds '{names[number]}'"


@pytest.mark.mass
def test_a_seed_replays_exactly() -> None:
    """Two processes take the same steps, in the same order, to the same end, whatever they did before."""
    outcomes = []
    for before in ((), (5,)):
        process = Seeds()
        for seed in before:
            process.run(seed)
        outcomes.append([process.run(seed) for seed in (1, 2, 9)])
        process.close()
    for one, other in zip(*outcomes, strict=True):
        assert "error" not in one
        assert one["steps"] > 100
        assert (one["trace"], one["steps"], one["kills"]) == (other["trace"], other["steps"], other["kills"])


# --- the disk itself --------------------------------------------------------------------------------------------------


def cut(names: float, content: float) -> PowerCut:
    return PowerCut(Random(1), names, content)


def test_what_was_synced_survives_a_power_cut(tmp_path: Path) -> None:
    """A file whose bytes and whose name were synced is there; one of which either was not may be gone or empty."""
    with pytest.MonkeyPatch.context() as patch:
        disk = SimulatedDisk(World(1), tmp_path, patch)
        for name in ("whole", "unnamed", "empty"):
            with open(tmp_path / name, "wb") as file:
                file.write(b"bytes")
                file.flush()
                if name != "empty":
                    os.fsync(file.fileno())
            if name == "whole":
                sync(tmp_path)
        disk.cut_power(cut(0, 0))
        disk.restart()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"whole": b"bytes"}


def test_an_order_that_nobody_asked_for_is_not_kept(tmp_path: Path) -> None:
    """A name that was synced stands for bytes that were not: nothing of them need be there."""
    with pytest.MonkeyPatch.context() as patch:
        disk = SimulatedDisk(World(1), tmp_path, patch)
        with open(tmp_path / "new", "wb") as file:
            file.write(b"bytes")
        (tmp_path / "new").rename(tmp_path / "name")
        sync(tmp_path)
        disk.cut_power(cut(1, 0))
        disk.restart()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"name": b""}


def test_the_end_of_a_process_loses_nothing(tmp_path: Path) -> None:
    """What it had written is in the cache of the machine, under the names that it had; it is still not synced."""
    with pytest.MonkeyPatch.context() as patch:
        disk = SimulatedDisk(World(1), tmp_path, patch)
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "file").write_bytes(b"bytes")
        disk.kill()
        (tmp_path / "a" / "file").write_bytes(b"while it unwinds")
        disk.restart()
        assert (tmp_path / "a" / "file").read_bytes() == b"bytes"
        disk.cut_power(cut(0, 0))
        disk.restart()
        assert list(tmp_path.iterdir()) == []


def test_bytes_are_torn_by_blocks() -> None:
    """Of bytes that were not synced some blocks are old and some new, and the length is between both."""
    random = Random(3)
    found = {PowerCut(random, 0, 1).bytes_of(b"a" * 100, b"b" * 300) for _ in range(200)}
    assert any(set(each) == {97, 98} for each in found)
    assert {len(each) for each in found} <= set(range(100, 301))
    assert len(found) > 50


def test_a_rename_shows_one_file_or_the_other() -> None:
    """A name that was there before a rename stands for one of both afterwards, never for nothing."""
    folder, cut_off = Folder(), PowerCut(Random(1), 0.5, 0)
    old, new = Folder(), Folder()
    folder.set("name", old)
    folder.sync()
    folder.set("name", new)
    assert {id(cut_off.node_of(folder, "name")) for _ in range(50)} == {id(old), id(new)}
