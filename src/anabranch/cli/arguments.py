"""Common arguments of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from anabranch.errors import UsageError
from anabranch.law.calls import ImportedFunction
from anabranch.runtime.registering import function_named, import_all
from anabranch.spark.options import SparkOptions, settings_of
from anabranch.sql import LANGUAGES
from anabranch.storage import Location

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse gives it no other name


UserFile: TypeAlias = Path | Location
"""A file as a user names it: by its path, as it was written, or by its address in an object store."""


def user_file(text: str) -> UserFile:
    """A file on the command line."""
    if "://" not in text:
        return Path(text)
    try:
        return Location.of(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.message) from None


def port(text: str) -> int:
    """A port on the command line; 0 is any that is free."""
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"'{text}' is no port")
    return int(text)


def absolute(file: UserFile | None) -> UserFile | None:
    """A file that stays the same wherever the working directory is."""
    return file.absolute() if isinstance(file, Path) else file


def declare_functions(command: argparse.ArgumentParser) -> None:
    """The option that registers functions."""
    command.add_argument(
        "--function", action="append", default=[], metavar="NAME=MODULE:FUNCTION", help="a function in Python"
    )


def declare_spark(command: argparse.ArgumentParser) -> None:
    """The options that say which Spark to run on."""
    command.add_argument(
        "--master", metavar="URL", help="run on this cluster, as in spark://HOST:7077; default: on this machine"
    )
    command.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark, as in spark.cores.max=8"
    )


def spark_of(options: argparse.Namespace) -> SparkOptions:
    """Which Spark to run on."""
    return SparkOptions(options.master, settings_of(options.conf))


def declare_language(command: argparse.ArgumentParser) -> None:
    """The option that says how queries are written."""
    command.add_argument(
        "--language", choices=LANGUAGES, help="how queries are written; default: sql in files *.sql, else by their text"
    )


def functions_of(options: argparse.Namespace) -> dict[str, ImportedFunction]:
    """The registered functions, imported; modules may be in the working directory."""
    given = pairs_of(options.function, "--function")
    functions = {name: function_named(name, text, Path.cwd()) for name, text in given.items()}
    import_all(functions)
    return functions


def pairs_of(given: Sequence[str], option: str) -> dict[str, str]:
    """By name: the values of an option NAME=VALUE, given any number of times."""
    pairs: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} takes NAME=VALUE, not '{each}'")
        if name in pairs:
            raise UsageError(f"{option} is given twice for '{name}'")
        pairs[name] = value
    return pairs


def declare_conversion(command: argparse.ArgumentParser) -> None:
    """Declare the option that converts answers."""
    command.add_argument(
        "--as", dest="convert", choices=("json", "xml"), help="convert answers; else the query decides what they are"
    )
