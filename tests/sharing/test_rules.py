"""The examples in the docstrings of the inference rules: a query, an arrow, and the tree that comes out of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import pytest

from anabranch.sharing.explain.trees import forest_lines, tree_lines
from anabranch.sharing.rules import findings, rules
from sharing.joining import forest

ARROW = "\n->\n"


def examples() -> Iterator[tuple[str, str, str]]:
    """Each rule that has an example, with the query and the tree."""
    for module in (rules, findings):
        for name, rule in inspect.getmembers(module, inspect.isfunction):
            block = dedent((inspect.getdoc(rule) or "").rpartition("\n\n")[2])
            if rule.__module__ == module.__name__ and ARROW in block:
                query, _, tree = block.partition(ARROW)
                yield name, query, tree.strip("\n")


@pytest.mark.parametrize(("query", "tree"), [each[1:] for each in examples()], ids=[each[0] for each in examples()])
def test_the_example_of_a_rule(query: str, tree: str) -> None:
    """The query of a rule's example has the tree that stands behind the arrow."""
    found = forest(query)
    lines = tree_lines(found.trees[0]) if found.kind == "apart" else forest_lines(found)
    assert "\n".join(lines) == tree


def test_each_rule_has_an_example() -> None:
    """All functions that the table of rules names are shown at work, and all rules for clauses."""
    clauses: tuple[Callable[..., Any], ...] = (
        rules.for_items,
        rules.for_elements,
        rules.for_window,
        rules.for_join,
        rules.count_window,
        rules.time_window,
        rules.let,
        rules.where,
    )
    shown = {name for name, _, _ in examples()}
    assert shown >= {each.__name__ for each in (*rules.RULES.values(), *clauses, findings.touch)}
