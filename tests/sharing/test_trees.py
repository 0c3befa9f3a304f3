"""Property trees as a whole: nothing is lost on the way through them."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.sharing.match import matches, merge, merge_all, same
from anabranch.sharing.normalize import unwindowed
from anabranch.sharing.render import render
from mass import some
from sharing.making import answer, items, query, selection, sent, several, sharp, tree, windowed

ROUNDS = some(range(13))


@pytest.mark.parametrize("seed", ROUNDS)
def test_deriving_from_the_rendered_query_gives_the_tree_again(seed: int) -> None:
    """3.3 undoes 3.2: the abstract query's tree is the tree it was rendered from."""
    text = query(Random(seed))
    derived = tree(text)
    assert same(tree(render(derived)), derived), f"{text}\n{render(derived)}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_merged_trees_come_back_too(seed: int) -> None:
    """Also the tree of several queries is that of its own abstract query, and every one of them matches it."""
    random = Random(seed)
    texts = [query(random) for _ in range(3)]
    merged = merge_all([tree(text) for text in texts])
    assert all(matches(merged, tree(text)) for text in texts)
    assert same(tree(render(merged)), merged), f"{texts}\n{render(merged)}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_selections_lose_nothing(seed: int) -> None:
    """A query over what its tree sends answers as over the stream itself."""
    random = Random(seed)
    text = random.choice((selection, several, sharp))(random)
    derived = tree(text)
    for _ in range(3):
        given = items(random)
        assert answer(text, sent(derived, given)) == answer(text, given), f"{text}\n{render(derived)}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_shared_selections_lose_nothing(seed: int) -> None:
    """Each of several queries answers over the widened stream as over the stream itself."""
    random = Random(seed)
    texts = [selection(random), *(sharp(random) for _ in range(3))]
    merged = merge_all([tree(text) for text in texts])
    given = items(random)
    carried = sent(merged, given)
    for text in texts:
        assert answer(text, carried) == answer(text, given), f"{text}\n{render(merged)}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_what_matches_loses_nothing(seed: int) -> None:
    """Where one tree matches another, the query answers over what the other sends as over the stream itself."""
    random = Random(seed)
    trees = {text: tree(text) for text in (selection(random) for _ in range(4))}
    given = items(random)
    for stream in trees.values():
        carried = sent(stream, given)
        for text in [text for text, needed in trees.items() if matches(stream, needed)]:
            assert answer(text, carried) == answer(text, given), f"{render(stream)}\n{text}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_windows_over_items_lose_nothing(seed: int) -> None:
    """A window query over the items that its tree without window sends answers as over the stream itself."""
    random = Random(seed)
    text = windowed(random)
    other = selection(random)
    shared = merge(tree(other), tree(text))
    given = items(random)
    assert answer(text, sent(unwindowed(tree(text)), given)) == answer(text, given), text
    assert answer(text, sent(shared, given)) == answer(text, given), f"{text}\n{render(shared)}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_windows_give_the_values_that_queries_return(seed: int) -> None:
    """The abstract query of an aggregate has the values of the query, in its order and under its condition."""
    random = Random(seed)
    function, argument = random.choice(("min", "max", "sum", "count", "avg")), random.choice(("a", "b", "c[y > 2]/x"))
    extent = random.choice(("t diff 12 step 6", "t diff 9", "count 3", "count 4 step 1"))
    where = random.choice(("", " where $m > 3", " where $m > 3 or $m < 2"))
    pre = random.choice(("", "[a > 2]", "[not(b < 4)]"))
    head = f"for $w in stream('s')/r/i{pre}|{extent}| let $m := {function}($w/{argument}){where}"
    name = f"{function}_{argument[-1]}"
    given = items(random)
    abstract = answer(render(tree(f"{head} return <o>{{ $m }}</o>")), given)
    assert abstract == answer(f"<r>{{ {head} return <i><{name}>{{ $m }}</{name}></i> }}</r>", given)
