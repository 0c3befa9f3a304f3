"""What the commands' arguments have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeAlias

from anabranch.errors import UsageError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse gives it no other name


def pairs_of(given: Sequence[str], option: str) -> dict[str, str]:
    """By name, the values of an option that is given as NAME=VALUE, any number of times."""
    pairs: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} takes NAME=VALUE, not '{each}'")
        if name in pairs:
            raise UsageError(f"{option} is given twice for '{name}'")
        pairs[name] = value
    return pairs
