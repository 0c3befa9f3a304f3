"""The examples in the docstrings of the inference rules: a query, an arrow, and the tree that comes out of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import pytest

from anabranch.sharing.explain.trees import forest_lines, tree_lines
from anabranch.sharing.rules import clauses, findings, rules, windows
from sharing.joining import forest

ARROW = "\n->\n"


def examples() -> Iterator[tuple[str, str, str]]:
    """Each rule that has an example, with the query and the tree."""
    for module in (rules, clauses, windows, findings):
        for name, rule in inspect.getmembers(module, inspect.isfunction):
            block = dedent((inspect.getdoc(rule) or "").rpartition("\n\n")[2])
            if rule.__module__ == module.__name__ and ARROW in block:
                query, _, tree = block.partition(ARROW)
                yield name, query, tree.strip("\n")


@pytest.mark.parametrize(("query", "tree"), [each[1:] for each in examples()], ids=[each[0] for each in examples()])
def test_the_example_of_a_rule(query: str, tree: str) -> None:
    """The query of a rule's example has the tree that stands behind the arrow."""
    found = forest(query)
    if found.kind != "apart":
        lines = forest_lines(found)
    elif len(found.trees) == 1:
        lines = tree_lines(found.trees[0])
    else:
        lines = [line for each in found.trees for line in (each.stream, *(f"  {line}" for line in tree_lines(each)))]
    assert "\n".join(lines) == tree


def test_each_rule_has_an_example() -> None:
    """All functions that the table of rules names are shown at work, and all rules for clauses."""
    of_clauses: tuple[Callable[..., Any], ...] = (
        clauses.for_items,
        clauses.for_elements,
        clauses.for_window,
        clauses.for_join,
        clauses.for_apart,
        rules.for_results,
        windows.count_window,
        windows.time_window,
        clauses.let,
        clauses.where,
    )
    shown = {name for name, _, _ in examples()}
    assert shown >= {each.__name__ for each in (*rules.RULES.values(), *of_clauses, findings.touch)}
