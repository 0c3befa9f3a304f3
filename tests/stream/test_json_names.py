"""Keys of JSON and their names in XML: one to one, and each name is one that a parser of XML takes (LAWS 7.1)."""

from __future__ import annotations

import time
from itertools import product
from string import hexdigits
from xml.parsers import expat

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from anabranch.stream.reading.json_names import is_spelled, key_of_step, named, step_of_key
from mass import examples, some

XML_CHARACTERS = st.one_of(
    st.sampled_from("\t\n\r"),
    st.characters(min_codepoint=0x20, exclude_categories=["Cs"]).filter(lambda each: each not in "\ufffe\uffff"),
)
PIECES = ["_", "x", "_x0020_", "x0020_", "0020", "005F", "0041", "0031", "0078", "mlns", "0F0000", "000020", "a", " "]
"""What escapes are made of, and what only looks so."""
keys = st.one_of(
    st.text(XML_CHARACTERS),
    st.lists(st.one_of(st.sampled_from([*PIECES, "@", "/"]), XML_CHARACTERS), max_size=8).map("".join),
    st.text(f"_x{hexdigits}", max_size=20),
)


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("a", "a"), ("a.b-c", "a.b-c"), ("größe", "größe"), ("日本", "日本"), ("😀", "_x01F600_"), ("xmlns", "xmlns"),
        ("odd key", "odd_x0020_key"), ("2026", "_x0032_026"), ("a2026", "a2026"), ("-a", "_x002D_a"), ("", "_x_"),
        ("a/b", "a_x002F_b"), ("$ref", "_x0024_ref"), ("x:y", "x_x003A_y"), ("*", "_x002A_"), ("#n", "_x0023_n"),
        ("<b>", "_x003C_b_x003E_"), ("\U000f0000", "_x0F0000_"), ("a\U0010ffff", "a_x10FFFF_"), ("\n", "_x000A_"),
        ("_", "_"), ("_x", "_x"), ("_x_", "_x005F_x_"), ("a_x_", "a_x_"), ("max_x_pos", "max_x_pos"),
        ("a_x0020_b", "a_x005F_x0020_b"), ("a_x0041_b", "a_x0041_b"), ("a_x0031_b", "a_x0031_b"),
        ("_x0031_b", "_x005F_x0031_b"), ("a_x002f_b", "a_x002f_b"), ("a_x000020_", "a_x000020_"),
        ("a_x005F_b", "a_x005F_x005F_b"), ("_x0020 ", "_x005F_x0020_x0020_"), (" x0020_", "_x0020_x0020_"),
        ("_x0000_", "_x0000_"), ("_xD800_", "_xD800_"), ("_xFFFFFF_", "_xFFFFFF_"),
        ("@a", "@a"), ("@", "@_x_"), ("@odd key", "@odd_x0020_key"), ("@@a", "@_x0040_a"), ("@$at", "@_x0024_at"),
        ("@xmlns", "@_x0078_mlns"), ("@_x0078_mlns", "@_x005F_x0078_mlns"), ("@xmlns:a", "@xmlns_x003A_a"),
        ("_x0078_mlns", "_x0078_mlns"), ("a@", "a_x0040_"),
    ],
)  # fmt: skip
def test_names_of_keys(key: str, step: str) -> None:
    """The name of each key is as the law has it, and leads back to the key."""
    assert step_of_key(key) == step
    assert key_of_step(step) == key


@pytest.mark.parametrize(
    "step", ["a_x005F_b", "_x005F_", "@xmlns", "p:a", "odd key", "", "@", "1", "@1", "a_x005F_x0041_"]
)
def test_names_that_no_key_has(step: str) -> None:
    """What is no name, and an escape of an underscore that needs none, is the name of no key."""
    assert key_of_step(step) is None


def is_read(text: str) -> bool:
    """Whether expat reads a text; it takes the names of XML's fourth edition only."""
    try:
        expat.ParserCreate("utf-8").Parse(text.encode(), True)
    except expat.ExpatError:
        return False
    return True


def test_letters_of_names() -> None:
    """A character that a parser takes in a name, or in front of it, is none that is escaped there, and no other is."""
    some = [*range(0x20, 0xD800), *range(0xE000, 0xFFFE), *range(0x10000, 0x110000, 4099)]
    for char in map(chr, some):
        assert (step_of_key(char) == char) == (char != ":" and is_read(f"<{char}/>"))
        assert (step_of_key(f"a{char}") == f"a{char}") == (char not in ":\t\n\r />" and is_read(f"<a{char}/>"))


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ("țară", "_x021B_ară"),
        ("@țară", "@_x021B_ară"),
        ("a_x0020_b", "a_x0020_b"),
        ("@a_x_", "@a_x_"),
        ("a²", "a_x00B2_"),
    ],
)
def test_names_as_they_are_written(written: str, step: str) -> None:
    """A name of XML is meant as it is, and letters that no name has mean those of a key."""
    assert named(written) == step
    assert is_spelled(step.removeprefix("@"), written.removeprefix("@")) == (step != written)


@given(keys)
@example("_x0020_x0020 ")
@examples(600)
def test_a_key_has_one_name(key: str) -> None:
    """Each key comes back from its name, and two parsers of XML read the name as one name."""
    step = step_of_key(key)
    assert key_of_step(step) == key
    assert step.startswith("@") == key.startswith("@")
    text = f'<a {step[1:]}=""/>' if step.startswith("@") else f"<{step}/>"
    read = etree.fromstring(text.encode())
    assert [f"@{each!s}" for each in read.attrib] == [step] if step.startswith("@") else read.tag == step
    assert read.nsmap == {}
    assert is_read(text)


@given(keys)
@examples(400)
def test_a_name_is_that_of_one_key(name: str) -> None:
    """Where a text is the name of a key, it is what this key is called."""
    key = key_of_step(name)
    assert key is None or step_of_key(key) == name


def test_no_two_keys_have_one_name() -> None:
    """All keys of up to four pieces, most of them made of underscores and digits, have names of their own."""
    found: dict[str, str] = {}
    for count in range(5):
        for pieces in product(PIECES, repeat=count):
            key = "".join(pieces)
            assert found.setdefault(step_of_key(key), key) == key
    assert len(found) > 30_000


@pytest.mark.parametrize("piece", some(["_x005F_", " ", "_x", "_x005F", "_x0020", "_", "x0020_", "_x0041_"]))
def test_long_keys_take_time_in_proportion(piece: str) -> None:
    """A key of half a million characters is escaped and read back in a moment, whatever it is made of."""
    key = piece * (500_000 // len(piece))
    begin = time.process_time()
    assert key_of_step(step_of_key(key)) == key
    assert time.process_time() - begin < 10
