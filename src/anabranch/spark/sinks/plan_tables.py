"""The columns of a plan of operators whose types the plan tells: what operators compute (LAWS 2.1).

All other columns are those that items turn out to have, and are text.
"""

from __future__ import annotations

from anabranch.aggregates import AGGREGATES
from anabranch.algebra.operators.construct import Construct, Copy, Linear
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.order import Order
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import WID, Window
from anabranch.algebra.plans.interpret import Apply, Plan
from anabranch.spark.sinks.tables import ColumnType


def computed_columns(plan: Plan) -> dict[str, ColumnType]:
    """The columns that a plan computes, by name, as far as their types are certain."""
    if not isinstance(plan, Apply):
        return {}
    below = computed_columns(plan.inputs[0])
    match plan.operator:
        case Select() | Quantify() | Order():
            return below
        case Project(kept):
            return {name: given for name, given in below.items() if any(str(path) == name for path in kept)}
        case Window():
            return {**below, str(WID): "integer"}
        case Union():
            others = [computed_columns(each) for each in plan.inputs[1:]]
            return {name: given for name, given in below.items() if all(each.get(name) == given for each in others)}
        case Aggregate(_, by, _, named):
            found: dict[str, ColumnType] = {str(path): below[str(path)] for path in by if str(path) in below}
            return found | {
                str(path): "integer" if AGGREGATES[each].kind == "integer" else "number" for path, each in named
            }
        case Construct(_, fields):
            found = {str(at): "number" for at, value in fields if isinstance(value, Linear)}
            copied = ((at, str(value.path)) for at, value in fields if isinstance(value, Copy))
            return found | {str(at): below[path] for at, path in copied if path in below}
        case _:
            return {}  # what a join puts together may have these names from elsewhere
