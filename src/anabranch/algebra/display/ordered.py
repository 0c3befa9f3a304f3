"""A sequence that is edited anywhere and knows sums: the sum before a place, and the place of a sum.

Law: a list of handles, each with a value, the values from a group (anything with `+` and `-`, and a zero).
`before(h)` is the sum of the values in front of `h`, `total` that of all of them.
It implements the history paper's `order[id]` and the loop `for each i: order[i] > order[j]` (section 8): a place
between two others is a place in a tree and not a fraction between two numbers, so places do not run out (LAWS 5.6), and
changing a value changes the sums on one path to the root, not the states of all later regions.

The tree is wide: a node holds up to 64 handles or nodes, and the sum of each.
It has few levels (three for 100,000 handles), and work within a node is done by Python's list.
A node that gets too full is split in half; one that would fit into its neighbour joins it.
The shape depends on the history of edits, but no result shows it.

Every method takes time logarithmic in the number of handles, except `__iter__` and `in_order`, which are linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

_NODE_SIZE = 64


class Additive(Protocol):
    """An element of a group."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...


H = TypeVar("H", bound=Hashable)
V = TypeVar("V", bound=Additive)


class _TreeNode(Generic[V]):
    """Handles (in a leaf) or nodes, side by side, with the sum of each; `parent` is None at the root."""

    __slots__ = ("is_leaf", "items", "parent", "sums")

    def __init__(self, is_leaf: bool, items: list[Any], sums: list[V]) -> None:
        self.is_leaf = is_leaf
        self.items = items
        self.sums = sums
        self.parent: _TreeNode[V] | None = None


class Ordered(Generic[H, V]):
    """Handles in an order that is edited, each with a value."""

    __slots__ = ("_leaves", "_root", "_zero", "total")

    def __init__(self, zero: V, items: Iterable[tuple[H, V]] = ()) -> None:
        self.total = zero
        """The sum of all values; read only."""
        self._zero = zero
        self._root: _TreeNode[V] = _TreeNode(True, [], [])
        self._leaves: dict[H, _TreeNode[V]] = {}
        for handle, value in items:
            self.append(handle, value)

    # --- queries --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, handle: H) -> bool:
        return handle in self._leaves

    def __getitem__(self, handle: H) -> V:
        """The value of a handle."""
        leaf = self._leaves[handle]
        return leaf.sums[leaf.items.index(handle)]

    def __iter__(self) -> Iterator[H]:
        """The handles in order; the sequence must not be edited meanwhile."""
        pending = [self._root]
        while pending:
            node = pending.pop()
            if node.is_leaf:
                yield from node.items
            else:
                pending.extend(reversed(node.items))

    def before(self, handle: H) -> V:
        """The sum of all values in front of a handle."""
        node = self._leaves[handle]
        at = node.items.index(handle)
        found: V = sum(node.sums[:at], self._zero)
        while node.parent is not None:
            at = node.parent.items.index(node)
            node = node.parent
            found = sum(node.sums[:at], found)
        return found

    def precedes(self, one: H, other: H) -> bool:
        """Whether `one` stands in front of `other`."""
        ours, theirs = self._path(one), self._path(other)
        return ours[::-1] < theirs[::-1]

    def in_order(self, some: Collection[H]) -> list[H]:
        """Some handles as they stand; in linear time."""
        return [handle for handle in self if handle in some]

    def next(self, handle: H) -> H | None:
        """The handle behind this one."""
        return self._beside(handle, 1)

    def previous(self, handle: H) -> H | None:
        """The handle in front of this one."""
        return self._beside(handle, -1)

    @property
    def first(self) -> H | None:
        return self._edge(self._root, 0)

    @property
    def last(self) -> H | None:
        return self._edge(self._root, -1)

    def reaching(self, bound: V) -> tuple[H, V] | None:
        """The first handle whose end (the sum up to and with it) is at least `bound`, with the sum in front of it.

        Only for comparable values, none of them negative.
        """
        if not self._leaves or not self.total >= bound:  # type: ignore[operator]
            return None
        node, start = self._root, self._zero
        while True:
            ends: list[Any] = list(accumulate(node.sums, initial=start))
            at = bisect_left(ends, bound, lo=1) - 1
            start = ends[at]
            if node.is_leaf:
                return node.items[at], start
            node = node.items[at]

    def search(self, is_behind: Callable[[H], bool]) -> H | None:
        """The first handle for which `is_behind` is true, None where there is none.

        `is_behind` must be monotonic: true for all handles behind one for which it is true.
        """
        node = self._root
        found: H | None = None
        while True:
            low, high = 0, len(node.items)
            while low < high:
                middle = (low + high) // 2
                handle = node.items[middle]
                if not node.is_leaf:  # the first handle below; a node below the root is never empty
                    below: _TreeNode[V] = handle
                    while not below.is_leaf:
                        below = below.items[0]
                    handle = below.items[0]
                if is_behind(handle):
                    found, high = handle, middle
                else:
                    low = middle + 1
            # the result is the first handle of this node, or it is in the node before
            if node.is_leaf or low == 0:
                return found
            node = node.items[low - 1]

    def bisect(self, key: Callable[[H], Any], bound: Any) -> H | None:
        """The first handle whose key is not below a bound, None where there is none; keys must ascend."""
        node = self._root
        found: H | None = None

        def least(below: _TreeNode[V]) -> Any:
            while not below.is_leaf:
                below = below.items[0]
            return key(below.items[0])

        while True:
            at = bisect_left(node.items, bound, key=key if node.is_leaf else least)
            if at < len(node.items):
                found = node.items[at] if node.is_leaf else self._edge(node.items[at], 0)
            # the result is the first handle of this node, or it is in the node before
            if node.is_leaf or at == 0:
                return found
            node = node.items[at - 1]

    # --- editing --------------------------------------------------------------------------------------------

    def append(self, handle: H, value: V) -> None:
        """Add a handle behind all others."""
        node = self._root
        while not node.is_leaf:
            node = node.items[-1]
        self._insert(node, len(node.items), handle, value)

    def prepend(self, handle: H, value: V) -> None:
        """Add a handle in front of all others."""
        node = self._root
        while not node.is_leaf:
            node = node.items[0]
        self._insert(node, 0, handle, value)

    def insert_before(self, anchor: H, handle: H, value: V) -> None:
        """Add a handle directly in front of another."""
        leaf = self._leaves[anchor]
        self._insert(leaf, leaf.items.index(anchor), handle, value)

    def enter_before(self, anchor: H, handle: H, value: V) -> V:
        """Add a handle directly in front of another; gives the sum of all values in front of it."""
        assert handle not in self._leaves, "a handle stands in one place"
        leaf = node = self._leaves[anchor]
        at = leaf.items.index(anchor)
        found: V = sum(leaf.sums[:at], self._zero)
        leaf.items.insert(at, handle)
        leaf.sums.insert(at, value)
        self._leaves[handle] = leaf
        self.total = self.total + value
        while (parent := node.parent) is not None:
            at, sums = parent.items.index(node), parent.sums
            found = sum(sums[:at], found)
            sums[at] = sums[at] + value
            node = parent
        if len(leaf.items) > _NODE_SIZE:
            self._cut(leaf)
        return found

    def insert_after(self, anchor: H, handle: H, value: V) -> None:
        """Add a handle directly behind another."""
        leaf = self._leaves[anchor]
        self._insert(leaf, leaf.items.index(anchor) + 1, handle, value)

    def set(self, handle: H, value: V) -> None:
        """Set the value of a handle."""
        leaf = self._leaves[handle]
        at = leaf.items.index(handle)
        difference = value - leaf.sums[at]
        leaf.sums[at] = value
        self._add_above(leaf, difference)

    def remove(self, handle: H) -> None:
        """Remove a handle."""
        leaf = self._leaves.pop(handle)
        at = leaf.items.index(handle)
        del leaf.items[at]
        self._add_above(leaf, self._zero - leaf.sums.pop(at))
        self._shrunk(leaf)

    def leave(self, handle: H) -> V:
        """Remove a handle; gives the sum of all values that were in front of it."""
        leaf = node = self._leaves.pop(handle)
        at = leaf.items.index(handle)
        del leaf.items[at]
        value = leaf.sums.pop(at)
        found: V = sum(leaf.sums[:at], self._zero)
        self.total = self.total - value
        while (parent := node.parent) is not None:
            at, sums = parent.items.index(node), parent.sums
            found = sum(sums[:at], found)
            sums[at] = sums[at] - value
            node = parent
        self._shrunk(leaf)
        return found

    # --- the tree -------------------------------------------------------------------------------------------

    def _insert(self, leaf: _TreeNode[V], at: int, handle: H, value: V) -> None:
        assert handle not in self._leaves, "a handle stands in one place"
        leaf.items.insert(at, handle)
        leaf.sums.insert(at, value)
        self._leaves[handle] = leaf
        self._add_above(leaf, value)
        if len(leaf.items) > _NODE_SIZE:
            self._cut(leaf)

    def _add_above(self, node: _TreeNode[V], difference: V) -> None:
        self.total = self.total + difference
        while (parent := node.parent) is not None:
            at = parent.items.index(node)
            parent.sums[at] = parent.sums[at] + difference
            node = parent

    def _cut(self, node: _TreeNode[V]) -> None:
        """Split a node that is too full, and those above that become so."""
        while len(node.items) > _NODE_SIZE:
            half = len(node.items) // 2
            right = _TreeNode(node.is_leaf, node.items[half:], node.sums[half:])
            del node.items[half:], node.sums[half:]
            self._adopt(right)
            of_right = sum(right.sums, self._zero)
            if (parent := node.parent) is None:
                parent = self._root = _TreeNode(False, [node, right], [self.total - of_right, of_right])
                node.parent = right.parent = parent
                return
            right.parent = parent
            at = parent.items.index(node)
            parent.sums[at] = parent.sums[at] - of_right
            parent.items.insert(at + 1, right)
            parent.sums.insert(at + 1, of_right)
            node = parent

    def _shrunk(self, node: _TreeNode[V]) -> None:
        """Join a small node with a neighbour, and so on above it."""
        while (parent := node.parent) is not None and len(node.items) <= _NODE_SIZE // 4:
            at = parent.items.index(node)
            if not node.items:
                del parent.items[at], parent.sums[at]
            elif len(parent.items) > 1:
                left = max(at - 1, 0)
                one, other = parent.items[left], parent.items[left + 1]
                if len(one.items) + len(other.items) > _NODE_SIZE * 3 // 4:
                    break
                one.items += other.items
                one.sums += other.sums
                self._adopt(one)
                parent.sums[left] = parent.sums[left] + parent.sums[left + 1]
                del parent.items[left + 1], parent.sums[left + 1]
            node = parent
        while not self._root.is_leaf and len(self._root.items) <= 1:
            self._root = self._root.items[0] if self._root.items else _TreeNode(True, [], [])
            self._root.parent = None

    def _adopt(self, node: _TreeNode[V]) -> None:
        if node.is_leaf:
            self._leaves.update(dict.fromkeys(node.items, node))
        else:
            for each in node.items:
                each.parent = node

    def _path(self, handle: H) -> list[int]:
        """The positions of a handle and of the nodes above it, each within its node, the leaf first."""
        node = self._leaves[handle]
        path = [node.items.index(handle)]
        while node.parent is not None:
            path.append(node.parent.items.index(node))
            node = node.parent
        return path

    def _beside(self, handle: H, step: int) -> H | None:
        item: Any = handle
        node: _TreeNode[V] | None = self._leaves[handle]
        while node is not None:
            at = node.items.index(item) + step
            if 0 <= at < len(node.items):
                found = node.items[at]
                return found if node.is_leaf else self._edge(found, 0 if step > 0 else -1)
            item, node = node, node.parent
        return None

    def _edge(self, node: _TreeNode[V], at: int) -> H | None:
        while not node.is_leaf:
            node = node.items[at]
        found: H | None = node.items[at] if node.items else None
        return found
