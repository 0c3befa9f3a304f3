"""Prints docs/attacks.md: all attacks, what came of each, and what it cost.

PYTHONPATH=tests python tests/hostile/report.py > docs/attacks.md
"""

from __future__ import annotations

from itertools import groupby

import anabranch.engine.finite  # so that no attack pays for loading it  # noqa: F401
from hostile.attacks import Attack, every
from hostile.outcomes import MEGABYTES, SECONDS, Measured, carried_out

_BEGINNING = (
    "# Attacks",
    "",
    "Input, queries and settings are hostile until shown otherwise.",
    "Each attack of this list was carried out in a process of its own: "
    "an item or a message among good ones, a document, a query beside another one, a file of settings, "
    "a request to a real server, a text that is shown.",
    "What comes of it is one of three: the input is *set aside*, as a dead letter, and its neighbours are answered; "
    "it is *refused*, with an error that says what is wrong, or a status of HTTP; or it is harmless and *answered*.",
    "Messages come from librdkafka's mock of a cluster; what the page draws is what its modules make of a text, and "
    "that a browser then runs nothing is tested in `tests/browser`.",
    "A test carries all of them out and fails where something else comes of one, "
    f"or where one takes more than {SECONDS} seconds of processor time or {MEGABYTES} MB of memory "
    "(`ANABRANCH_MASS=whole pytest tests/hostile`).",
    "`PYTHONPATH=tests python tests/hostile/report.py` prints this page again.",
    "What a query needs to read anything at all is in the figures: some tenths of a second. "
    "Memory is by how much a process grew that has everything loaded.",
    "",
)


def row(attack: Attack, found: Measured) -> str:
    """A row of the table."""
    return f"| {attack.name} | {found.outcome} | {found.seconds:.1f} | {found.megabytes:.0f} |"


def main() -> None:
    """Carry out and print."""
    attacks = list(every())
    print("\n".join(_BEGINNING))
    print(f"There are {len(attacks)} attacks.")
    for group, found in groupby(attacks, lambda each: each.group):
        print(f"\n## {group[0].upper()}{group[1:]}\n")
        print("| attack | outcome | seconds | MB |\n| --- | --- | ---: | ---: |")
        for each in found:
            measured: Measured = carried_out(each)
            print(
                f"| {each.name} | {measured.outcome} | {measured.seconds:.1f} | {measured.megabytes:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
