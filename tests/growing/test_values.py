"""The past of expressions that are no path over streams that only grow, against the law (LAWS 5.4)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import line, timelines
from anabranch.errors import AnabranchError
from anabranch.language import check, parse
from growing.questions import question
from growing.streams import sources
from growing.test_timelines import shown_at_once
from mass import Mass
from spark.bare import BareTrunk

PASTS = ("#0", "#1", "#2", "#[1]", "#[3]", "?[0]", "?[1]", "?[3]", "?[20]")


def asked(random: Random) -> str:
    """A question about the past of another one."""
    base = f"({question(random)}){random.choice(PASTS)}"
    match random.choice(("plain", "plain", "beside", "built", "twice")):
        case "plain":
            return base
        case "beside":
            return f"({base}, {question(random)})"
        case "built":
            return f"<o>{{ {base} }}</o>"
        case _:
            return f"(({base}), 1){random.choice(PASTS)}"


def is_asked(text: str) -> bool:
    """Whether a question is one that displays answer."""
    try:
        check(parse(text), text)
    except AnabranchError:
        return False  # windows beside the past
    return shown_at_once(text)


def test_random_questions_show_what_the_law_shows(mass: Mass, tmp_path: Path) -> None:
    """Whatever the epochs, shards, partitions and processes: each moment is that of evaluating anew at all before."""
    seen = 0
    for number in mass.cases(600):
        random = Random(number)
        folder = tmp_path / str(number)
        folder.mkdir()
        inputs = Inputs(sources(folder, random))
        texts = [text for text in (asked(random) for _ in range(8)) if is_asked(text)]
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
                seen += 1
    assert seen > mass.done or mass.done < mass.total
