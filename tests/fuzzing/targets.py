"""All targets of the fuzzer, by name."""

from __future__ import annotations

from fuzzing import scanning, texts, wire
from fuzzing.target import Target

TARGETS: dict[str, Target] = {each.name: each for each in (*scanning.TARGETS, *texts.TARGETS, *wire.targets())}
