"""Items and queries with names in namespaces are answered as by law, and in columns."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from columnar.expression_cases import Style
from columnar.namespaced_cases import Naming
from columnar.random_cases import Shares, random_lines, random_query
from columnar.streams import ItemQuery, Stream, check_by_law, item_queries
from mass import Mass, some

_STYLES: tuple[Style, ...] = ("elements", "attributes", "mixed")


def check_case(number: int, shares: Shares) -> None:
    """A few queries over a few dozen items."""
    random = Random(number)
    style, naming = random.choice(_STYLES), Naming.draw(random)
    queries = dict(random_query(random, style, naming.query) for _ in range(3))
    lines = [naming.item(line) for line in random_lines(random, style)[0]]
    is_document = naming.place == "root" or random.randrange(4) == 0
    stream = Stream(queries, "document" if is_document else "lines", root=naming.root)
    data = "".join(f"{line}\n" for line in lines)
    written = f"{naming.root}{data}</r>" if is_document else data
    shares.cover(stream, *check_by_law(stream, written.encode(), random))


@pytest.mark.mass
def test_some_random_names_are_answered_as_by_law() -> None:
    """The same cases each time; a good part of them is answered in columns."""
    shares = Shares()
    for number in range(20_000, 20_016):
        check_case(number, shares)
    shares.check(compiled=0.4, left_to_law=0.8)


def test_random_names_are_answered_as_by_law(mass: Mass) -> None:
    """Namespaces of all kinds in items of all kinds."""
    for number in mass.cases(10_000):
        check_case(number, Shares())


# --- single streams ---------------------------------------------------------------------------------------

PROLOG = 'declare namespace q = "u"; '
QUERIES = {
    "values": "for $p in stream('s')/*:r/q:p where $p/q:x>2 return <a k='{ $p/q:x }'>{ string($p/y), $p/q:x + 1 }</a>",
    "in no namespace": "for $p in stream('s')/*:r/p where $p/x > 2 return <a>{ string($p/y) }</a>",
    "any": "for $p in stream('s')/*/* return <a>{ count($p/*), count($p/@*), count($p//*:x), count($p/q:*) }</a>",
    "names": "for $p in stream('s')/*:r/*:p return <a>{ name($p), local-name($p/q:x) }</a>",
    "items": "stream('s')/*:r/q:p[q:x > 2]",
    "elements": "for $p in stream('s')/*:r/*:p return ($p/q:x, <a>{ $p/*:x }</a>, <b xmlns='v'>{ $p/q:x, $p/*:y }</b>)",
    "constructors": "for $p in stream('s')/*:r/*:p return <q:a><b xmlns='u'>{ $p/c }</b><q:d>{ $p/q:x }</q:d></q:a>",
    "within": "<q:all xmlns='w'>{ for $p in stream('s')/*:r/*:p return <a>{ $p/*:x }</a> }</q:all>",
    "items within": "<a xmlns='w'>{ for $p in stream('s')/*:r/*:p return $p }</a>",
    "by default": "declare default element namespace 'u'; for $p in stream('s')/*:r/p return <a>{ $p/x }</a>",
}
PREFIXED = '<n:p xmlns:n="u" id="1"><n:x>{}</n:x><y>a</y></n:p>'
ODD = [
    '<n:p xmlns:n="v" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u2" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p id="1"><n:x>5</n:x><y>a</y></n:p>',
    "<n:p><n:x>5</n:x><y>a</y></n:p>",
    "<n:p xmlns:n='u' id=\"1\"><n:x>5</n:x><y>a</y></n:p>",
    '<n:p id="1" xmlns:n="u"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" xmlns:n="u" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" xmlns:m="u" id="1"><m:x>5</m:x><y>a</y></n:p>',
    '<n:p xmlns="u" xmlns:n="u" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns="" xmlns:n="u" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" id="1"><n:x xmlns:n="v">5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" id="1"><n:x xmlns:n="u">5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" id="1"><n:x>5</n:x><y xmlns="u">a</y></n:p>',
    '<n:p xmlns:n="&#117;" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" id="1" ><n:x>5</n:x><y></y></n:p>',
    '<n:p xmlns:n="u" />',
    "<n:p/>",
    '<p xmlns="u" id="1"><x>5</x><y>a</y></p>',
    "<p><x>5</x><y>a</y></p>",
    '<n:p xmlns:n="urn:anabranch:stream" id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" n:id="1"><n:x>5</n:x><y>a</y></n:p>',
    '<n:p xmlns:n="u" xml:id="1"><n:x xml:lang="de">5</n:x><y>a</y></n:p>',
    '<xmlns:p xmlns:n="u"/>',
    '<n:p xmlns:n="u" id="1"><n:x>5</n:x><n:y>a</n:y></n:p >',
]


def asked() -> dict[str, ItemQuery]:
    return item_queries({name: PROLOG + text for name, text in QUERIES.items()})


def usual(item: str) -> list[str]:
    return [item.format(number) for number in range(9)]


def test_usual_items_go_through_columns() -> None:
    """Only the first bytes of a stream are the parser's; the law's is what has to undeclare a namespace further in."""
    lines = usual(PREFIXED) * 5
    data = "".join(f"{line}\n" for line in lines).encode()
    stream = Stream(asked(), "lines", root="<r>")
    answers, _ = check_by_law(stream, data, Random(1))
    assert answers.coverage.by_law == 1, answers.coverage
    del stream.queries["items within"]
    answers, _ = check_by_law(stream, data, Random(1))
    stream.left_to_law = 0
    assert stream.by_columns([data], answers)[1] <= 1
    assert stream.left_to_law <= len(stream.queries)


@pytest.mark.mass
def test_items_that_declare_otherwise_mean_what_they_say() -> None:
    """Each odd item alone among usual ones, all of them together, and some of them first."""
    for odd in [*([each] for each in some(ODD)), ODD]:
        lines = [*usual(PREFIXED), *odd, *usual(PREFIXED)]
        for each in (lines, [*odd, *lines]):
            stream = Stream(asked(), "lines", root="<r>")
            check_by_law(stream, "".join(f"{line}\n" for line in each).encode(), Random(2))


ROOTS = [
    '<r xmlns:n="u">',
    '<r xmlns="u">',
    '<r xmlns="u" xmlns:n="v">',
    '<n:r xmlns:n="u" xmlns:s="urn:anabranch:stream">',
]
ROOTS += ["<r>", '<r xmlns="">', '<r xmlns:n="urn:anabranch:stream">', '<r xmlns:n="&amp;">', '<r xmlns:n="u" a="1">']


def test_roots_are_the_scope_of_their_items(mass: Mass) -> None:
    """Whatever the root of the stream and that of a document declare."""
    below = [*usual("<n:p id='1'><n:x>{}</n:x><y>a</y></n:p>".replace("'", '"')), *ODD]
    plain = [*usual("<p><x>{}</x><y>a</y></p>"), *ODD]
    cases = [*product(ROOTS, ROOTS, (below, plain, [*plain, *below]))]
    for number in mass.cases(len(cases)):
        root, other, items = cases[number]
        stream = Stream(asked(), "document", root=root)
        end = "</n:r>" if other.startswith("<n:") else "</r>"
        check_by_law(stream, f"{other}{''.join(items)}{end}".encode(), Random(3))


@pytest.mark.mass
def test_items_below_a_root_with_declarations_go_through_columns() -> None:
    """Also what is copied of them, which takes the declarations along."""
    for root, item in (
        ('<r xmlns:n="u">', "<n:p><n:x>{}</n:x><y>a</y></n:p>"),
        ('<r xmlns="u">', "<p><x>{}</x><y>a</y></p>"),
    ):
        stream = Stream(asked(), "document", root=root)
        data = f"{root}{''.join(usual(item) * 15)}</r>".encode()
        answers, _ = check_by_law(stream, data, Random(4))
        assert answers.coverage.by_law <= 1, answers.coverage
        del stream.queries["items within"]
        answers, _ = check_by_law(stream, data, Random(4))
        read = stream.by_columns([data], answers)[1]
        assert read <= 2_048 / len(usual(item)[0]) + 2, "a splitter has the first bytes"


def test_an_attribute_that_is_given_twice_by_two_prefixes_is_a_fault() -> None:
    """Each of the two is usual, and an item with both is a bad one."""
    one, other, both = (
        f'<p xmlns:m="u" xmlns:n="u" {each}><x>3</x></p>' for each in ('m:k="1"', 'n:k="1"', 'm:k="1" n:k="1"')
    )
    stream = Stream(asked(), "lines", root="<r>")
    data = "".join(f"{line}\n" for line in [one, other] * 9 + [both]).encode()
    check_by_law(stream, data, Random(5))
    assert len(stream.by_law(data).dead) == 1
