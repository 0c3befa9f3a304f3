"""What a subscription needs of each stream, in the forms in which flows carry it.

A query over items needs the items of its property tree, and runs over them as it is.
A query over time windows that asks for values only needs those values: the window is made on the way, and what is left
of the query (`sharing/restructuring`) runs over them, put together from smaller windows where these are shared.
Windows that hand out their items make a stream no smaller (sharing paper, 3.3.2), and count windows number the items
from a subscription's own start (LAWS 3.3): both are made where the answer is.
A join needs its inputs, or else its tuples (5.3.1), where they can be sent (`branch/remote/tuples.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anabranch.branch.remote.queries import can_travel
from anabranch.branch.remote.tuples import why_not_sent
from anabranch.errors import AnabranchError
from anabranch.language import ast, check, parse
from anabranch.network.estimates import Form
from anabranch.sharing.forest import JoinKind, PropertyForest
from anabranch.sharing.match import matches, merge
from anabranch.sharing.match_joins import FullResults, join_matches, level, merge_inputs, merge_joins
from anabranch.sharing.render import render_join
from anabranch.sharing.restructuring.restructure import restructure
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.settle import tree_of, unjoined, unwindowed
from anabranch.sharing.tree import ITEM, OutputAnnotation, PropertyTree
from anabranch.stream.schema import Schema


@dataclass(frozen=True)
class Need:
    """What a query needs: one tree for each stream, and for a join what its tuples are."""

    inputs: tuple[PropertyTree, ...]
    join: PropertyForest | None = None
    stays: str | None = None
    """Why a join is made where it is answered, and nowhere else."""
    query: ast.Query | None = field(default=None, compare=False, repr=False)
    kind: JoinKind = "apart"
    """How its inputs meet."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return tuple(each.stream for each in self.inputs)

    def of(self, form: Form) -> Form:
        """That part of it which a flow of some form gives."""
        if isinstance(form, PropertyForest):
            return self.join or form
        return next(each for each in self.inputs if each.stream == form.stream)


def need_of(text: str, schemas: Mapping[str, Schema], name: str | None = None, edited: Collection[str] = ()) -> Need:
    """What a query needs; `QueryError` where it cannot be answered, or reads something other than streams.

    `edited` are streams of updates.
    """
    query = check(parse(text, name), text, name=name, edited=edited).query
    forest = derive_forest(query, schemas, text)
    if forest.kind != "apart":
        join = alike_tuples(forest)
        stays = why_not_sent(query, join) if join else "its tuples cannot be written down"
        return Need(inputs_of(forest), None if stays else join, stays, query, forest.kind)
    if len(forest.trees) > 1:
        stays = "nothing is known of how its inputs meet"
        return Need(merge_inputs(tuple(map(unwindowed, forest.trees))), None, stays, query)
    [tree] = forest.trees
    travels = tree.window is not None and tree.window.reference is not None and not tree.outputs
    if travels and (restructure(query, tree.schema).tree.window is None or not can_travel(text, tree)):
        travels = False  # nothing could be read out of the values
    return Need((tree if travels else unwindowed(tree),), query=query)


def whole(stream: str, schema: Schema | None = None) -> PropertyTree:
    """A stream as it comes in."""
    return PropertyTree(stream, (OutputAnnotation(()),), schema=schema)


def provides(flow: Form, need: Form) -> bool:
    """Whether what is needed can be made of a flow."""
    match flow, need:
        case PropertyTree(), PropertyTree():
            return flow.stream == need.stream and matches(flow, need)
        case PropertyForest(), PropertyForest():
            return isinstance(level(flow, need), FullResults) and join_matches(flow, need)
        case _:
            return False


def widened(flow: Form, need: Form) -> Form | None:
    """A flow that provides what it did, and the need as well; None where one flow cannot.

    All its items have the same paths, also where somebody needs one of them less often than another: items that look
    alike are read many times faster than they would be if each said what it has, and are hardly larger.

    Joins widen where one gives the tuples of both; what more the paper shares of joins (5.3.2) needs operators that
    know of each other's windows, and is left to a single peer.
    """
    match flow, need:
        case PropertyTree(), PropertyTree() if flow.stream == need.stream:
            return alike(merge(flow, need))
        case PropertyForest(), PropertyForest() if isinstance(level(flow, need), FullResults):
            merged = merge_joins(flow, need)
            return alike_tuples(merged) if isinstance(merged, PropertyForest) else None
        case _:
            return None


def alike(tree: PropertyTree) -> PropertyTree:
    """Items with all paths that are sent of any of them, of which somebody needs something."""
    if tree.window or tree.aggregates:
        return tree
    guards = tree.guards
    outputs = [replace(each, condition=guards[each.path[:ITEM]]) for each in tree.outputs]
    return tree_of(tree.stream, outputs, None, (), tree.schema)


def alike_tuples(forest: PropertyForest) -> PropertyForest | None:
    """Tuples with all that is sent of any of them, so that nothing but the condition of the whole can fail.

    They are as their abstract query says, which is all that a network remembers of them; None where none says it.
    """
    guard = forest.guard
    trees = tuple(
        replace(tree, outputs=tuple(replace(each, condition=guard) for each in tree.outputs)) for tree in forest.trees
    )
    text = render_join(replace(forest, trees=trees))
    schemas = {tree.stream: tree.schema for tree in trees if tree.schema is not None}
    try:
        found = derive_forest(check(parse(text), text).query, schemas)
    except AnabranchError:
        return None
    return found if join_matches(found, forest) else None


def inputs_of(form: PropertyForest) -> tuple[PropertyTree, ...]:
    """What a join must be given to make its tuples: one tree for each stream."""
    return merge_inputs(unjoined(form))
