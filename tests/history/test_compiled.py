"""Loops that are compiled: they answer as the law does, whatever an entry holds, and are asked wherever they can be."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from unittest import mock

import pytest

from anabranch.branch.display.compiled_loops.loops import CompiledLoop
from anabranch.branch.display.compiled_loops.rounds import EntryRounds, NumberedRows
from anabranch.law.history.chains import Chain
from history.following import Followed
from history.writing import Writer
from mass import Mass


class UsualWriter(Writer):
    """Writes loops of the usual forms, most of which can be compiled."""

    def loop(self, source: str = "") -> str:
        """A loop over entries, or over what is below them."""
        where = f" where {self.asked()}" if self.likely(0.6) else ""
        order = f" order by {self.value()}{self.one('', ' descending')}" if self.likely(0.6) else ""
        more = self.one("", "", " let $y := $x/a", " for $y in $x/b", " for $y in $x/a let $z := $y/b let $y := $x/b")
        ours = self.one("$y", "<y>{ $y, $x/@k }</y>", "($x/b, 1, count($y))", "($y/b, $x/b = $y/b, $x/b * 2)")
        result = ours if more else self.result()
        return f"for $x in {source or self.source()}{more}{where}{order} return {result}"

    def source(self) -> str:
        """A path to the nodes of a loop."""
        steps = self.one("/root/a", "/root/b", "//a", "//b", "/root/a/b", "//a/b", "/root//b", "/root/a//a")
        return f'stream("s"){steps}{self.one("", "", "[b]", "[@k = 1]", "[a = 2 or b]")}'

    def step(self) -> str:
        """A path from the node of a round."""
        return self.one(
            "$x/a", "$x/b", "$x//a", "$x/a/b", "$x/@k", "$x/a#1", "$x/b#[1]", "$x/b#0", "$x/text()", "$x/a[b]/b"
        )

    def value(self) -> str:
        """A value of a round, which may be several and then fail."""
        kind = self.one("path", "number", "sum", "count", "max")
        if kind == "path":
            return self.one(self.step(), "$x", f"{self.step()} * 1.5", "-$x/@k", f"$x/@k - {self.step()}")
        return self.number() if kind == "number" else f"{kind}({self.step()})"

    def asked(self) -> str:
        """A condition of a round."""
        other = self.one(self.number(), self.step(), '"1"')
        compared = f"{self.step()} {self.one('=', '<', '>=', '!=')} {other}"
        return self.one(
            compared,
            compared,
            f"{compared} and {self.step()}",
            f"not({compared})",
            f"exists({self.step()})",
            self.step(),
            'contains($x/@k, "1")',
        )

    def result(self) -> str:
        """What a round gives."""
        path = self.step()
        return self.one(
            "$x",
            path,
            f"<r>{{ {path}, {self.value()} }}</r>",
            f'<r k="{{ {path} }}-">t{{ $x }}</r>',
            f"string({path})",
            f"<r><i>{{ {self.value()} }}</i><!--c--></r>",
            f"({path}, 1, {self.value()})",
            f"if ({self.asked()}) then <y/> else {path}",
            "count($x//b)",
        )


def test_compiled_loops_show_what_the_law_says(mass: Mass) -> None:
    """Random loops over random documents, with errors in some rounds, after every moment; most are compiled."""
    asked = answered = 0
    rows = CompiledLoop.rows

    def counted(loop: CompiledLoop, entry: object) -> object:
        nonlocal asked, answered
        asked += 1
        found = rows(loop, entry)  # type: ignore[arg-type]
        answered += 1
        return found

    with mock.patch.object(CompiledLoop, "rows", counted):
        for number in mass.cases(800):
            writer = UsualWriter(Random(f"usual {number}"))
            stream = writer.stream(writer.random.randint(4, 10))
            list(Followed(writer.loop(), s=stream).run(put_away=number % 40 == 0))
    assert answered > asked / 2 > mass.done / 2 or mass.done < mass.total


def shelf(random: Random) -> str:
    """Entries with several nodes, most of which have regions inside, and updates of these and of some around them."""
    ids, parts = iter(range(1_000)), list[str]()
    names: list[str] = []

    def region(content: str) -> str:
        names.append(str(next(ids)))
        return f'<s:mutable id="{names[-1]}">{content}</s:mutable>'

    def node() -> str:
        inner = f"<b>{random.choice('123')}</b>"
        inner = region(inner) if random.random() < 0.7 else inner
        return f'<a k="{random.choice("123")}">{inner}{region("<a>1</a>") if random.random() < 0.3 else ""}</a>'

    for _ in range(random.choice((1, 1, 2))):
        nodes = [node() if random.random() < 0.7 else region(node()) for _ in range(random.randint(2, 6))]
        parts.append(f"<a>{region('<b>1</b>')}{''.join(nodes)}</a>")
    for _ in range(random.randint(4, 12)):
        content = random.choice(("<b>1</b>", "<b>2</b>", "<b>3</b>", "<a>2</a>", "<a><b>2</b></a>", "", "<b/><b>x</b>"))
        kind = random.choice(("replace", "replace", "replace", "replace", "after"))
        parts.append(f'<s:{kind} target="{random.choice(names)}">{content}</s:{kind}>')
    return "".join(parts)


def test_an_update_inside_a_large_entry_concerns_one_round(mass: Mass) -> None:
    """Also where the nodes of an entry, or regions around them, are replaced, added or removed; and states restored."""
    partly = 0
    changed = EntryRounds.changed

    def counted(rounds: EntryRounds, regions: Iterable[Chain]) -> NumberedRows | None:
        nonlocal partly
        found = changed(rounds, regions)
        partly += found is not None
        return found

    with (
        mock.patch.object(EntryRounds, "changed", counted),
        mock.patch("anabranch.branch.display.compiled_loops.rounds.LEAST_NODES", 2),
    ):
        for number in mass.cases(600):
            writer = UsualWriter(Random(f"large {number}"))
            source = writer.one("//a/a", "/root/a/a", "/root/a[b = 1]/a", "//a", "/root/a/a[b > 1]")
            query = writer.loop(f'stream("s"){source}')
            list(Followed(query, s=shelf(writer.random)).run(put_away=number % 10 == 0))
    assert partly > mass.done / 2 or mass.done < mass.total


UNUSUAL = [
    ('for $x in stream("s")/root/i return <r>{ $x }</r>', '<i xmlns:p="urn:p"><p:b/></i>'),
    ('for $x in stream("s")/root/i return <r>{ $x/v + 1 }</r>', "<i><v>one</v></i><i><v>1</v></i>"),
    ('for $x in stream("s")/root/i order by $x/v return $x/v', "<i><v>2</v><v>1</v></i><i><v>1</v></i>"),
    ('for $x in stream("s")/root/i where $x/v div 0 = 1 return 1', "<i><v>1</v></i>"),
    ('for $x in stream("s")//i/v return $x', "<i><i><v>1</v></i><v>2</v></i>"),
    ('for $x in stream("s")/root/i return $x/@k', '<i k="1"/>'),
]


@pytest.mark.parametrize(("query", "stream"), UNUSUAL)
def test_what_is_unusual_is_for_the_law(query: str, stream: str) -> None:
    """Namespaces, errors, nested nodes: the law answers, and its dead letters are written."""
    list(Followed(query, s=stream).run())
