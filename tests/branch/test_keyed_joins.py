"""Joins by keys: what meets what and when, by the law; and that they forget what can meet nothing new (LAWS 3.5)."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from branch.feeding import PUNCTUATION, Flow, Question, Stream
from mass import some

PAIR = "return concat($x/t, '-', $y/t)"
ON_KEY = "where $x/k = $y/k"
CONDITIONS = (
    "$x/k = $y/k",
    "$x/k = $y/k and $x/v < $y/v",
    "$y/k = $x/k and $x/l = $y/l",
    "$x/k = $y/l and 10 div $x/v > 1",
    "$x/k[. != 'b'] = $y/k and ($x/v > 2 or $y/l = 'q')",
    "$x/@n = $y/k",
)
RESULTS = ("<o>{$x/t}{$y/v}</o>", "concat($x/t, '-', $y/t)", "($x/k, $y/v)", "<o a='{$x/v + $y/v}'/>", "$x")
SOURCES = ("i", "i[v > 1]", "i/part", "i[10 div v > 2]")


def item(random: Random, time: int) -> str:
    """An item with keys, some of them missing, double or of other spelling, and with parts that have keys as well."""

    def some_of(name: str, values: str) -> str:
        chosen = random.choices(values.split(), k=random.choice((0, 1, 1, 1, 1, 2)))
        return "".join(f"<{name}>{each}</{name}>" for each in chosen)

    def content() -> str:
        return some_of("k", "a b 1 1.0 2") + some_of("l", "p q") + f"<v>{random.choice((0, 1, 2, 5, 'n'))}</v>"

    parts = "".join(f"<part>{content()}</part>" for _ in range(random.choice((0, 0, 1, 2))))
    return f'<i n="{random.choice(("a", "1", "2"))}"><t>{time}</t>{content()}{parts}</i>'


def stream(random: Random, name: str, retain: Fraction | None) -> Stream:
    """A stream of keys, with punctuations and heartbeats between its items."""
    time, found = 0, []
    for _ in range(random.randint(5, 14)):
        time += random.choice((0, 1, 1, 3, -1))
        found.append(item(random, time))
        if random.random() < 0.15:
            where = random.choice(
                ("k = 1", "k = 'a'", "k &lt; 2 or k = 'b'", "l = 'p'", "k = 1 and l = 'q'", "t &lt; 0")
            )
            found.append(PUNCTUATION.format(random.choice((f'where="{where}"', f'at="{time}"'))))
    partitions = random.choice((1, 1, 2))
    dealt = [random.randrange(partitions) for _ in range(40)]
    return Stream(name, f"<r>{''.join(found)}</r>", dealt, partitions, time="t", endless=True, retain=retain)


def question(random: Random) -> Question:
    """A random join of two streams, of a stream with itself, or of three streams."""
    kind = random.choice(("two", "two", "two", "self", "three"))
    names = {"two": "ab", "self": "aa", "three": "abc"}[kind]
    sources = [random.choice(SOURCES) for _ in names]
    fors = ", ".join(f'${v} in stream("{n}")/r/{s}' for v, n, s in zip("xyz", names, sources, strict=False))
    more = random.choice((" and $y/l = $z/l", " and $z/k = $x/k")) if kind == "three" else ""
    query = f"for {fors} where {random.choice(CONDITIONS)}{more} return {random.choice(RESULTS)}"
    retain = random.choice((None, None, Fraction(2), Fraction(5)))
    return Question(query, [stream(random, name, retain) for name in dict.fromkeys(names)])


@pytest.mark.mass
def test_any_cut_gives_the_answer_of_the_law() -> None:
    """Answers and dead letters are those of the reference, with a state written and read between epochs."""
    answered = dropped = 0
    for number in some(range(60)):
        random = Random(f"keyed {number}")
        asked = question(random)
        assert asked.operator == "keyed join"
        has_answer, has_dead = asked.check_by_law(random, number)
        answered += has_answer
        dropped += has_dead
    assert answered > 3
    assert dropped


def keyed(retain: Fraction | None = None, where: str = ON_KEY, result: str = PAIR, time: str | None = "t") -> Flow:
    query = f'for $x in stream("a")/r/i, $y in stream("b")/r/i {where} {result}'
    return Flow(Question(query, [Stream(name, time=time, endless=True, retain=retain) for name in "ab"]))


def at(time: int, key: object) -> str:
    return f"<i><t>{time}</t><k>{key}</k></i>"


def closing(where: str) -> str:
    return PUNCTUATION.format(f'where="{where}"')


def pairs(flow: Flow) -> list[str]:
    return "".join(flow.taken.pieces).split()


def test_a_pair_comes_with_its_second_item() -> None:
    """LAWS case 150: pairs come in the order of what completes them, each side in the order of its stream."""
    flow = keyed()
    flow.bring("a", at(1, "p"), at(2, "q"), at(4, "p"))
    flow.bring("b", at(3, "p"), at(5, "p"))
    flow.epoch()
    flow.bring("a", at(6, "q"))
    flow.bring("b", at(7, "q"))
    flow.end()
    assert pairs(flow) == ["1-3", "4-3", "1-5", "4-5", "2-7", "6-7"]


def test_keys_are_compared_as_text() -> None:
    """LAWS case 151: `1` and `1.0` are different texts; an item without a key, or with two, meets none, or both."""
    flow = keyed()
    flow.bring("a", at(1, "1"), at(2, "1.0"), "<i><t>3</t></i>")
    flow.bring("b", at(4, "1"), "<i><t>5</t><k>1</k><k>1.0</k></i>", "<i><t>6</t></i>")
    flow.end()
    assert pairs(flow) == ["1-4", "1-5", "2-5"]
    assert flow.branch.held == 0


def test_retained_items_are_forgotten() -> None:
    """LAWS case 152: with `retain` of 10 seconds an item at 1 meets one at 11, and none at 12."""
    flow = keyed(Fraction(10))
    flow.bring("a", at(1, "p"))
    flow.bring("b", at(11, "p"), at(12, "p"))
    flow.bring("a", at(13, "p"))
    flow.epoch()
    flow.end()
    assert pairs(flow) == ["1-11", "13-11", "13-12"]


@pytest.mark.mass
def test_the_state_is_flat_where_streams_are_retained() -> None:
    """Over long streams the state holds what may still meet others."""
    flow = keyed(Fraction(10))
    sizes = []
    for epoch in range(20):
        for name in "ab":
            flow.bring(name, *(at(epoch * 10 + n, n % 3) for n in range(10)))
        flow.epoch()
        assert flow.branch.held <= 22
        sizes.append(flow.size)
    assert max(sizes[10:]) <= max(sizes[:10]) + 200


@pytest.mark.mass
def test_the_state_is_flat_under_punctuation() -> None:
    """LAWS case 153: what is closed on the other stream is dropped, and so is what comes for a closed key."""
    flow = keyed()
    sizes = []
    for epoch in range(100):
        for name in "ab":
            flow.bring(name, *(at(epoch * 10 + n, epoch * 5 + n % 5) for n in range(10)))
            flow.bring(name, closing(f"k &lt; {(epoch + 1) * 5}"))
        flow.bring("a", at(epoch * 10 + 10, (epoch + 1) * 5))
        flow.bring("b", at(epoch * 10 + 10, (epoch + 1) * 5 + 1))
        flow.epoch()
        assert flow.branch.held <= 12
        sizes.append(flow.size)
    assert max(sizes[50:]) <= max(sizes[:50]) + 300  # punctuations are thinned out every 64 of them
    assert len(pairs(flow)) > 100 * 10


def test_a_punctuation_of_one_key() -> None:
    """Only items with that key are dropped, on the other side only, and not while a partition may bring more."""
    flow = keyed()
    flow.bring("a", at(1, "p"), at(1, "q"), at(1, "7"))
    flow.bring("b", at(2, "p"), at(2, "7"))
    flow.bring("a", at(3, "q"))
    flow.bring("b", closing("k = 'p'"), closing("k = 7"), at(4, "q"))
    flow.bring("a", at(5, "q"))
    assert flow.branch.held == 5  # 'q' twice in a, and all three in b; 5 waits for b
    flow.epoch()
    flow.bring("a", closing("k = 'p' or k = 7"), at(7, "q"))
    flow.bring("b", at(8, "q"))
    assert flow.branch.held == 5
    flow.end()
    assert pairs(flow) == ["1-2", "1-2", "1-4", "3-4", "5-4", "7-4", "1-8", "3-8", "5-8", "7-8"]


def test_an_item_whose_key_fails_is_set_aside() -> None:
    """LAWS case 154: it is in no pair, and named once; a pair whose condition fails is named by its second `for`."""
    flow = keyed(where="where $x[10 div v > 1]/k = $y/k and 1 div $y/v > 0")
    flow.bring("a", "<i><t>1</t><k>p</k><v>n</v></i>", "<i><t>2</t><k>p</k><v>1</v></i>")
    flow.bring("b", "<i><t>3</t><k>p</k><v>n</v></i>", "<i><t>4</t><k>p</k><v>1</v></i>")
    flow.end()
    assert pairs(flow) == ["2-4"]
    assert [(each.place.stream, each.code) for each in flow.taken.dead] == [("a", "FORG0001"), ("b", "FORG0001")]


@pytest.mark.parametrize("key", ['{"z": 1}', '[1, {"z": 1}]'])
def test_a_key_that_is_no_single_value_sets_its_item_aside(key: str) -> None:
    """An object of JSON is equal to nothing; the item that has it as its key is the only one that notices."""
    a, b = (
        Stream(name, "".join(f"{line}\n" for line in lines), time="t", endless=True, form="json")
        for name, lines in (
            ("a", ['{"t": 1, "k": "p"}', f'{{"t": 2, "k": {key}}}', '{"t": 3, "k": "p"}']),
            ("b", ['{"t": 4, "k": "p"}']),
        )
    )
    asked = Question(f'for $x in stream("a")/r/item, $y in stream("b")/r/item where $x.k = $y.k {PAIR}', [a, b])
    assert asked.operator == "keyed join"
    law, taken = asked.law(), asked.run(Random(1), epochs=2)
    assert asked.answer(taken) == law.text == "1-4 3-4"
    assert [each.to_json() for each in taken.dead] == [each.to_json() for each in law.dead]
    assert [(each.code, each.raw) for each in law.dead] == [("FOTY0013", f'{{"t": 2, "k": {key}}}')]
