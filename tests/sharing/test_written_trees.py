"""The printed form of trees and forests says all there is to say of them: it is read back as what it was."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match import merge, same
from anabranch.sharing.match_joins import join_matches, merge_joins
from mass import some
from sharing import joining
from sharing.making import query, tree
from sharing.written_trees import parse_forest, parse_tree, print_forest, print_tree


@pytest.mark.parametrize("seed", some(range(60)))
def test_trees(seed: int) -> None:
    """The tree of a random query, and that of two merged, mean the same and print the same when they are read back."""
    random = Random(seed)
    first, second = tree(query(random)), tree(query(random))
    for each in (first, merge(first, second)):
        text = print_tree(each)
        again = parse_tree(text)
        assert print_tree(again) == text
        assert same(again, each)


@pytest.mark.parametrize("seed", some(range(40)))
def test_forests(seed: int) -> None:
    """The forest of a random join, and that of two merged, mean the same and print the same when they are read back."""
    random = Random(seed)
    first, second = (joining.forest(joining.joining(random).text) for _ in range(2))
    merged = merge_joins(first, second)
    for each in (first, merged):
        if isinstance(each, PropertyForest) and each.kind != "apart":
            text = print_forest(each)
            again = parse_forest(text)
            assert print_forest(again) == text
            assert again.smaller == each.smaller
            assert join_matches(again, each)
            assert join_matches(each, again)


@pytest.mark.parametrize(
    "text",
    [
        "r\n  i •",
        'stream "s"\n      deep •',
        'stream "s"\n  r\n    i •  σ a * 2 > 1',
        'stream "s"\n  r\n    i  ω |count x step 1|',
    ],
)
def test_what_is_no_tree(text: str) -> None:
    """Text without a head, with a gap in its depths, or with a condition or window that no tree has is refused."""
    with pytest.raises(ValueError, match=r"no |Invalid literal"):
        parse_tree(text)
