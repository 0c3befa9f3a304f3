"""The sharing paper's figures, and some plans of our own, as text in and text out: `figures/*.txt`.

A file begins with what it shows, and then has sections, each behind a line `-- name`.
What is given comes first, the rest is what comes out:

* a `query` has a `tree` (or the forest of a join) and an `abstract query`; in the optimised form (3.2.3), an `optimised
  tree` and a `restructuring query` over what that sends;
* of a `stream` and a `query tree`, both as text, follow the `verdict` of `explain`, what the stream `lacks` for the
  query, the `merged` tree, and, of trees, the `remainder` that would have to be sent beside the stream.

`ANABRANCH_REWRITE_FIGURES=1 pytest tests/sharing/test_figures.py` writes what came out into the files; read the
difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import papers
from anabranch.algebra.window import Extent
from anabranch.language import print_query
from anabranch.predicate import EVERYTHING
from anabranch.sharing.explain.text import verdicts
from anabranch.sharing.forest import PropertyForest, alone
from anabranch.sharing.match import Lack, differences, matches, merge
from anabranch.sharing.match_joins import (
    SharedWindows,
    join_differences,
    join_matches,
    level,
    merge_inputs,
    merge_joins,
)
from anabranch.sharing.normalize import tree_of, unjoined
from anabranch.sharing.render import render, render_join
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.subtract import subtract
from anabranch.sharing.tree import OutputAnnotation, PropertyTree
from anabranch.stream import photons
from anabranch.stream.schema import Schema
from models.restructuring import restructure
from sharing.making import checked
from sharing.written_trees import parse_forest, parse_tree, print_forest, print_tree

FIGURES = sorted(Path(__file__).with_name("figures").glob("*.txt"))
REWRITE = os.environ.get("ANABRANCH_REWRITE_FIGURES") == "1"
SCHEMA = Schema.read_dtd(Path(photons.__file__).with_name("photons.dtd"))
SCHEMAS = {"photons": SCHEMA, "photon1": SCHEMA, "photon2": SCHEMA}
GIVEN = ("", "query", "stream", "query tree")


def sections(text: str) -> dict[str, str]:
    """The parts of a file by their names; what it shows has none."""
    head, *rest = re.split(r"^-- (.+)\n", text, flags=re.MULTILINE)
    return {"": head} | dict(zip(rest[::2], rest[1::2], strict=True))


def derived(query: str) -> dict[str, str]:
    forest = derive_forest(checked(query), SCHEMAS, query)
    if forest.kind != "apart":
        return {"tree": print_forest(forest), "abstract query": render_join(forest)}
    [tree] = forest.trees
    optimised = restructure(checked(query), SCHEMAS.get(tree.stream))
    return {
        "tree": print_tree(tree),
        "abstract query": render(tree),
        "optimised tree": print_tree(optimised.tree),
        "restructuring query": print_query(optimised.query),
    }


def shared(stream: str, query: str) -> dict[str, str]:
    given, needed = (replace(each, schema=SCHEMAS.get(each.stream)) for each in map(parse_tree, (stream, query)))
    merged, remainder = merge(given, needed), subtract(needed, given)
    assert matches(merged, given)
    assert matches(merged, needed)
    return {
        "verdict": verdict(PropertyForest("apart", (given,)), PropertyForest("apart", (needed,))),
        "lacks": listed(list(differences(given, needed))),
        "merged": print_tree(merged),
        "remainder": print_tree(remainder) if remainder else "nothing",
    }


def shared_windows(first: PropertyTree, second: PropertyTree, extent: Extent) -> PropertyTree:
    """Windows for two joins, with all elements that either of them needs of any item (figure 13(c))."""
    own, other = alone(first), alone(second)
    assert own.window is not None
    outputs = [OutputAnnotation(each.path, EVERYTHING, each.whole) for each in (*own.outputs, *other.outputs)]
    if own.window.reference:
        outputs.append(OutputAnnotation(own.window.reference))
    window = replace(own.window, extent=extent, post=EVERYTHING)
    return tree_of(own.stream, outputs, window, (), own.schema or other.schema)


def inputs_of_both(stream: PropertyForest, query: PropertyForest) -> tuple[PropertyTree, ...]:
    """What two joins that share no tuples share of their inputs (5.3.2)."""
    found = level(stream, query)
    if not isinstance(found, SharedWindows):
        return merge_inputs((*unjoined(stream), *unjoined(query)))
    pairs = zip(stream.trees, query.trees, found.windows, strict=True)
    return tuple(shared_windows(first, second, extent) for first, second, extent in pairs)


def shared_joins(stream: str, query: str) -> dict[str, str]:
    given, needed = (
        replace(forest, trees=tuple(replace(each, schema=SCHEMAS.get(each.stream)) for each in forest.trees))
        for forest in map(parse_forest, (stream, query))
    )
    merged = merge_joins(given, needed)
    if merged is not None:
        assert join_matches(merged, given)
        assert join_matches(merged, needed)
    return {
        "verdict": verdict(given, needed),
        "lacks": listed(list(join_differences(given, needed))),
        "merged": print_forest(merged) if merged else "\n".join(map(print_tree, inputs_of_both(given, needed))),
    }


def verdict(stream: PropertyForest, query: PropertyForest) -> str:
    [found] = verdicts(stream, query)
    return found.words.replace("; ", "\n")


def listed(lacks: list[Lack]) -> str:
    return "\n".join(f"{kind}: {what}" for kind, what in lacks) or "nothing"


def outcome(given: Mapping[str, str]) -> dict[str, str]:
    if "query" in given:
        return derived(given["query"])
    both = given["stream"], given["query tree"]
    return shared(*both) if both[0].startswith("stream") else shared_joins(*both)


@pytest.mark.parametrize("path", FIGURES, ids=[each.stem for each in FIGURES])
def test_figure(path: Path) -> None:
    """What is derived from the given sections of a file is what its other sections say."""
    text = path.read_text()
    given = {name: part for name, part in sections(text).items() if name in GIVEN}
    found = given | {name: f"{part}\n" for name, part in outcome(given).items()}
    written = "".join(f"-- {name}\n{part}" if name else part for name, part in found.items())
    if REWRITE:
        path.write_text(written)
    assert written == text


@pytest.mark.parametrize("name", papers.SHARING)
def test_the_queries_are_those_of_the_paper(name: str) -> None:
    """The files of q1 to q8 hold the queries of figures 3 and 10, and their abstract queries have the same trees."""
    [path] = [each for each in FIGURES if each.match(f"figure_*_{name}.txt")]
    found = sections(path.read_text())
    assert found["query"].strip() == papers.SHARING[name].strip()
    assert derived(found["abstract query"])["tree"] == found["tree"].rstrip("\n")
