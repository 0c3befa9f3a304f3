"""`anabranch explain`: what queries have in common, as text, JSON or a drawing."""

from __future__ import annotations

import argparse
from pathlib import Path

from anabranch.cli.arguments import Commands, declare_functions, declare_language, user_file


def declare(commands: Commands) -> None:
    """Declare the command and its arguments."""
    explain = commands.add_parser("explain", help="show what queries have in common")
    explain.add_argument("queries", nargs="+", type=user_file, metavar="Q.xq", help="a file with one query")
    declare_language(explain)
    explain.add_argument("--dtd", action="append", default=[], metavar="NAME=FILE", help="the schema of a stream")
    explain.add_argument("--stream", action="append", default=[], metavar="NAME=FILE", help="its first items are read")
    explain.add_argument("--updates", action="append", default=[], metavar="NAME", help="a stream that is edited")
    declare_functions(explain)
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.add_argument("--svg", type=Path, metavar="FILE", help="draw it there, too")
    explain.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> None:
    # Imported here, so that help need not wait for it.
    from anabranch.cli.explaining import explain

    explain(options)
