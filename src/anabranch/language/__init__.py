"""The query language: text to tree (`parse`), tree to text (`print_query`), and the static checks (`check`)."""

from anabranch.language.checks.check import Checked, check
from anabranch.language.parsing.parser import parse
from anabranch.language.printer import print_query

__all__ = ["Checked", "check", "parse", "print_query"]
