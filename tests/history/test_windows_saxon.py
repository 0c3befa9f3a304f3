"""Saxon as the judge of windows over updates: plain XQuery over the plain document of each moment (LAWS 5.10).

Here updates are applied to a tree of lxml, in which regions are wrappers, and windows are spelled as conditions on
values, as subsequences and as runs of sorted values: nothing of ours takes part.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from lxml import etree
from saxonche import PySaxonProcessor

from anabranch.law.history.timeline import answer, arrivals
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import Asked
from history.windowed import WindowWriter
from mass import some
from oracle.saxon import canonical

S = f"{{{STREAM_NAMESPACE}}}"
TIME = """
for $k in distinct-values(for $t in $items/xs:decimal(t)
    return xs:integer(max((0, floor(($t - {size}) div {step}) + 1))) to xs:integer(floor($t div {step})))
order by $k
let $w := $items[xs:decimal(t) ge $k * {step} and xs:decimal(t) lt $k * {step} + {size}]
return {result}
"""
COUNT = """
for $j in 0 to (if (count($items) ge {size}) then (count($items) - {size}) idiv {step} else -1)
let $w := subsequence($items, $j * {step} + 1, {size})
return {result}
"""
WINDOWS = {
    "t diff 10": TIME.replace("{size}", "10").replace("{step}", "10"),
    "t diff 10 step 5": TIME.replace("{size}", "10").replace("{step}", "5"),
    "t diff 4 step 7": TIME.replace("{size}", "4").replace("{step}", "7"),
    "t diff 3 step 0.5": TIME.replace("{size}", "3").replace("{step}", "0.5"),
    "count 2": COUNT.replace("{size}", "2").replace("{step}", "2"),
    "count 3 step 1": COUNT.replace("{size}", "3").replace("{step}", "1"),
    "count 2 step 3": COUNT.replace("{size}", "2").replace("{step}", "3"),
    "t gap 3": "local:sessions($items, 3, function($i) { '' }) ! (let $w := ?* return {result})",
    "t gap 5 by k": "local:sessions($items, 5, function($i) { string($i/k) }) ! (let $w := ?* return {result})",
}
RESULTS = (
    "<w>{ count($w), sum($w/v), max($w/v/number()), min($w/v/number()) }</w>",
    "<w>{ $w/v }</w>",
    "<w>{ for $o in $w order by $o/v/number() descending return $o/v/text() }</w>",
    "<w>{ for $o in $w group by $k := string($o/k) order by $k return <g k='{ $k }'>{ count($o), sum($o/v) }</g> }</w>",
)
PROLOG = """xquery version "3.1";
declare variable $doc external;
declare function local:sessions($items, $gap, $key) {
  for $session in
    for $mine in (for $k in distinct-values($items ! $key(.)) return [$items[$key(.) = $k]])
    let $sorted := sort($mine?*, (), function($i) { xs:decimal($i/t) })
    let $starts := for $n in 1 to count($sorted)
      where $n = 1 or xs:decimal($sorted[$n]/t) - xs:decimal($sorted[$n - 1]/t) ge $gap return $n
    for $start at $n in $starts
    let $end := ($starts[$n + 1] - 1, count($sorted))[1]
    return [$sorted[position() = $start to $end]/.]
  order by max($session?* ! xs:decimal(t)), count(($session?*)[1]/preceding::*)
  return $session
};
"""


@cache
def processor() -> PySaxonProcessor:
    return PySaxonProcessor(license=False)


def judged(query: str, document: str) -> str:
    """What Saxon answers over a document."""
    saxon = processor().new_xquery_processor()
    saxon.set_parameter("doc", processor().parse_xml(xml_text=document))
    saxon.set_query_content(f"{PROLOG} <answer>{{ let $items := $doc/root/i return ({query}) }}</answer>")
    return canonical(saxon.run_query_to_string(), wrapped=True)


class PlainDocument:
    """A document whose regions are wrappers, edited by hand."""

    def __init__(self) -> None:
        self._root = etree.Element("root")

    def take(self, element: etree._Element) -> None:
        """Apply an element of the stream."""
        if element.tag == f"{S}replace":
            for region in self._region(element.get("target")):
                region.text = element.text
                region[:] = list(element)
        elif element.tag in (f"{S}before", f"{S}after"):
            for region in self._region(element.get("target")):
                added = etree.Element(f"{S}mutable", id=element.get("id") or "")
                added[:] = list(element)
                (region.addprevious if element.tag == f"{S}before" else region.addnext)(added)
        else:
            self._root.append(element)

    def _region(self, id: str | None) -> list[etree._Element]:
        return [each for each in self._root.iter(f"{S}mutable") if each.get("id") == id]

    @property
    def text(self) -> str:
        """The document as it stands."""
        plain = etree.fromstring(etree.tostring(self._root))
        etree.strip_tags(plain, f"{S}mutable")
        etree.cleanup_namespaces(plain)
        return str(etree.tostring(plain).decode())


class SoundWriter(WindowWriter):
    """Writes streams in which every value is a number."""

    def _content(self, kind: str) -> str:
        match kind:
            case "t":
                return f"<t>{self._random.choice((*range(25), 1.5, 7.25))}</t>"
            case "v":
                return f"<v>{self._random.choice((*range(8), 2.5))}</v>"
            case "k":
                return self._random.choice(("<k>a</k>", "<k>b</k>", ""))
            case _:
                return super()._content(kind)

    def _region(self, content: str, kind: str) -> str:
        return content if kind == "t" else super()._region(content, kind)  # one that is deleted has no place

    def _element(self) -> str:
        found = super()._element()
        return found.replace("<p>", "<q>").replace("</p>", "</q>")


@pytest.mark.parametrize("window", WINDOWS)
def test_saxon_agrees(window: str) -> None:
    """After every element of random streams, for windows seen through aggregates, with their content, and in groups."""
    compared = 0
    for number in some(range(20)):
        random = Random(f"{window} {number}")
        result = random.choice(RESULTS)
        stream = SoundWriter(random).stream(random.randint(4, 10))
        query = f'for $w in stream("s")/root/i|{window}| return {result}'
        asked = Asked(query, s=stream)
        document = PlainDocument()
        written = list(etree.fromstring(f'<root xmlns:s="{STREAM_NAMESPACE}">{stream}</root>'))
        shown: set[str] = set()
        for each, element in zip(arrivals(asked.documents, asked.streams), written, strict=True):
            list(asked.documents[each.stream].take(each.element, each.at, each.partition))
            document.take(element)
            text = answer(asked.query, asked.documents).text
            theirs = judged(WINDOWS[window].replace("{result}", result), document.text)
            assert canonical(text) == theirs, (query, stream, document.text)
            shown.add(theirs)
        compared += len(shown) > 2
    assert compared
