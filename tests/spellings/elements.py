"""Questions with paths whose rows are elements, over lines of JSON, and SaxonC-HE over the same as XML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.language import parse
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from oracle.counting import compared
from oracle.saxon import canonical, judge
from spellings.drawing import Drawing, as_xml
from spellings.questions import Bound, Field, Groups, Question, Window, parts
from spellings.xquery import Elements


def check_elements(number: int, folder: Path) -> tuple[int, list[str]]:
    """How many random questions were asked, and what is wrong with the answers."""
    drawing = Drawing(Random(f"elements {number}"))
    given = drawing.inputs(25, end=None, dated=False, huge=False)
    asked = [_asked(each) for each in drawing.questions()]
    texts = [Elements(given.dated).question(each) for each in asked if _is_known(each)]
    for name in ("s", "u", "p"):
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in getattr(given, name)))
    sources = [Source(name, folder / f"{name}.jsonl", format="json") for name in ("s", "u")]
    inputs = Inputs(sources, {"p": DocumentSource(folder / "p.jsonl")}, finite=True)
    queries = [prepare(f"q{place}", text, inputs, "local") for place, text in enumerate(texts)]
    with answering(queries, inputs) as run:
        found = ["".join(run.answers[each.name]) for each in queries]
    written = {name: as_xml(getattr(given, name)) for name in ("s", "u", "p")}
    wrong = []
    for text, ours in zip(texts, found, strict=True):
        theirs = judge(parse(text), written)
        compared.add(text)
        if canonical(ours) != theirs:
            wrong.append(f"{text}\n  ours   {canonical(ours)}\n  saxon  {theirs}")
    return len(texts), [*wrong, *(written.values() if wrong else ())]


def _asked(question: Question) -> Question:
    """Without the bounds of windows, which are ours."""
    if not isinstance(question, Groups):
        return question
    return replace(question, columns=tuple(each for each in question.columns if not isinstance(each, Bound)))


def _is_known(question: Question) -> bool:
    """Whether the judge can be asked: it has no sessions and knows no JSON that is given back as it is."""
    found = list(parts(question))
    if any(isinstance(each, Window) and each.gap for each in found):
        return False
    return not any(isinstance(each, Field) and each.type == "any" for each in found)
