"""The past of expressions that are no path (LAWS 5.4): the law, and what production remembers of it."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.past.queries import refuse_unfollowed
from anabranch.errors import Unsupported
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.law.history.timeline import arrivals
from anabranch.runtime.past.timeline import Timeline
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.asking import ask, shown
from history.following import Asking, Followed
from history.hosting import replayed
from history.past import checked, given
from history.writing import Writer
from mass import Mass, some
from spark.bare import BareTrunk

VALUES = """
<s:mutable id="1" at="1"><v>9</v></s:mutable><s:mutable id="2" at="1"><v>5</v></s:mutable>
<s:replace target="1" at="3"><v>1</v></s:replace><s:replace target="2" at="4"><v>5</v></s:replace>
<s:replace target="2" at="7"><v>8</v></s:replace><s:punctuation at="20"/>
"""
PAIR = """
<i><s:mutable id="1" at="1"><a>9</a></s:mutable><s:mutable id="2" at="1"><b>5</b></s:mutable></i>
<s:replace target="1" at="3"><a>1</a></s:replace><s:replace target="2" at="4"><b>5</b></s:replace>
<s:replace target="2" at="7"><b>8</b></s:replace>
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('(max(stream("s")//v))#0', "8"),
        ('(max(stream("s")//v))#1', "5"),
        ('(max(stream("s")//v))#[2]', "8 5 9"),
        ('(sum(stream("s")//v))#[9]', "9 6 14 9"),  # an update that changes nothing makes no version
        ('(sum(stream("s")//v))?[15]', "9 6"),
        ('(sum(stream("s")//v))?[13]', "9"),
        ('(stream("s")//v, "x")#1', "<v>1</v><v>5</v>x"),
        ('((max(stream("s")//v))#1)?13', "5"),
        ('((max(stream("s")//v))#1)#1', "9"),
        ('(max(stream("s")//v))#[2][. > 5]', "8 9"),
        ('(for $v in stream("s")//v order by $v return <r>{ $v/text() }</r>)#1/text()', "15"),
        ('(for $v in stream("s")//v return $v)#0/..', ""),  # copies have no parent
        ("(1 + 1)#0, (1 + 1)#1", "2"),
        ('stream("s")//v#1?17', "<v>1</v><v>5</v>"),
        ('(stream("s")//v#1)?17', "<v>1</v><v>5</v>"),
    ],
)
def test_values_of_what_is_no_path(query: str, expected: str) -> None:
    """Its versions are its successive values; two qualifiers ask one after the other."""
    assert ask(query, VALUES) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('for $x in stream("s")//i where $x/b > 5 return ($x/a + $x/b)#[3]', [("7", "9 6 14")]),
        ('stream("s")//i[(a + b)#1 = 6]/b', [("7", "<b>8</b>")]),
        ('for $x in stream("s")//i return ($x/a + $x/b)?[3.5]', [("1", "14"), ("3", "6 14"), ("7", "9 6")]),
        ('for $x in stream("s")//i return (count($x/a))#1', []),  # it was never without
    ],
)
def test_values_for_the_nodes_of_a_loop(query: str, expected: list[tuple[str, str]]) -> None:
    """An expression with variables has the values that it had for these nodes, since they came, asked for or not."""
    assert shown(query, PAIR) == expected


def test_production_goes_on_behind_a_failure() -> None:
    """Where it fails there is nothing, and whoever asks for the present fails with it."""
    stream = '<s:mutable id="1" at="1"><v>2</v></s:mutable><s:replace target="1" at="2"><v>x</v></s:replace>'
    stream += '<s:replace target="1" at="3"><v>4</v></s:replace>'
    for query in ('<o>{ (sum(stream("s")//v))#1 }</o>', '<o>{ (sum(stream("s")//v))#[2] }</o>'):
        for away in (False, True):
            list(Followed(query, s=stream).run(put_away=away))


def test_case_102() -> None:
    """Successive values, by number and by time."""
    for asked, expected in {"(sum({}))#1": "6", "(sum({}))#[9]": "9 6 14 9", "(sum({}))?[15]": "9 6"}.items():
        assert ask(asked.format('stream("s")//v'), VALUES) == expected
    assert ask('(max(stream("s")//v))#[1]', VALUES) == "8 5"


def test_case_103() -> None:
    """The values for a node, also of moments at which nobody asked."""
    loop = 'for $i in stream("s")//i where $i/b > 5 return ($i/a + $i/b)'
    assert shown(f"{loop}#[3]", PAIR) == [("7", "9 6 14")]
    assert shown(f"{loop}?[3.5]", PAIR) == [("7", "9 6")]


def test_case_104() -> None:
    """A failure is a version without content."""
    stream = '<s:mutable id="1" at="1"><v>2</v></s:mutable><s:replace target="1" at="2"><v>x</v></s:replace>'
    stream += '<s:replace target="1" at="3"><v>4</v></s:replace>'
    assert [text for _, text in shown('<o>{ (sum(stream("s")//v))#1 }</o>', stream)] == ["<o/>", "<o>2</o>", "<o/>"]
    assert [text for _, text in shown('<o>{ (sum(stream("s")//v))#[2] }</o>', stream)] == ["<o>2</o>", "", "<o>4 2</o>"]


def test_case_105() -> None:
    """Over items a value changes as they come, and a round asks for what it was when its item arrives."""
    values = (3, 7, 7, 5)
    streams = {"s": "<r>" + "".join(f"<i><t>{at}</t><v>{each}</v></i>" for at, each in enumerate(values)) + "</r>"}
    query = checked("(max(stream('s')/r/i/v))#1", streams).query
    assert [each.text for each in Timeline(query, given(streams))] == ["3"]
    query = checked("for $i in stream('s')/r/i where $i/v > (max(stream('s')/r/i/v))#1 return $i/v", streams).query
    assert evaluate(query, given(streams)).text == "<v>7</v><v>7</v><v>5</v>"


ROOTED = '<s:punctuation at="0"/><s:punctuation at="1"/><a s:at="2"><a/></a><s:replace target="1" at="3"/>'


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('for $x in stream("s")//* return <r>{ (count($x//a))?[1] }</r>', "<r>2 0</r><r>1</r><r>0</r>"),
        ('let $x := stream("s")//q return <r>{ (count($x) + count(stream("s")//a))#[3] }</r>', "<r>2 0</r>"),
    ],
)
def test_a_value_begins_with_the_first_moment(query: str, expected: str) -> None:
    """Also where nothing had come by then: the root was there, and so was nothing at all."""
    for away in (False, True):
        assert [text for _, text in Followed(query, s=ROOTED).run(put_away=away)][-1] == expected


def test_a_late_query_has_the_value_of_its_start(tmp_path: Path) -> None:
    """It sees the document as it stands, and the first versions are of that moment (LAWS 3.6)."""
    (tmp_path / "in").mkdir()
    namespace = f'xmlns:s="{STREAM_NAMESPACE}"'
    source = Source("s", tmp_path / "in", "lines", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    (tmp_path / "in" / "1").write_text(f'<i {namespace} s:at="1"><s:mutable id="a"><v>3</v></s:mutable></i>\n')
    trunk.run({}, [1_000], [1])
    (tmp_path / "in" / "2").write_text(f'<s:replace {namespace} target="a" at="3"><v>4</v></s:replace>\n')
    trunk.run({"late": 'for $i in stream("s")/root/i return <o>{ ($i/v * 2)#[9] }</o>'}, [1_000], [2])
    assert [text for _, text in replayed(trunk.log, "late")] == ["<o>6</o>", "<o>8 6</o>"]


@pytest.mark.parametrize(
    "inside", ["count($x/a?[2])", "count(($x, (count($x))?1))", "local:f($x)", "(count(stream('s')//a))#1 + count($x)"]
)
def test_what_time_changes_is_left_to_the_law(inside: str) -> None:
    """Moments at which nothing came are not kept, so a trunk refuses what may change with them, by name."""
    query = f"declare function local:f($n) {{ $n/a?1 }}; for $x in stream('s')/root/i return ({inside})#1"
    parsed = check(parse(query), query, edited=("s",)).query
    with pytest.raises(Unsupported, match="when time has changed"):
        refuse_unfollowed(parsed, None, ("s",), query, "q")
    plain = query.replace(f"({inside})#1", "(count($x/a#[2]))#1")
    refuse_unfollowed(check(parse(plain), plain, edited=("s",)).query, None, ("s",), plain, "q")


SET = "".join(f"<i><k>{each}</k></i>" for each in "ab")
MOVING = """
<s:mutable id="1" at="1"><k>a</k></s:mutable><s:mutable id="2" at="2"><k>b</k></s:mutable>
<s:replace target="1" at="3"><k>b</k></s:replace><s:replace target="1" at="4"><k>c</k></s:replace>
"""


def test_case_229() -> None:
    """Streams that an expression with variables reads are those of the same moments."""
    query = 'for $x in stream("s")//i return <c>{ (count(stream("t")//k[. = $x/k]))#[9] }</c>'
    for away in (False, True):
        found = [text for _, text in Followed(query, s=SET, t=MOVING).run(put_away=away)]
        assert found[-1] == "<c>0 1 0</c><c>1 2 1 0</c>"


def test_versions_are_what_was_shown() -> None:
    """By hand: what a query shows without the qualifier, moment by moment, is what its versions are at the end."""
    loop = 'for $x in stream("s")//i return <c>{{ {} }}</c>'
    for number in some(range(20)):
        random = Random(number)
        updates = [f'<s:mutable id="{each}" at="1"><k>{random.choice("abc")}</k></s:mutable>' for each in range(3)]
        for at in range(2, 9):
            updates.append(
                f'<s:replace target="{random.randrange(3)}" at="{at}"><k>{random.choice("abc")}</k></s:replace>'
            )
        counted = 'count(stream("t")//k[. = $x/k])'
        plain = [text for _, text in Followed(loop.format(counted), s=SET, t="".join(updates)).run()]
        last = Followed(loop.format(f"({counted})#[9]"), s=SET, t="".join(updates)).end()
        rows = [
            text.removeprefix("<c>").removesuffix("</c>").split("</c><c>") for text in plain if text.count("<c>") == 2
        ]
        expected = [[value for value, _ in groupby(each)][::-1] for each in zip(*rows, strict=True)]
        assert last == "".join(f"<c>{' '.join(each)}</c>" for each in expected), number


WINDOWED = """
<i><t>1</t><s:mutable id="1" at="1"><v>9</v></s:mutable></i><i><t>2</t><s:mutable id="2" at="2"><v>5</v></s:mutable></i>
<i><t>12</t><v>7</v></i><s:replace target="1" at="13"><v>1</v></s:replace><s:punctuation at="14"/>
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            'for $w in stream("s")/root/i|t diff 10| return <w>{ sum($w/v), sum($w/v#1), (sum(stream("s")//v))#1 }</w>',
            "<w>6 9 21</w><w>7 0 21</w>",
        ),
        ('for $w in stream("s")/root/i|count 2| return <w>{ (sum($w/v))#[1] }</w>', "<w>6 14</w>"),
        ('(for $w in stream("s")/root/i|count 2| return sum($w/v))#[2]', "6 14"),
    ],
)
def test_windows_beside_a_qualifier(query: str, expected: str) -> None:
    """Windows of a stream of updates are those of the document as it stands, and so is the past beside them."""
    for away in (False, True):
        assert [text for _, text in Followed(query, s=WINDOWED).run(put_away=away)][-1] == expected


@pytest.mark.mass
def test_retain_bounds_what_is_kept() -> None:
    """How far back the versions are of what a node decides is not known, so all are kept that the stream retains."""
    query = 'for $i in stream("s")/root/i return <o>{ ($i/a + $i/b)#[9] }</o>'
    assert Followed(query, s=PAIR).end() == "<o>9 6 14</o>"
    bounded = Followed(query, Fraction(3), s=PAIR + '<s:punctuation at="8"/>')
    assert bounded.end() == "<o>9 6</o>"
    assert len(str(bounded.machine.encode())) < len(str(grown(query, None).machine.encode())) / 5
    assert len(str(grown(query, Fraction(3)).machine.encode())) < 2 * len(str(bounded.machine.encode()))


def grown(query: str, retain: Fraction | None) -> Followed:
    """The same stream after many updates."""
    updates = "".join(f'<s:replace target="1" at="{at}"><a>{at}</a></s:replace>' for at in range(10, 90))
    found = Followed(query, retain, s=PAIR + updates)
    for each in arrivals(found.law, found.given):
        list(found.law[each.stream].take(each.element, each.at, each.partition))
        list(found.machine.take(each.stream, each.element, each.at, each.partition))
    return found


class Values(Asking):
    """Writes questions about the past of what is no path."""

    def question(self, *streams: str) -> str:
        """A query with one or several such questions."""
        match self.one("plain", "built", "loop", "inside", "nested", "where", "twice", "let"):
            case "plain":
                return self.closed(*streams)
            case "built":
                inside = f"<n>{{ {self.closed(*streams)} }}</n>{{ {self.part(*streams)} }}"
                return f"<o>{{ {self.closed(*streams)} }}{inside}</o>"
            case "loop":
                path = self.path(self.one(*streams))
                return f"for $x in {path} return <r>{{ {self.open('$x', *streams)} }}</r>"
            case "inside":
                asked = f"{self.open('.', *streams)} = {self.one('1', '2', '5', '()')}"
                return f'stream("{self.one(*streams)}")//a[{asked}]'
            case "nested":
                return f"({self.closed(*streams)}, count({self.path(self.one(*streams))})){self.past()}"
            case "where":
                path = self.path(self.one(*streams))
                return f"for $x in {path} where count($x//*) < {self.closed(*streams)} return $x"
            case "let":
                plain = f'stream("{self.one(*streams)}")//{self.one("a", "b")}'
                return f"let $d := {plain} return (count($d), string($d[. = 5])){self.past()}"
            case _:
                base = self.base(*streams)
                return (
                    f"({base}){self.past()}, ({base}){self.past()}, ({self.closed(*streams)})?{self.one('0', '1', '2')}"
                )

    def closed(self, *streams: str) -> str:
        """A question about an expression without variables."""
        return f"({self.base(*streams)}){self.one('', '', '[. > 1]')}{self.past()}"

    def base(self, *streams: str) -> str:
        path = self.path(self.one(*streams))
        return self.one(
            f"count({path})", f"max({path})", f"sum({path})", f"({path}, 1)", f"string-join({path}, '-')",
            f"for $y in {path} order by string($y) return <s>{{ $y/@k, count($y/*) }}</s>",
            f"for $y in {path} return $y + 1", f"count({path}) + count({self.path(self.one(*streams))})",
            f"if (count({path}) > 1) then {self.path(self.one(*streams))} else 'few'", "1 + 1", f"exists({path})",
        )  # fmt: skip

    def open(self, node: str, *streams: str) -> str:
        """A question about an expression that a node decides, perhaps with what stands in the streams."""
        path = re.sub(r"\?(\[[\d.]+\]|[\d.]+)", "", self.path(self.one(*streams)))  # time inside is left to the law
        around = self.one(
            f"count({path}[. = {node}])", f"count({node}//*) + count({path})", f"({node}/a, {path})",
            f"some $y in {path} satisfies $y = {node}/b", f"sum({node}//b) + sum({path}//b[. > 1])",
            f"for $y in {path} where $y = {node}/a return <m>{{ $y }}</m>",
            f"if ({node}/a) then count({path}) else 1",
        )  # fmt: skip
        alone = self.one(
            f"count({node}//*)", f"string({node})", f"({node}/a, {node}/b)", f"sum({node}//b)", f"{node}/b + 1",
            f"if ({node}/a) then {node}/b else 1",
        )  # fmt: skip
        return f"({around if self.likely(0.5) else alone}){self.past()}"

    def past(self) -> str:
        return self.one("#0", "#1", "#2", "#[1]", "#[3]", "?[0]", "?[1]", "?[2.5]", "?[4]")


def case(number: int) -> Followed:
    """A query and its streams, as a function of a number."""
    random = Random(number)
    streams: dict[str, str | list[str]] = {"s": Writer(random).stream(random.choice((3, 4, 6, 8)))}
    if random.random() < 0.2:
        streams["s"] = [Writer(random).stream(random.choice((2, 4))) for _ in range(2)]
    if random.random() < 0.2:
        streams["t"] = Writer(random).stream(random.choice((2, 4)))
    retain = random.choice((None, None, Fraction(1), Fraction(3)))
    return Followed(Values(random).question(*streams), retain, **streams)


def test_random_questions(mass: Mass) -> None:
    """After every moment production shows what the law finds anew from all moments, also from a state put away."""
    moments = 0
    for number in mass.cases(1_500):
        moments += sum(1 for _ in case(number).run(put_away=number % 10 == 0))
    assert moments > 3 * mass.done or mass.done < mass.total
