"""Subscriptions that no control element of `elements.py` concerns: a mix of all kinds of query over all streams."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.algebra.plans import builder
from anabranch.algebra.plans.written import write_plan

ITEMS = ("lines", "timed", "document", "json", "packed", "partitions", "merged", "strict", "promised")
EDITED = ("edited", "edited_document", "edited_json", "edited_merged")


def subscriptions() -> Mapping[str, str]:
    """By name, at least 50."""
    found: dict[str, str] = {}
    for name in ITEMS:
        path = f'stream("{name}")/r/p'
        found[f"{name} items"] = f"<all>{{ for $p in {path} where $p/v > 3 return <o>{{ $p/k }}</o> }}</all>"
        found[f"{name} windows"] = f"for $w in {path}|t diff 5| return <w n='{{ count($w) }}'>{{ avg($w/v) }}</w>"
        found[f"{name} counts"] = f"for $w in {path}[k = 2]|count 2| return <w>{{ sum($w/v) }}{{ $w/t }}</w>"
        found[f"{name} past"] = f"for $p in {path}[v > 8] return <q>{{ $p/v }}{{ {path}#1/k }}</q>"
    found["lines kept"] = 'for $w in stream("lines")/r/p|t diff 7 step 3| return <w>{ $w/v }</w>'
    found["join"] = (
        'for $x in stream("timed")/r/p[k = 1]|t diff 5| for $y in stream("document")/r/p|t diff 5| '
        "where $x/v = $y/v return <j>{ $x/t }{ $y/t }</j>"
    )
    found["join of partitions"] = (
        'for $x in stream("merged")/r/p[k = 1]|count 3| for $y in stream("packed")/r/p|count 2| '
        "where $x/v > $y/v return <j>{ $x/t }{ $y/t }</j>"
    )
    found["interval"] = (
        'for $x in stream("timed")/r/p for $y in stream("packed")/r/p '
        "where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 and $x/k = 3 return <j>{ $x/t }{ $y/t }</j>"
    )
    found["seen"] = '<d>{ sum(stream("timed")/r/p#[3]/v) }</d>'
    for name in EDITED:
        path = f'stream("{name}")/r/e'
        found[f"{name} shown"] = f"<all>{{ for $e in {path} where $e/n > 3 return <o>{{ $e/m }}{{ $e/n }}</o> }}</all>"
        found[f"{name} sum"] = f"<s>{{ sum({path}/n) }}</s>"
        found[f"{name} ordered"] = f"for $e in {path}[m = 2] order by $e/n descending return $e/n"
        found[f"{name} versions"] = f"<v>{{ {path}/n#1 }}</v>"
    found["beside"] = (
        'for $p in stream("timed")/r/p[k = 4] return <b>{ $p/t }{ count(stream("edited_merged")/r/e[m = 4]/n) }</b>'
    )
    found["together"] = '<d>{ count(stream("timed")/r/p[k = 1]?[9]) }{ sum(stream("edited_merged")/r/e/n) }</d>'
    selected = builder.stream("lines").select("v > 3").project("k")
    averages = builder.stream("timed").window("t", size=10).aggregate(by=["wid"], avg=["v"])
    return {**found, "plan": write_plan(selected.plan), "plan of windows": write_plan(averages.plan)}
