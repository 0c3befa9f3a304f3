"""Keys of JSON that are no names of XML, or look like the marks that code puts into names and paths (LAWS 7.1)."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

RESERVED = ("$at", "$mutable", "$accent", "$punctuation", "$replace", "$before", "$after")
ODD_KEYS = (
    "odd key", "2026", "a/b", "", "$ref", "x:y", "*", ".", "..", "/", "//", "#number", "#", "[]a", "[]", "text()",
    "node()", "a[1]", "Q{u}a", "{", "}", "a=b", "a,b", "|a|", "<b>", "</item>", "]]>", "<!--", "&amp;", "&", "'", '"',
    '""', "\\", "\\u0041", "\\\"", "\n", "\t", "\r", "\x7f", "\x85", "\u2028", "\ufeff", " ", "  a  ", "-", "-1", "1.5",
    "true", "null", "_x0020_", "_x_", "_x005F_", "odd_x0020_key", "a_x0041_", "\U000f0000", "😀 !", "日本 語", "é ü",
    "a@b", "$", "$$at", "at$", "xml", "xmlns", "xmlns:a", "s:mutable", "item", "root", "content", "0", "00", "key" * 90,
    "a b" * 90,
)  # fmt: skip
"""None of them begins with `@`, and none is reserved."""

_characters = st.one_of(
    st.sampled_from(" _x0125F/$@:.*#[]{}\"'\\\n\t"),
    st.characters(min_codepoint=0x20, exclude_categories=["Cs"]).filter(lambda each: each not in "\ufffe\uffff"),
)
any_key = st.one_of(st.sampled_from(ODD_KEYS), st.text(_characters, max_size=8)).filter(
    lambda key: not key.startswith("@") and key not in RESERVED
)
"""Any key of a child."""
any_attribute = st.one_of(st.sampled_from(ODD_KEYS), st.text(_characters, max_size=8)).map("@{}".format)
"""Any key of an attribute, its `@` in front."""


def quoted(text: str) -> str:
    """A text as a string of the query language."""
    escaped = text.replace("&", "&amp;").replace('"', '""').replace("\r", "&#13;").replace("\n", "&#10;")
    return '"' + escaped.replace("\t", "&#9;") + '"'


def random_keys(random: Random, plain: list[str]) -> dict[str, str]:
    """For some plain keys other ones, most of them odd; no two become equal."""
    chosen = random.sample([key for key in ODD_KEYS if key not in plain and len(key) < 100], len(plain))
    return {key: chosen[place] if random.random() < 0.8 else key for place, key in enumerate(plain)}
