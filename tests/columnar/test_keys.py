"""The numbers of keys: equal keys have equal numbers, in the order in which they are met, however many there are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates.partial import ItemAt
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.keys import (
    GroupNumbers,
    Key,
    KeyPart,
    TextNumbers,
    error_key,
    error_of,
    is_left_out,
    key_table,
    keys_of,
    spoils,
)
from anabranch.errors import DynamicError
from mass import examples

PARTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é", "0"]), st.text(max_size=3)).map(
    lambda text: None if text is None else text.encode()
)


def column(texts: list[bytes]) -> TextColumn:
    """Texts in a column that has a row for each, also where that is one."""
    made = TextColumn.of(*texts, b"")
    return made.spans(made.starts[:-1], made.ends[:-1])


@examples(60)
@given(st.lists(st.lists(st.binary(max_size=4), max_size=30), max_size=4))
def test_texts_have_the_number_of_the_first_that_is_equal(batches: list[list[bytes]]) -> None:
    """Batch after batch, and one by one as well."""
    numbers, known = TextNumbers(), dict[bytes, int]()
    for batch in batches:
        asked = np.array([len(text) != 3 for text in batch], np.bool_)
        found = numbers.of(column(batch), asked)
        for text, is_asked, number in zip(batch, asked.tolist(), found.tolist(), strict=True):
            if is_asked:
                assert known.setdefault(text, len(known)) == number == numbers.number(text)
    assert numbers.texts() == list(known)


def test_a_table_grows_with_its_texts() -> None:
    """Many texts, and one that is longer than all room there is."""
    numbers = TextNumbers()
    texts = [f"{number}".encode() * (number % 5) for number in range(20_000)]
    texts[700] = b"x" * 100_000
    for at in range(0, len(texts), 3_000):
        batch = texts[at : at + 3_000]
        numbers.of(column(batch), np.ones(len(batch), np.bool_))
    assert numbers.texts() == list(dict.fromkeys(texts))
    assert len(numbers) == len(set(texts))


@examples(80)
@given(st.integers(1, 3), st.data())
def test_groups_have_numbers_and_keys(parts: int, data: st.DataObject) -> None:
    """Those of columns and those of single items are the same; a part that is missing is no empty text."""
    keys: list[Key] = data.draw(st.lists(st.tuples(*[PARTS] * parts), min_size=1, max_size=20))
    numbers = GroupNumbers(parts)
    single = [numbers.number(each) for each in keys[:3]]
    texts = [column([each[part] or b"" for each in keys]) for part in range(parts)]
    missing = [np.array([each[part] is None for each in keys], np.bool_) for part in range(parts)]
    found = numbers.of(texts, missing, np.ones(len(keys), np.bool_)).tolist()
    assert found[:3] == single
    known = numbers.keys()
    assert [known[number - 1] for number in found] == keys
    assert len({*known}) == len(known)
    assert keys_of(key_table(known)) == known


def test_the_key_of_what_is_in_no_group() -> None:
    """It tells why, and whether windows fail for it."""
    error, item = DynamicError("no", code="X"), ItemAt("f", 9, "<i/>")
    plain: tuple[KeyPart, ...] = (None, b"a")
    keys = (error_key(error, item, 2, spoils=True), error_key(error, item, 2, spoils=False), plain)
    for key in keys[:2]:
        why, which = error_of(key)
        assert (why.message, why.code, which, len(key)) == ("no", "X", item, 2)
    assert [*map(is_left_out, keys)] == [True, True, False]
    assert [*map(spoils, keys)] == [True, False, False]
