"""Random joins of two small streams, taken apart so that tests can put them together over other inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.match_joins import merge_inputs
from anabranch.sharing.normalize import unjoined
from anabranch.sharing.render import render
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.tree import PropertyTree
from reference.asking import ask
from sharing.making import checked, comparison, condition


@dataclass(frozen=True)
class Joining:
    """`for $x in ... for $y in ... where ... return ...`"""

    streams: tuple[str, str]
    preselections: tuple[str, str]
    windows: tuple[str, str]
    where: str
    returned: str

    @property
    def text(self) -> str:
        parts = zip(("$x", "$y"), self.streams, self.preselections, self.windows, strict=True)
        return self.over(" ".join(f"for {v} in stream('{s}')/r/i{pre}{window}" for v, s, pre, window in parts))

    def over(self, loops: str) -> str:
        """The query with other loops."""
        return f"<q>{{ {loops}{f' where {self.where}' if self.where else ''} return {self.returned} }}</q>"

    def over_tuples(self, forest: PropertyForest) -> str:
        """The query over the tuples that a forest sends, as a stream `j`."""
        loops = "for $j in stream('j')/r_r/i_i"
        for variable, tree, label, pre in zip(
            ("$x", "$y"), forest.trees, labels(forest.trees), self.preselections, strict=True
        ):
            whole = any(each.whole and each.path == tree.item for each in tree.outputs)
            again = "" if tree.window else pre  # a window has it in its tree
            loops += f" for {variable} in $j/{label}{'/i' if whole else ''}{again}"
        return self.over(loops)

    @property
    def time(self) -> str | None:
        """Where the inputs have their time: count windows must not depend on what of an item is sent."""
        return None if "|count" in "".join(self.windows) else "t"


def forest(text: str) -> PropertyForest:
    """The forest of a query, without schemas."""
    return derive_forest(checked(text), {}, text)


def answer(text: str, inputs: Mapping[str, str], time: str | None) -> str:
    """The answer over some streams; it must come without a single failure."""
    found = ask(text, inputs, time=time)
    assert not found.dead
    return found.text


def sent(found: PropertyForest, inputs: Mapping[str, str]) -> dict[str, str]:
    """What is left of each input when the join is removed."""
    return {tree.stream: reduced(tree, inputs[tree.stream]) for tree in merge_inputs(unjoined(found))}


def reduced(tree: PropertyTree, items: str) -> str:
    """What a tree sends of a stream, as a document again."""
    text = answer(render(tree), {tree.stream: items}, None)
    return text if text.startswith("<r") else f"<r>{text}</r>"


_WINDOWS = ("|t diff 6 step 3|", "|t diff 9 step 6|", "|t diff 6|", "|count 2|", "|count 3 step 1|")
_RETURNED = (
    "<hit/>",
    "$y/a",
    "($x/b, $y/k)",
    "<o>{ $x/c }{ $y/a }</o>",
    "<o>{ $x }{ $y/b }</o>",
    "$y",
    "for $c in $x/c where $c/x > 2 return <c>{ $c/y }{ $y/a }</c>",
    "for $c in $y/c return $x/a",
    "string-join($x/a, '-')",
    "$x//x",
)


def joining(random: Random) -> Joining:
    """A step join or an interval join."""
    streams = random.choice((("s", "u"), ("s", "u"), ("s", "s")))
    parts = [_across(random)] if random.random() < 0.8 else []
    parts += [f"({condition(random, random.choice(('$x', '$y')), 1)})" for _ in range(random.choice((0, 0, 1, 2)))]
    if random.random() < 0.6:
        windows = random.choice(_WINDOWS), random.choice(_WINDOWS)
    else:
        windows = "", ""
        low, high = random.randrange(4), random.randrange(4)
        parts = [f"$x/t >= $y/t - {low}", f"$x/t <= $y/t + {high}", *parts]
    random.shuffle(parts)
    pre = random.choice((("", ""), ("[a > 2]", ""), ("[not(b > 7)]", "[k != 'u']")))
    return Joining(streams, pre, windows, " and ".join(parts), _returned(random))


def _across(random: Random) -> str:
    return random.choice(
        (
            f"$x/a {random.choice(('<', '>=', '=', '!='))} $y/b",
            f"$x/t + {random.randrange(4)} >= $y/t",
            f"$x/t - $y/t < {random.randrange(3)}",
            f"not($x/k = $y/k) and {comparison(random, '$y')}",
            f"($x/a > $y/a or {comparison(random, '$x')})",
            "$x/k[. = $y/k]",
        )
    )


def _returned(random: Random) -> str:
    shown = random.choice(_RETURNED)
    if random.random() < 0.3:
        test = random.choice((_across(random), condition(random, "$x", 1)))
        return f"if ({test}) then {shown} else {random.choice(_RETURNED)}"
    return shown
