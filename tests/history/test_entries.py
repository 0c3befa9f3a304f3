"""What a query keeps of a stream of updates: its entries, cut down to what the query can see of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.branch.document.projection import KeptDocument
from anabranch.language import check, parse
from anabranch.law.history.chains import Chain, Content, Lived
from anabranch.sharing.needs import needs_of
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element
from history.asking import elements


def keep(query: str, text: str) -> KeptDocument:
    """What a query keeps of a stream `s` at its end."""
    needs = needs_of(check(parse(query), query, inputs={"s": None}).query)
    kept = KeptDocument(implied_root("root"), "s", needs)
    feed(kept, text)
    return kept


def feed(kept: KeptDocument, text: str) -> None:
    for element in elements(text):
        at = kept.now if getattr(element, "at", None) is None else Fraction(element.at or 0)
        for _ in kept.take(element, at):
            kept.moved(kept.now)


def held(kept: KeptDocument) -> list[str]:
    """All entries in order as text, a chain as its versions in brackets, newest first, and a mark as `|`."""
    entries = [kept.by_number[number].content for number in kept.order]
    return ["|" if each is None else written(each) for each in entries]


def written(content: Content) -> str:
    match content:
        case Lived(Element() as element, _, _, _, inside):
            tag = element.name.local
            return f"<{tag}>{''.join(written(each) for each in inside)}</{tag}>"
        case Lived(node):
            return serialize(node)
        case Chain(versions=versions):
            return f"[{' '.join(''.join(written(each) for each in version.content) for version in reversed(versions))}]"


STREAM = """
<i><a>1</a><s:mutable id="b"><b>X</b></s:mutable><s:mutable id="c"><c>7</c></s:mutable></i><j><b>5</b></j>
<s:replace target="b" at="10"><b>Y</b></s:replace><s:replace target="c" at="11"><c>8</c></s:replace>
<s:replace target="b" at="20"><b>Z</b></s:replace><s:replace target="b" at="30"><b>W</b></s:replace>
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('stream("s")/root/i/b', "<i>[<b>W</b>][]</i>"),
        ('stream("s")/root/i/b#1', "<i>[<b>W</b> <b>Z</b>][ ]</i>"),
        ('stream("s")/root/i/b#[2]', "<i>[<b>W</b> <b>Z</b> <b>Y</b>][ ]</i>"),
        ('stream("s")/root/i/b?[15]', "<i>[<b>W</b> <b>Z</b> <b>Y</b>][]</i>"),
        ('stream("s")/root/i/b?10', "<i>[<b>W</b> <b>Z</b>][]</i>"),
        ('stream("s")/root/i/a', "<i><a>1</a>[][]</i>"),
        ('count(stream("s")/root/i)', "<i></i>"),
        ('count(stream("s")/root/i/b#1)', "<i>[<b></b> <b></b>][ ]</i>"),
    ],
)
def test_no_more_is_kept_than_the_query_needs(query: str, expected: str) -> None:
    """`#1` keeps two versions, a snapshot one, `?[15]` what lived in that time; what the query cannot see is gone."""
    assert held(keep(query, STREAM)) == [expected]


def test_what_has_expired_is_forgotten() -> None:
    """A heartbeat moves time, and what nobody can ask for any more goes; the rest of the entry stays."""
    kept = keep('stream("s")/root/i/b?[15]', STREAM)
    feed(kept, '<s:punctuation at="40"/>')
    assert held(kept) == ["<i>[<b>W</b> <b>Z</b>][]</i>"]
    feed(kept, '<s:punctuation at="45"/>')
    assert held(kept) == ["<i>[<b>W</b>][]</i>"]
    assert kept.by_number[0].marks == []


def test_an_old_version_keeps_what_lived_in_it() -> None:
    """What arrives in a region inside of what was replaced never lived, and is not kept; its id stays known."""
    text = """
    <s:mutable id="a"><a><s:mutable id="b"><b>X</b></s:mutable></a></s:mutable>
    <s:replace target="b"><b>Y</b></s:replace>
    <s:replace target="a"><a><b>W</b></a></s:replace><s:replace target="b" id="b2"><b>late</b></s:replace>
    <s:after target="b2"><b>late</b></s:after>
    """
    kept = keep('stream("s")/root/a#1/b', text)
    assert held(kept) == ["[<a><b>W</b></a> <a>[<b>Y</b>]</a>]"]
    assert kept.admission.dead == []
    feed(kept, '<s:replace target="a"><a/></s:replace><s:replace target="b"><b>later</b></s:replace>')
    assert held(kept) == ["[<a></a> <a><b>W</b></a>]"]
    assert kept.admission.dead == []


REGIONS = """
<i>0</i><s:mutable id="1"><i>1</i><s:mutable id="2"><i>2</i><i>3</i></s:mutable></s:mutable><i>9</i>
<s:after target="2"><i>4</i></s:after><s:before target="1" id="5"><i>5</i></s:before>
"""


def test_regions_between_items_are_opened() -> None:
    """Where only their present counts, their content stands among the other entries."""
    kept = keep('stream("s")/root/i', REGIONS)
    numbers = [each for each in held(kept) if each != "|"]
    assert numbers == [f"<i>{each}</i>" for each in (0, 5, 1, 2, 3, 4, 9)]
    feed(kept, '<s:replace target="2"><i>6</i></s:replace>')
    assert [each for each in held(kept) if each != "|"] == [f"<i>{each}</i>" for each in (0, 5, 1, 6, 4, 9)]
    feed(kept, '<s:replace target="1"><i>7</i></s:replace><s:replace target="2"><i>8</i></s:replace>')
    assert held(kept) == ["<i>0</i>", "|", "<i>5</i>", "|", "|", "<i>7</i>", "|", "<i>9</i>"]


def test_regions_between_items_are_entries_where_their_past_counts() -> None:
    """A chain is one entry with all its versions; what stands beside it is another."""
    kept = keep('stream("s")/root/i#1', REGIONS)
    assert held(kept) == ["<i>0</i>", "[<i>5</i>]", "[<i>1</i>[<i>2</i><i>3</i>][<i>4</i>]]", "<i>9</i>"]


def test_what_changes_is_told() -> None:
    """An update names the entry that it changes, and no other."""
    items = "".join(f'<i><s:mutable id="{each}"><b>{each}</b></s:mutable></i>' for each in range(50))
    kept = keep('stream("s")/root/i/b', items)
    assert list(kept.changed) == list(range(50))
    kept.changed.clear()
    feed(kept, '<s:replace target="7"><b>x</b></s:replace><s:punctuation at="5"/><j/>')
    assert list(kept.changed) == [7]
