"""The scanner of XML items against parser and serialiser: what it takes, what it says of it, and what it refuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from anabranch.columnar.scan.decoded import NOT_CANONICAL, WITH_SIGNS, DecodedTexts
from anabranch.columnar.scan.kernels import ABSENT, UNCLEAR, ItemColumns
from anabranch.columnar.scan.look import Look, LookPart
from anabranch.columnar.scan.template import Template
from anabranch.columnar.scan.wanted import FrameLog, WantedColumns
from anabranch.columnar.scan.xml_scan import NO_PATTERN, cut_entries, cut_items, longest_item
from anabranch.errors import BadItem
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons
from anabranch.stream.reading.lines import Carry, LineSplitter, line_cut
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.split import DocumentSplitter
from columnar.near_misses import INSIDE, OUTSIDE, RAW
from columnar.scanned import (
    LIMITS,
    LONGEST,
    Row,
    Scanned,
    canonical,
    check_scanned,
    expected,
    logged,
    room_for_texts,
    row_values,
    scan_one,
    scanned,
)
from mass import Mass, some

ORDER = (
    b'<order id="7"><customer>Ann</customer><line sku="a"><qty>1</qty></line><line sku="b"><qty>2</qty><note/></line>'
    b"<total>3.5</total></order>"
)
ENOUGH = 50
"""So many cases show what usual ones have in them; the compiling of kernels may leave time for fewer."""
NAMES = ["a", "b", "ab", "x", "y", "n", "z", "name", "längs", "much-longer-than-a-word", "much-longer-than-a-bird"]
TEXTS = [
    "",
    "5",
    "-0.25",
    "1e3",
    "abc",
    "a b",
    " ",
    "é",
    "12é",
    "€",
    "\U0001f600",
    "it's",
    "\u0085",
    "123456789012345",
    'a"b',
    "AT&amp;T",
    "1&lt;2",
]
BETWEEN = ["", "", "", " ", "\n  ", "\t", "text", 'say "a"', "ü", "\x7f", "5"]
ODD_TEXTS = [
    '"', "\t", "\n", "\r", "&lt;", "&amp;", "&#65;", ">", "]]>", "<!--c-->", "<?i?>", "<![CDATA[x]]>", "\0", "\x1f",
]  # fmt: skip


def wanted_of(*items: bytes) -> WantedColumns:
    """All columns of the look of some items."""
    look = Look.learn([(each, parse_item(each, LIMITS)) for each in items])
    assert look is not None
    parts = range(len(look.parts))
    return WantedColumns.of(look, [each for part in parts for each in (part, ~part)], parts)


# --- items of every kind ------------------------------------------------------------------------------------


def random_look(random: Random) -> Look:
    """A tree of up to 25 parts, in any order in which parents come first."""
    parts = [LookPart(random.choice(NAMES), -1, has_text=True)]
    taken = {(-1, parts[0].name)}
    for _ in range(random.choice((0, 1, 3, 8, 24))):
        parent = random.choice([-1, *(number for number, each in enumerate(parts) if each.name[0] != "@")] * 3 + [0])
        name = random.choice(("", "", "@")) + random.choice(NAMES)
        if (parent, name) in taken or (parent < 0 and name[0] == "@"):
            continue
        taken.add((parent, name))
        parts.append(
            LookPart(name, parent, has_text=True, repeated=parent >= 0 and name[0] != "@" and random.random() < 0.3)
        )
    above = {each.parent for each in parts if each.name[0] != "@"}
    return Look(tuple(replace(each, has_text=number not in above) for number, each in enumerate(parts)))


def random_item(look: Look, random: Random, oddity: float) -> str:
    """An item of a look, mostly canonical; the less so, the more oddity there is."""

    def element(part: int) -> str:
        children = look.children(part)
        attributes = [each for each in children if look.parts[each].name[0] == "@" and random.random() < 0.7]
        random.shuffle(attributes)
        if attributes and random.random() < oddity:
            attributes.append(attributes[0])
        tag = look.parts[part].name + "".join(f' {look.parts[each].name[1:]}="{text()}"' for each in attributes)
        if look.parts[part].has_text:
            content = text()
        else:
            content = between()
            inside = [each for each in children if look.parts[each].name[0] != "@" and random.random() < 0.8]
            if random.random() < 0.3:
                random.shuffle(inside)
            for child in inside:
                times = random.choice((1, 1, 2, 5)) if look.parts[child].repeated else 1 + (random.random() < oddity)
                content += "".join(element(child) + between() for _ in range(times))
        if random.random() < oddity:
            content += random.choice(("<nope/>", '<a b="1"/>', "<x>1</x>", f"<{look.parts[part].name}/>"))
        return f"<{tag}>{content}</{look.parts[part].name}>" if content or random.random() < oddity else f"<{tag}/>"

    def text() -> str:
        return random.choice(ODD_TEXTS if random.random() < oddity else TEXTS)

    def between() -> str:
        return random.choice(ODD_TEXTS if random.random() < oddity else BETWEEN)

    return element(random.choice(look.children(-1)))


def edited(item: bytes, random: Random) -> bytes:
    """An item with a few bytes changed, put in or taken out."""
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randint(0, len(item))
        match random.randrange(6):
            case 0:
                item = item[:at] + item[at + random.choice((1, 1, 3)) :]
            case 1:
                item = item[:at] + bytes([random.randrange(256)]) + item[at:]
            case 2:
                item = item[:at] + bytes([random.randrange(256)]) + item[at + 1 :]
            case 3:
                item = item[:at] + random.choice((*(each.encode() for each in INSIDE), *RAW)) + item[at:]
            case 4:
                other = random.randint(0, len(item))
                item = item[:at] + item[min(at, other) : max(at, other)] + item[at:]
            case _:
                item = item[:at] + bytes([random.choice(b"<>/=\"' &abxy5\n\t")]) + item[at + random.randint(0, 1) :]
    return item


def random_wanted(look: Look, random: Random) -> WantedColumns:
    columns = [each for part in range(len(look.parts)) for each in (part, ~part) if random.random() < 0.7]
    return WantedColumns.of(look, columns, [each for each in columns if each >= 0 and random.random() < 0.5])


def test_items_of_every_look_against_parser_and_serialiser(mass: Mass) -> None:
    """Exactly what is canonical, of the look and plain is taken, and every span, number and row is that of the tree.

    20,000 looks with 25 items each, of which every other is edited.
    """
    taken = Counter[str]()
    for number in mass.cases(20_000):
        random = Random(f"{mass.seed} {number}")
        look = random_look(random)
        wanted = random_wanted(look, random)
        for _ in range(25):
            item = random_item(look, random, random.choice((0, 0, 0.02, 0.1))).encode()
            item = edited(item, random) if random.random() < 0.5 else item
            before, behind = (
                random.choice((b"", b"\n", b"<a/>")),
                random.choice((b"", b"\n", b"\r", b"x", b"<a>", b">")),
            )
            is_good = expected(item, wanted) is not None
            should = check_scanned(item, wanted, scanned_alone(item, wanted, before, behind, is_good=is_good))
            taken["taken" if should else "not canonical" if canonical(item) is None else "refused"] += 1
            taken["logged"] += should is not None and len(should.spans) > 0
            taken["with signs"] += should is not None and should.mark == WITH_SIGNS
            taken["unclear"] += should is not None and (UNCLEAR, UNCLEAR, None) in should.rows
    total = taken["taken"] + taken["not canonical"] + taken["refused"]
    kinds = "taken", "not canonical", "refused", "logged", "unclear", "with signs"
    assert total < 2_000 or all(taken[each] > total // 100 for each in kinds), taken


def scanned_alone(item: bytes, wanted: WantedColumns, before: bytes, behind: bytes, *, is_good: bool) -> Scanned | None:
    """What the scanner says; of a bad item it is told where that ends, since only the front of it may be an item."""
    if is_good:
        return scanned(item, wanted, before, behind)
    columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(len(wanted.frames), LONGEST)
    end = scan_one(np.frombuffer(item or b" ", np.uint8), 0, len(item), LONGEST, wanted.guide, columns, log, 0)
    if end < 0:
        assert not log.counts.any()
        return None
    front = scanned(item[:end], wanted)
    assert front is not None
    if end == len(item):
        return front
    check_scanned(item[:end], wanted, front)
    return None


@pytest.mark.mass
def test_every_construct_at_every_place() -> None:
    """Each construct of XML and each hostile byte, at each place of an order: taken where it should be."""
    wanted = wanted_of(ORDER, ORDER.replace(b"<note/>", b"<note>x</note>"), b"<order> <line/></order>")
    pieces = [
        *(each.encode() for each in (*INSIDE, *OUTSIDE, *ODD_TEXTS)),
        *RAW,
        *(bytes([each]) for each in range(256)),
    ]
    taken = 0
    for piece in dict.fromkeys(pieces):
        for at in range(len(ORDER) + 1):
            item = ORDER[:at] + piece + ORDER[at:]
            is_good = expected(item, wanted) is not None
            should = check_scanned(item, wanted, scanned_alone(item, wanted, b"", b"", is_good=is_good))
            taken += should is not None
    assert taken > 2_500


@pytest.mark.parametrize(
    "around", some([b'<order id="%s"/>', b"<order><customer>%s</customer></order>", b"<order>%s<total/></order>"])
)
def test_characters_beyond_ascii(around: bytes) -> None:
    """A character of two, three or four bytes is taken exactly where a parser takes it, at any border of UTF-8."""
    wanted = wanted_of(ORDER)
    second = [0x00, 0x3C, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBE, 0xBF, 0xC0, 0xFF]
    first = [*range(0x80, 0x100)]
    sequences = [bytes([each]) for each in first]
    sequences += [bytes([each, other]) for each in first for other in second]
    sequences += [bytes([each, other, last]) for each in first[0x60:] for other in second for last in second]
    sequences += [bytes([each, other, 0x80, last]) for each in first[0x70:] for other in second for last in second]
    taken = 0
    for each in sequences:
        item = around % each
        should = check_scanned(item, wanted, scanned(item, wanted))
        taken += should is not None
    assert taken > 100


def test_an_order_is_taken_apart() -> None:
    """The rows and the log of one item, written out."""
    look = Look.learn([(ORDER, parse_item(ORDER, LIMITS))])
    assert look is not None
    number = {look.path(part)[1:]: part for part in range(len(look.parts))}
    customer, sku, qty, line, total = (
        number["customer",], number["line", "@sku"], number["line", "qty"], number["line",], number["total",]
    )  # fmt: skip
    wanted = WantedColumns.of(look, [customer, sku, qty, ~line, total], [total])
    found = scanned(ORDER, wanted, b"..")
    assert found is not None
    rows = {column: found.rows[row] for column, row in wanted.rows.items()}
    assert ORDER[slice(*rows[customer][:2])] == b"Ann"
    assert ORDER[slice(*rows[total][:2])] == b"3.5"
    assert rows[total][2] == 3.5
    assert rows[sku] == rows[qty] == rows[~line] == (ABSENT, ABSENT, None)
    assert found.opened == [(1, 1), (1, 1)]
    texts = {(column, row): ORDER[start:end] for column in wanted.columns
             for (each, row, start, end) in found.spans if wanted.columns[each] == column}  # fmt: skip
    assert texts == {
        (sku, 0): b"a", (sku, 1): b"b", (qty, 0): b"1", (qty, 1): b"2",
        (~line, 0): b'<line sku="a"><qty>1</qty></line>', (~line, 1): b'<line sku="b"><qty>2</qty><note/></line>',
    }  # fmt: skip


def test_what_comes_twice_is_unclear_with_all_inside() -> None:
    """A part that should be there once makes its rows unclear, also where the second has nothing in it."""
    wanted = wanted_of(b'<p><a k="1"><x>1</x></a><z>2</z></p>')
    look = wanted.look
    for item in (b'<p><a k="1"><x>1</x></a><a/><z>2</z></p>', b'<p><a/><z>2</z><a k="1"><x>1</x></a></p>'):
        found = scanned(item, wanted)
        assert found is not None
        for row, column in enumerate(wanted.columns):
            path = look.path(max(column, ~column))
            assert (found.rows[row][0] == UNCLEAR) == (path[:2] == ("p", "a") or column == 0), path


def test_an_attribute_twice_is_refused_also_where_it_is_unclear() -> None:
    """The second of two elements is looked at as closely as the first."""
    wanted = wanted_of(b'<p><a k="1" l="2"/></p>')
    assert scanned(b'<p><a k="1"/><a k="1"/></p>', wanted) is not None
    assert scanned(b'<p><a k="1"/><a k="1" k="1"/></p>', wanted) is None


@pytest.mark.parametrize(
    ("item", "mark"),
    [
        ('<p k="1"><t>AT&amp;T</t></p>', WITH_SIGNS),
        ('<p k="&lt;&quot;x>"><t>1</t></p>', WITH_SIGNS),
        ('<p k="1"><t>say "a"\n\tor b</t></p>', WITH_SIGNS),
        ("<p><t></t></p>", NOT_CANONICAL),
        ('<p k="1" ><t /></p>', NOT_CANONICAL),
        ("<p><t>a&quot;b&apos;c</t></p>", NOT_CANONICAL),
        ('<p k="a&gt;b"/>', NOT_CANONICAL),
    ],
)
def test_everyday_signs_are_taken(item: str, mark: int) -> None:
    """Texts with signs, and the usual ways of writing that are not canonical."""
    wanted = wanted_of(b'<p k="1"><t>1</t></p>')
    found = scanned(item.encode(), wanted)
    assert found is not None
    assert found.mark == mark
    check_scanned(item.encode(), wanted, found)


# --- bounds -------------------------------------------------------------------------------------------------


def test_nothing_is_read_beyond_the_stop() -> None:
    """An item that is cut off anywhere is refused, whatever stands behind, and so is one of too many bytes."""
    wanted = wanted_of(ORDER, ORDER.replace(b"Ann", "é€\U0001f600".encode()))
    item = ORDER.replace(b"Ann", "é€\U0001f600".encode())
    columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(1, 100)
    data = np.frombuffer(item + b" " * 20, np.uint8)
    for stop in range(len(item)):
        assert scan_one(data, 0, stop, LONGEST, wanted.guide, columns, log, 0) == -1
        assert scan_one(data, 0, len(data), stop, wanted.guide, columns, log, 0) == -1
    assert scan_one(data, 0, len(item), len(item), wanted.guide, columns, log, 0) == len(item)


@pytest.mark.parametrize("room", range(12))
def test_a_full_log_is_left_as_it_was(room: int) -> None:
    """Where there is no room, nothing of the item is logged; an item that alone is too large for a log is refused."""
    look = Look.learn([(ORDER, parse_item(ORDER, LIMITS))])
    assert look is not None
    wanted = WantedColumns.of(look, [part for part, frame in enumerate(look.frames) if frame >= 0], [])
    columns, log = ItemColumns.room(len(wanted.columns), 9), FrameLog.room(1, room)
    data = np.frombuffer((ORDER + b"\n") * 3, np.uint8)
    size = 2 + 2 + 1 + 2  # spans: sku and qty of each line, one note, the texts of lines, which are unclear
    fitting = room // size
    end = scan_one(data, 0, len(data), LONGEST, wanted.guide, columns, log, 0)
    assert end == (len(ORDER) if fitting else -2)
    log.counts[:] = 0
    entries = room_for_texts(len(data), 9), 0, 9
    given = data, 0, len(data), True, wanted.guide, LONGEST, columns, log, *entries
    count, at, full = cut_items(*given, NO_PATTERN, np.zeros(9, np.bool_))
    if fitting:
        assert (count, at, full) == (fitting, fitting * (len(ORDER) + 1), True)
        assert columns.fits[:count].all()
        assert log.counts.tolist() == [2 * fitting, size * fitting, 2 * fitting]
    else:
        assert (count, at, full) == (3, len(data), False)
        assert not columns.fits[:3].any()
        assert not log.counts.any()


def test_limits_hold_for_all_that_is_taken() -> None:
    """An item of no more bytes than `longest_item` says is good by all limits."""
    items = [b'<p a="1" b="2"/>', b"<p><q><r><s>1</s></r></q><x/></p>", b"<p><x/><x/><x/><x/></p>", b'<p a="1">5</p>']
    wanted = wanted_of(*items)
    assert longest_item(wanted.guide, LIMITS) == LIMITS.nodes
    for limits in (Limits(attributes=1), Limits(depth=2), Limits(nodes=4), Limits(item_bytes=20), Limits(depth=4)):
        longest = longest_item(wanted.guide, limits)
        for item in items:
            columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(1, 100)
            end = scan_one(np.frombuffer(item, np.uint8), 0, len(item), longest, wanted.guide, columns, log, 0)
            try:
                parse_item(item, limits)
            except BadItem:
                assert end == -1
    assert longest_item(wanted.guide, Limits(depth=4, attributes=2)) == LIMITS.nodes


def test_a_thousand_names_are_found_in_any_order() -> None:
    """Names that begin alike, in an order that was never seen."""
    random = Random(5)
    names = [f"{'n' * (number % 40)}{number}" for number in range(990)]
    wanted = wanted_of(("<p>" + "".join(f"<x{name}/>" for name in names) + "</p>").encode())
    for _ in range(3):
        random.shuffle(names)
        item = ("<p>" + "".join(f"<x{name}>{name[-1]}</x{name}>" for name in names) + "</p>").encode()
        found = scanned(item, wanted)
        assert found is not None
        assert found == expected(item, wanted)


# --- many items ---------------------------------------------------------------------------------------------


def random_lines(look: Look, random: Random) -> bytes:
    """Lines: items, near misses, blank ones and long ones, with either line end."""
    lines = []
    for _ in range(random.choice((1, 5, 60))):
        line = (
            random_item(look, random, random.choice((0, 0, 0.05))).encode().replace(b"\n", random.choice((b" ", b"\n")))
        )
        match random.randrange(10):
            case 0:
                line = edited(line, random)
            case 1:
                line = random.choice((b"", b" ", b"\t\x0b\x0c", b"\x1c", b"\r", b"\r\r", b"x"))
            case 2:
                line = random.choice((b" ", b"", b"\xef\xbb\xbf")) + line + random.choice((b" ", line, b"\r", b"<a/>"))
        lines.append(line + random.choice((b"\n", b"\n", b"\r\n")))
    return b"".join(lines)


def templated(wanted: WantedColumns, item: bytes) -> WantedColumns:
    """The same columns of a look with the template of an item; without where something comes twice or is repeated.

    The texts of elements that have others in them cannot be wanted then.
    """
    template = Template.of(parse_item(item, LIMITS))
    if template is None:
        return wanted
    repeated = {wanted.look.path(part) for part, frame in enumerate(wanted.look.frames) if frame >= 0}
    if len(set(template.paths)) < len(template.paths) or not repeated.isdisjoint(template.paths):
        return wanted
    columns = [each for each in wanted.columns if each < 0 or wanted.look.parts[each].has_text]
    numbers = [each for each, is_numeric in zip(wanted.columns, wanted.numeric, strict=True) if is_numeric]
    numbers = [each for each in numbers if each in columns]
    return WantedColumns.of(replace(wanted.look, template=template), columns, numbers)


def _empty_anywhere(rows: list[Row]) -> list[Row]:
    """Where a text is empty, it does not matter where it stands."""
    return [(0, 0, number) if start == end >= 0 else (start, end, number) for start, end, number in rows]


def check_entries(
    data: bytes, wanted: WantedColumns, columns: ItemColumns, log: FrameLog, decoded: DecodedTexts, longest: int
) -> None:
    """Compare entries with what is expected of each; `columns` have no others."""
    should = Scanned([])
    counts = Counter[int]()
    for entry, fits in enumerate(columns.fits):
        begin, finish = int(columns.begins[entry]), int(columns.finishes[entry])
        raw = data[begin:finish]
        alone = expected(raw, wanted, entry, counts)
        line_end = data[begin:].startswith(raw + b"\r\n")
        if not fits:
            is_too_long = len(raw) + line_end > longest
            assert alone is None or is_too_long or max(len(alone.opened), alone.spans.total()) > len(log.opened)
            continue
        if alone is None:
            alone = _shifted(scanned(raw, wanted), wanted, entry, counts)
        assert len(raw) <= longest
        assert alone.mark == decoded.marks[entry]
        assert _empty_anywhere(row_values(wanted, columns, entry, begin, decoded)) == _empty_anywhere(alone.rows)
        should.opened += alone.opened
        counts.update(frame for frame, _ in alone.opened)
        should.spans.update({(row, frame, start + begin * (start >= 0), end + begin * (start >= 0)): times
                             for (row, frame, start, end), times in alone.spans.items()})  # fmt: skip
    assert logged(log, 0, decoded) == (should.opened, should.spans)


def _shifted(alone: Scanned | None, wanted: WantedColumns, entry: int, counts: Counter[int]) -> Scanned:
    """What is said of an item that is not canonical, as that of an entry behind others."""
    assert alone is not None
    assert alone.mark == NOT_CANONICAL
    frames = [int(wanted.guide.frames[column if column >= 0 else ~column]) for column in wanted.columns]
    above = [wanted.look.parts[part].parent for part in wanted.frames]
    around = {frame: int(wanted.guide.frames[part]) if part >= 0 else 0 for frame, part in enumerate(above, 1)}
    opened = [(frame, row + counts[around[frame]] if around[frame] else entry) for frame, row in alone.opened]
    spans = Counter[tuple[int, int, int, int]]()
    for (row, frame_row, start, end), times in alone.spans.items():
        spans[row, frame_row + counts[frames[row]], start, end] += times
    return Scanned(alone.rows, opened, spans, alone.mark)


@pytest.mark.parametrize("form", ["lines", "document"])
def test_items_are_cut_where_splitters_cut_them(form: str, mass: Mass) -> None:
    """Entries are what a splitter gives, and what is said of those that fit is what is said of each alone.

    20,000 inputs, with and without a template, with little and much room.
    """
    seen = Counter[str]()
    for number in mass.cases(20_000):
        random = Random(f"{mass.seed} {number}")
        look = random_look(random)
        wanted = random_wanted(look, random)
        data = random_lines(look, random)
        items = [line for line in data.split(b"\n") if expected(line, wanted)]
        wanted = templated(wanted, random.choice(items)) if items and random.random() < 0.5 else wanted
        pattern = wanted.pattern if wanted.look.template else NO_PATTERN
        longest = random.choice((LONGEST, LONGEST, 40))
        splitter: LineSplitter | DocumentSplitter = LineSplitter(LIMITS, Carry(1))
        if form == "document":
            splitter = DocumentSplitter(LIMITS, Carry(1, root="<root>", inside=True))
        cuts = [(cut.start, cut.raw) for cut in splitter.feed(data + b"</root>" * (form == "document"))]
        found: list[tuple[int, bytes]] = []
        at, array = 0, np.frombuffer(data, np.uint8)
        while at < len(data):
            most, room = random.choice(((1, 9), (100, 9), (100, 9_000)))
            columns, log = ItemColumns.room(wanted.room, most), FrameLog.room(len(wanted.frames), room)
            by_template, decoded = np.ones(most, np.bool_), room_for_texts(len(data), most)
            given = array, at, len(data), form == "lines", wanted.guide, longest, columns, log, decoded, 0, most
            count, at, full = cut_items(*given, pattern, by_template)
            columns = wanted.complete(columns.first(count), columns.fits[:count] & by_template[:count])
            check_entries(data, wanted, columns, log, decoded, longest)
            for begin, finish in zip(columns.begins.tolist(), columns.finishes.tolist(), strict=True):
                cut = line_cut(begin + 1, data[begin:finish], LIMITS)
                assert cut is not None
                found.append((cut.start, cut.raw))
            seen.update(
                fitting=int(columns.fits.sum()), by_template=int(by_template[:count].sum()), entries=count, full=full
            )
            if full:
                assert count > 0
            elif count < most:
                break
        assert found == (cuts if form == "lines" else cuts[: len(found)])
        if at < len(data):
            assert form == "document"
            front = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(len(wanted.frames), 9)
            assert scan_one(array, at, len(data), longest, wanted.guide, *front, 0) < 0
    if mass.done >= ENOUGH:
        assert seen["fitting"] > seen["entries"] // 5
        assert seen["by_template"] > seen["entries"] // 50
    if mass.done >= 20 * ENOUGH:  # a log is seldom full
        assert seen["full"] > 0


def test_entries_that_stand_one_behind_the_other(mass: Mass) -> None:
    """Entries of which it is known where they end are taken if each is an item, from its begin to its end.

    10,000 inputs, with and without a template.
    """
    seen = Counter[str]()
    for number in mass.cases(10_000):
        random = Random(f"{mass.seed} {number}")
        look = random_look(random)
        wanted = random_wanted(look, random)
        entries = [line for line in random_lines(look, random).split(b"\n") if line]
        items = [line for line in entries if expected(line, wanted)]
        wanted = templated(wanted, random.choice(items)) if items and random.random() < 0.5 else wanted
        data, longest = b"".join(entries) or b" ", random.choice((LONGEST, LONGEST, 40))
        ends = np.cumsum([len(each) for each in entries], dtype=np.int64)
        columns, log = ItemColumns.room(wanted.room, len(entries)), FrameLog.room(len(wanted.frames), 9_000)
        by_template = np.ones(len(entries), np.bool_)
        pattern = wanted.pattern if wanted.look.template else NO_PATTERN
        array, decoded = np.frombuffer(data, np.uint8), room_for_texts(len(data), len(entries))
        cut_entries(array, ends, wanted.guide, longest, columns, log, decoded, pattern, by_template)
        assert columns.finishes.tolist() == ends.tolist()
        assert columns.begins.tolist() == [0, *ends.tolist()][:-1]
        columns = wanted.complete(columns, columns.fits & by_template)
        check_entries(data, wanted, columns, log, decoded, longest)
        seen.update(entries=len(entries), fitting=int(columns.fits.sum()), by_template=int(by_template.sum()))
    if mass.done >= ENOUGH:
        assert seen["fitting"] > seen["entries"] // 5
        assert seen["by_template"] > seen["entries"] // 50


@pytest.mark.parametrize("lines", [True, False])
def test_photons_are_cut_as_by_their_template(lines: bool) -> None:
    """Places and numbers of items of one form are the same with a template and without."""
    items = [each.encode() for each in photons(500, 3)]
    data = np.frombuffer(b"\n".join(items) + b"\n", np.uint8)
    wanted = templated(wanted_of(items[0]), items[0])
    found = []
    for pattern in (NO_PATTERN, wanted.pattern):
        columns, log, by_template = ItemColumns.room(wanted.room, 500), FrameLog.room(0, 1), np.zeros(500, np.bool_)
        given = data, 0, len(data), lines, wanted.guide, LONGEST, columns, log, room_for_texts(len(data), 500), 0, 500
        assert cut_items(*given, pattern, by_template)[0] == 500
        assert columns.fits.all()
        assert by_template.all() == (pattern is not NO_PATTERN)
        found.append(wanted.complete(columns, by_template))
    scanned_ones, templated_ones = found
    assert np.array_equal(scanned_ones.begins, templated_ones.begins)
    assert np.array_equal(scanned_ones.finishes, templated_ones.finishes)
    assert np.array_equal(scanned_ones.starts, templated_ones.starts)
    assert np.array_equal(scanned_ones.ends, templated_ones.ends)
    numeric = list(wanted.numeric)
    assert np.array_equal(scanned_ones.values[numeric], templated_ones.values[numeric])
