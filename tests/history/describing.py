"""How a query splits by entries, in words."""

from __future__ import annotations

from anabranch.branch.display.joins.keys import JoinKey
from anabranch.branch.display.joins.ranges import JoinRange
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    EditedWindowPart,
    ElementPart,
    FixedPart,
    Folded,
    GroupPart,
    Part,
    SequencePart,
    SlicePart,
    WholePart,
    WindowPart,
)
from anabranch.language import ast


def describe(part: Part | Folded, indent: str = "") -> str:
    """How a query splits, in words, for people."""
    match part:
        case FixedPart():
            return f"{indent}fixed"
        case EachPart(stream, _, beside, keys):
            order = ", kept in order" if part.order else ""
            keyed = tuple(name for name, key in keys if isinstance(key, JoinKey))
            ranged = tuple(name for name, key in keys if isinstance(key, JoinRange))
            others = tuple(name for name in beside if name not in (*keyed, *ranged))
            against = f", against all of {_named(others)}" if others else ""
            matching = f", against those of {_named(keyed)} with an equal key" if keyed else ""
            near = f", against those of {_named(ranged)} in a range" if ranged else ""
            return f'{indent}each entry of "{stream}"{matching}{near}{against}{order}'
        case EditedWindowPart(stream, is_folded=is_folded, keys=keys):
            what = "groups of each window" if keys else "each window"
            return f'{indent}{what} of "{stream}", {"adjusted" if is_folded else "with its content"}'
        case WindowPart(_, found):
            return f"{indent}each of the {found.kind} of {_named(found.streams)}"
        case GroupPart(stream):
            return f'{indent}groups of "{stream}"'
        case DistinctPart(over):
            return f"{indent}different values of {describe(over)}"
        case SlicePart(over):
            return f"{indent}some of {describe(over)}"
        case Folded(function, over):
            return f"{indent}{function} over {describe(over)}"
        case ComputedPart(_, names):
            return "\n".join((f"{indent}computed from", *(describe(each, indent + "  ") for _, each in names)))
        case WholePart(_, streams):
            return f"{indent}all of {_named(streams)}, evaluated anew"
        case SequencePart(inner):
            return "\n".join(describe(each, indent) for each in inner)
        case ElementPart(constructor, content):
            inside = [each for each in content if not isinstance(each, ast.Characters | ast.CommentConstructor)]
            return "\n".join((f"{indent}<{constructor.name}>", *(describe(each, indent + "  ") for each in inside)))


def _named(streams: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in streams)
