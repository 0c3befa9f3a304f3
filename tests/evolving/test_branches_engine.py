"""The reference engine over streams that evolve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from algebra.accented import CELSIUS, add, alter, drop
from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.finite import FiniteRun, answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from evolving.branching import Given, raw

ALTERED = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="t" by=". * 5 div 9 - 160 div 9"/></s:accent>'
SCHEMA = "<!ELEMENT r (i*)><!ELEMENT i (s?, t?)><!ELEMENT s (#PCDATA)><!ELEMENT t (#PCDATA)>"


def source(folder: Path, given: Sequence[Given], *, name: str = "a", schema: str | None = None) -> Source:
    path = folder / f"{name}.xml"
    path.write_text("".join(f"{raw(each)}\n" for each in given))
    declared = None if schema is None else Schema.from_dtd(schema, "r")
    return Source(name, path, "lines", declared, root="r", strict=schema is not None)


def answer(query: str, *sources: Source, policy: Policy = "accumulate") -> tuple[str, FiniteRun]:
    inputs = Inputs(sources)
    prepared = prepare("q", query, inputs, "reference")
    with answering([prepared], inputs, policy=policy) as run:
        return "".join(run.answers["q"]), run


def test_accents_stand_in_the_frame_of_an_answer(tmp_path: Path) -> None:
    """An accent that comes out stands at its place, and what follows is in its units; a policy may say otherwise."""
    evolving = source(tmp_path, ["t=68 s=1", alter("t", CELSIUS), "t=25.0 s=2"])
    query = '<all>{for $p in stream("a")/r/i where $p/t > 60 return <o>{$p/t}</o>}</all>'
    found, run = answer(query, evolving)
    assert found == f"<all><o><t>68</t></o>{ALTERED}<o><t>25.0</t></o></all>"
    assert (run.items, [*run.dead], run.aborted) == (2, [], {})
    absorbed, _ = answer(query, evolving, policy="absorb")
    assert absorbed == "<all><o><t>68</t></o><o><t>77</t></o></all>"


def test_a_stream_that_evolves_beside_one_that_does_not(tmp_path: Path) -> None:
    """A join of both; and a query over the other one alone is answered as ever."""
    sources = source(tmp_path, ["t=68", alter("t", CELSIUS), "t=25"]), source(tmp_path, ["t=77", "t=1"], name="b")
    join = 'for $x in stream("a")/r/i |count 1| for $y in stream("b")/r/i |count 1| where $x/t = $y/t return <m/>'
    assert answer(join, *sources)[0] == "<m/>"
    assert answer('for $y in stream("b")/r/i return $y/t', *sources)[0] == "<t>77</t><t>1</t>"


def test_what_is_bad_is_set_aside_once(tmp_path: Path) -> None:
    """Items that carry a dropped path, accents that are not valid, and items that fail are dead letters."""
    evolving = source(tmp_path, ["t=1 s=1", drop("t"), "t=2 s=2", drop("t"), "s=x", "s=3"])
    found, run = answer('for $p in stream("a")/r/i return <o>{$p/s + 1}</o>', evolving)
    assert found == "<o>2</o><o>4</o>"
    dropped, twice, failed = run.dead
    assert (dropped.reason, dropped.raw) == ("it carries 't', which was dropped", "<i><t>2</t><s>2</s></i>")
    assert twice.reason == "'t' is dropped where it does not exist"
    assert (failed.code, failed.raw) == ("FORG0001", "<i><s>x</s></i>")


def test_an_aborted_query_keeps_what_it_gave(tmp_path: Path) -> None:
    """LAWS 4.6, with the reason."""
    evolving = source(tmp_path, ["t=1 s=1", drop("t"), "s=2"])
    found, run = answer('for $p in stream("a")/r/i where $p/t > 0 return $p/s', evolving)
    assert found == "<s>1</s>"
    assert run.aborted == {"q": "'where' cannot do without 't': the accent on 't' where true() drops it"}


def test_a_strict_stream_carries_what_was_announced(tmp_path: Path) -> None:
    """A path that nobody declared is bad before it is added, and good behind that."""
    evolving = source(tmp_path, ["p=1", add("p"), "p=2"], schema=SCHEMA)
    found, run = answer('for $p in stream("a")/r/i return <o>{$p/p}</o>', evolving)
    assert found.endswith("<o><p>2</p></o>")
    assert [each.reason for each in run.dead] == ["the path 'p' is not declared"]
