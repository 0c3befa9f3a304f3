"""Choose: items that fulfil a condition go one way, all others another; a conditional.

Law: an item comes out as the first way makes it where the condition holds for its canonical values, else as the second
does (LAWS case 2: `else` is `not(...)`, so an item that cannot be compared goes there); the order stays.

It is no operator of its own but a plan: the Union of the two ways, each begun by a Select.
So its signature is known without being written: the paths of the condition are foundation, and a path of the output is
a merge path of both ways, which lets an alter out when both have gone through it.
What the signatures do not cover: a path that only one way shows stays in the units of query start, since the other way
never says that it has changed.
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.plans.interpret import Apply, Plan
from anabranch.logic import Not
from anabranch.stream.description import Description


def choose(plan: Plan, condition: Description, then: Callable[[Plan], Plan], otherwise: Callable[[Plan], Plan]) -> Plan:
    """What `then` makes of the items that fulfil a condition, and `otherwise` of the others."""
    ways = then(Apply(Select(condition), (plan,))), otherwise(Apply(Select(Not(condition)), (plan,)))
    return Apply(Union(), ways)
