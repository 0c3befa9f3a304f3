"""Joins over tuples that somebody else has made: what is left to ask, and how it is read."""

from __future__ import annotations

import pytest

from anabranch.language import print_query
from anabranch.network.needs import need_of, widened
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.loops import over_tuples
from sharing.making import checked

JOIN = "for $x in stream('s')/r/i|count 2| for $y in stream('u')/r/i|count 2| where {} return {}"
OVER = 'for $tuple in stream("j")/r_r/i_i{} return {}'


def left_of(text: str, *others: str) -> str:
    """What is left of a join, over tuples that serve others, too."""
    form = need_of(text, {}).join
    for other in others:
        more = need_of(other, {}).join
        assert form is not None
        assert more is not None
        found = widened(form, more)
        assert isinstance(found, PropertyForest)
        form = found
    assert form is not None
    return print_query(over_tuples(checked(text), form, "j"))


@pytest.mark.parametrize(
    ("where", "result", "left", "read"),
    [
        ("$x/k = $y/k", "$x/v", "", "$tuple/s/v"),
        ("$x/k = $y/k and $x/v > 2", "$y", " where $tuple/s/v > 2", "$tuple/u/i"),
        ("$x/v + 1 >= $y/v", "<o/>", " where $tuple/s/v + 1 >= $tuple/u/v", "<o/>"),
        ("not($x/k = $y/k)", "<o/>", " where not($tuple/s/k = $tuple/u/k)", "<o/>"),
        ("$x/k = $y/k", "(some $x in $y/v satisfies $x > 1)", "", None),
    ],
)
def test_what_is_left(where: str, result: str, left: str, read: str | None) -> None:
    """A comparison of two elements cannot fail, so it is not asked again; an item of a tuple is a path."""
    found = left_of(JOIN.format(where, result))
    if read is None:
        kept = 'for $tuple in stream("j")/r_r/i_i for $x in $tuple/s return some $x in $tuple/u/v satisfies $x > 1'
        assert found == kept, "a name that is taken again stays"
    else:
        assert found == OVER.format(left, read)


def test_tuples_that_serve_others() -> None:
    """What was not asked of every tuple is asked of each."""
    text = JOIN.format("$x/k = $y/k", "$x/v")
    assert left_of(text, JOIN.format("$x/k = $y/k and $y/v > 2", "$x/w")) == OVER.format("", "$tuple/s/v")
    asked = " where $tuple/s/k = $tuple/u/k"
    assert left_of(text, JOIN.format("$x/v = $y/v", "$x/w")) == OVER.format(asked, "$tuple/s/v")
