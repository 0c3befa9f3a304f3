"""The parser of the command line: the groups of commands, in the order in which `anabranch --help` lists them.

A group is a file with `declare(commands)`, which adds its commands with their arguments,
and sets `run`, the function that does the work.
"""

from __future__ import annotations

import argparse

from anabranch.cli import explain, network, query, site, trying
from anabranch.cli.printing import CommandParser


def command_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = CommandParser(
        prog="anabranch",
        description="Standing XQuery subscriptions over streams, on Spark.",
        epilog="anabranch --url URL COMMAND asks a service; anabranch --url URL --help lists its commands.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in (query, explain, site, network, trying):
        group.declare(commands)
    return parser
