"""Rewritings of queries that the tests of their users do not show by themselves."""

from __future__ import annotations

import pytest

from anabranch.language import parse
from anabranch.language.printer import print_expression
from anabranch.language.rewrite import with_expanded_names


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("a/q:b/@c", "Q{e}a/Q{u}b/@c"),
        ("b//q:b/@q:c/..", "Q{e}b//Q{u}b/@Q{u}c/.."),
        ("*/q:*/*:b/@*", "*/Q{u}*/*:b/@*"),
        ("a[q:b = 1]", "Q{e}a[Q{u}b = 1]"),
        ("<q:x>{ a }</q:x>", '<q:x xmlns:q="u">{ Q{e}a }</q:x>'),
        ('<x k="{ a }"/>', '<x xmlns="e" k="{ Q{e}a }"/>'),
        ('<x xmlns="">{ a }<y xmlns:q="v">{ q:b }</y></x>', '<x xmlns="">{ a }<y xmlns:q="v">{ Q{v}b }</y></x>'),
    ],
)
def test_expanded_names_need_no_declaration(written: str, expanded: str) -> None:
    """They say which namespace is meant; an attribute without a prefix is in none, whatever the default is."""
    query = parse(f'for $p in stream("s")/r return {written}' if "<" in written else f'stream("s")/r/{written}')
    found = print_expression(with_expanded_names(query.body, {"q": "u", "": "e"}))
    assert found.removeprefix('stream("s")/Q{e}r/').removeprefix('for $p in stream("s")/Q{e}r return ') == expanded
