"""Loops over children with one plain text each: what is computed from texts is what the law says of the nodes."""

from __future__ import annotations

from random import Random
from unittest import mock

from anabranch.branch.display.compiled_loops.loops import CompiledLoop
from anabranch.branch.display.compiled_loops.plain_texts import PlainTexts
from history.following import Followed
from mass import Mass

NUMBERS = ("1", "2", "1.5", "3e0", "-0.5", "0")
TEXTS = ("1", "2", "2.0", " 3 ", "-1e1", "10", "INF", "NaN", "a", "a&amp;b", "", "2024-01-01T00:00:00")


def loop(random: Random) -> str:
    """A loop of the form, with values of children now and before."""

    def leaf() -> str:
        return f"$x/{random.choice('abc')}{random.choice(('', '', '', '#1', '#2'))}"

    def number() -> str:
        kind = random.randrange(5)
        first, second = (leaf(), random.choice(NUMBERS)) if random.random() < 0.7 else (random.choice(NUMBERS), leaf())
        if kind < 3:
            return f"{first} {random.choice(('+', '-', '*', 'div', 'mod'))} {second}"
        return f"({leaf()} - {leaf()}) div {leaf()}" if kind == 3 else f"{leaf()} * {leaf()} * 2"

    def asked() -> str:
        sides = [random.choice((leaf(), leaf(), number(), random.choice(NUMBERS), '"2"', '"a"')) for _ in "ab"]
        return f"{sides[0]} {random.choice(('=', '!=', '<', '<=', '>', '>='))} {sides[1]}"

    def result() -> str:
        return random.choice(
            (
                leaf(),
                f"({leaf()}, {leaf()})",
                f"<r>{{ {leaf()}, {leaf()} }}</r>",
                f'<r k="{{ {leaf()} }}-{{ {number()} }}"><i>{{ {number()} }}</i>t{{ {leaf()} }}</r>',
                f"<r>{{ {leaf()} }}</r>",
            )
        )

    where = random.choice(("", asked(), f"{asked()} and {asked()}", f"{asked()} or {asked()}"))
    order = random.choice(("", leaf(), number(), f"{number()} descending, {leaf()}"))
    source = 'for $x in stream("s")/root/t' + (f" where {where}" if where else "")
    return f"{source}{f' order by {order}' if order else ''} return {result()}"


def child(random: Random) -> str:
    """A child with a text; now and then one that is not read as such."""
    name, text = random.choice("abcd"), random.choice(TEXTS[:6] if random.random() < 0.8 else TEXTS)
    if random.random() < 0.9:
        return f"<{name}>{text}</{name}>"
    return random.choice(
        (
            f'<{name} k="1">{text}</{name}>',
            f"<{name}><x>{text}</x></{name}>",
            f"<{name}>{text}<!--c-->{text}</{name}>",
            f'<{name} xmlns="urn:d">{text}</{name}>',
            f'<{name} xmlns:q="urn:q">{text}</{name}>',
        )
    )


def stream(random: Random) -> str:
    """Entries whose children can be replaced, and replacements of these: some delete, some bring more regions."""
    parts, names = list[str](), list[str]()
    for _ in range(random.randint(1, 4)):
        inside = []
        for _ in range(random.randint(1, 4)):
            if random.random() < 0.6:
                names.append(str(len(names)))
                inside.append(f'<s:mutable id="{names[-1]}">{child(random)}</s:mutable>')
            else:
                inside.append(child(random))
        parts.append(f"<t>{''.join(inside)}</t>")
    for number in range(random.randint(4, 12) if names else 0):
        kinds = (child(random), child(random), child(random), "", child(random) + child(random))
        content = random.choice(kinds)
        if random.random() < 0.05:
            content = f'<s:mutable id="i{number}">{content}</s:mutable>'
        parts.append(f'<s:replace target="{random.choice(names)}">{content}</s:replace>')
    return "".join(parts)


def test_texts_of_children_show_what_the_law_says(mass: Mass) -> None:
    """Random loops over random entries, after every moment; many rounds are answered from texts alone."""
    asked = answered = 0
    rounds, read = CompiledLoop.round, PlainTexts.read

    def counted(loop: CompiledLoop, node: object) -> object:
        nonlocal asked
        asked += 1
        return rounds(loop, node)  # type: ignore[arg-type]

    def counted_texts(texts: PlainTexts, content: object) -> object:
        nonlocal answered
        found = read(texts, content)  # type: ignore[arg-type]
        answered += 1
        return found

    with mock.patch.object(CompiledLoop, "round", counted), mock.patch.object(PlainTexts, "read", counted_texts):
        for number in mass.cases(1_000):
            random = Random(f"texts {number}")
            query = loop(random)
            list(Followed(query, s=stream(random)).run(put_away=number % 40 == 0))
    assert answered > asked / 4 > mass.done or mass.done < mass.total
