"""Output that commands have in common.

An answer is data, and goes into a pipe or a file byte for byte.
On a terminal nothing from data, queries or file names may act (`visible.py`): there an answer has references for
invisible characters, which mean the same in XML, and all other output has them everywhere.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from anabranch.errors import UsageError
from anabranch.storage import Location, Where
from anabranch.stream.files import Claim, check_claims
from anabranch.visible import visible_json, visible_lines


def print_answer(pieces: Iterable[str]) -> None:
    """Print an answer in pieces; adds a newline at its end if it has none."""
    out = sys.stdout
    shown: Callable[[str], str] = visible_lines if out.isatty() else str
    last = ""
    for piece in pieces:
        _write(out, shown(piece))
        last = piece or last
    if not last.endswith("\n"):
        out.write("\n")
    out.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of JSON, each as soon as it is there; they end with newlines already."""
    for line in lines:
        _write_json(sys.stdout, line)
        sys.stdout.flush()


def print_report(lines: Iterable[str]) -> None:
    """Print lines about queries, streams and files."""
    for line in lines:
        _write(sys.stdout, f"{visible_lines(line)}\n")
    sys.stdout.flush()


def print_json(value: Any) -> None:
    """Print a value as JSON, for people too."""
    _write_json(sys.stdout, f"{visible_json(value, 2)}\n")
    sys.stdout.flush()


def _write_json(out: TextIO, text: str) -> None:
    """Write JSON, with escapes for characters that the output cannot encode."""
    try:
        text.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        text = re.sub("[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], text)
    out.write(text)


def _write(out: TextIO, text: str) -> None:
    """Write text, with references for characters that the output cannot encode."""
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "xmlcharrefreplace").decode(encoding))


class CommandParser(argparse.ArgumentParser):
    """A parser of arguments whose messages cannot act on a terminal."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(visible_lines(message), file)


def short(where: Where) -> str:
    """A path, relative to the working directory where it lies inside; or an address."""
    here, path = Path.cwd(), Location.of(where).path
    if path is None:
        return str(where)
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def write_picture(picture: str, file: Path, read: Sequence[Claim]) -> None:
    """Write a picture to the user's file, which must not be one that is `read`."""
    check_claims(read, [Claim(file, "the picture")])
    try:
        file.write_text(picture, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write '{file}': {error.strerror}") from None
