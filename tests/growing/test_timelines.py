"""Displays over streams that only grow, against the law: behind each element what evaluating anew gives (LAWS 3.11)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from anabranch.branch.growing.split import growing_query
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import line, timelines
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from growing.questions import question
from growing.streams import sources
from mass import Mass
from spark.bare import BareTrunk


def shown_at_once(text: str) -> bool:
    """Whether a query is one of those that have a display while their streams grow."""
    return growing_query(standing(check(parse(text), text).query), {}) is not None


def test_random_queries_show_what_the_law_shows(mass: Mass, tmp_path: Path) -> None:
    """Whatever the epochs, shards, partitions and processes: each moment is the law's, and so is what was set aside."""
    for number in mass.cases(3_000):
        random = Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        inputs = Inputs(sources(folder, random))
        texts = [text for text in (question(random) for _ in range(6)) if shown_at_once(text)]
        queries = {f"q{at}": text for at, text in enumerate(texts)}
        trunk = BareTrunk(folder / "state", inputs.streams, random, finite=True)
        trunk.timed = True
        trunk.run(queries, [40, 200, 1_000], [1, 2, 3])
        with timelines([prepare(name, text, inputs, "reference") for name, text in queries.items()], inputs) as law:
            for name, text in queries.items():
                subscription = trunk.log.subscription(name)
                assert subscription is not None
                assert subscription.shows, text
                found = "".join(map(line, trunk.log.answer(subscription).moments()))
                assert found == "".join(law.answers[name]), (number, text)
            # the law goes no further where the whole fails, and looks at one side of an 'if' only
            failed = {letter.subscription for letter in law.dead if not letter.raw}
            judged = {name for name, text in queries.items() if name not in failed and "if (" not in text}
            letters = {each.to_json() for each in trunk.log.dead_letters() if each.subscription in judged}
            assert letters == {each.to_json() for each in law.dead if each.subscription in judged}, (number, texts)
