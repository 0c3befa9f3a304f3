"""The command line: `anabranch query | explain | run | answer | state | history | accent | network | ...`.

With `--url` in front, commands ask a service (`remote.py`).

One file per group of commands; each declares its commands with their arguments, and `parser.py` puts them together.
Answers go to standard output or to files, everything else to standard error.
The exit status is 0; 1 where a query is refused, aborted or fails; 2 for wrong usage; 3 where `query` has set aside
all items for a query; 130 where SIGINT or SIGTERM has ended a command early, except for a run, which is ended so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from anabranch.cli.interrupting import interruptible
from anabranch.errors import AnabranchError, UsageError
from anabranch.visible import tell

_OF_A_SERVICE = ("--url", "--token-file")
"""What stands in front of a command that asks a service."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status. Without arguments it is that of the process, which ends afterwards."""
    try:
        with interruptible(for_good=arguments is None):
            return _command(arguments)
    except UsageError as error:
        tell(error)
        return 2
    except AnabranchError as error:
        tell(error)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # the reader has closed the pipe
        return 0
    except KeyboardInterrupt:
        return 130


def _command(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    # imported here, so that signals are handled while everything is loaded, and only what is needed is
    if given and given[0].partition("=")[0] in _OF_A_SERVICE:
        from anabranch.cli.remote import remote_parser

        parser = remote_parser()
    else:
        from anabranch.cli.parser import command_parser

        parser = command_parser()
    options = parser.parse_args(given)
    run: Callable[[argparse.Namespace], int | None] = options.run
    return run(options) or 0
