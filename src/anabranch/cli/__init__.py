"""The command line: `anabranch query | explain | run | answer | state | history | accent | network | ...`.

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
    from anabranch.cli.parser import command_parser  # here, so that signals are handled while everything is loaded

    options = command_parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int | None] = options.run
    return run(options) or 0
