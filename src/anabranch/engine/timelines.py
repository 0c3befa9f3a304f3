"""What queries show, element by element, over inputs that have an end: `anabranch query --timeline`.

Timelines are made in this process, whichever engine is asked for: all engines give the same answers, and whoever wants
a line for each element does not wait for Spark.
Over streams of updates the reference finds every display from scratch, and the default corrects the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from anabranch.engine.finite import Run, read_inputs, updating
from anabranch.engine.preparing import Inputs, Prepared
from anabranch.engine.updating import Updating
from anabranch.errors import StreamError
from anabranch.reference.answer import Shown
from anabranch.reference.arrivals.past import decimal
from anabranch.reference.arrivals.timeline import Timeline, timeline_of
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits


def timelines(queries: Sequence[Prepared], inputs: Inputs, limits: Limits | None = None) -> Run:
    """The timelines of queries, as lines of JSON; what was set aside is known once they were read to their end."""
    caps = limits or Limits()
    read = read_inputs(queries, inputs, caps)
    found: dict[str, Timeline | Updating] = {}
    for query in queries:
        if query.updates:
            found[query.name] = updating(query, read, inputs, caps)
            continue
        for name in query.checked.streams:
            if read.streams[name].input.changes:
                raise StreamError(f"there is no timeline yet over a stream that evolves, as '{name}' does")
        law = query.checked.query
        found[query.name] = timeline_of(law, read.given, functions=inputs.functions, name=query.name, text=query.text)
    answers = {name: map(line, timeline) for name, timeline in found.items()}
    return Run(answers, _Dead(tuple(read.dead), tuple(found.values())), read.items, 0)


class _Dead:
    """What was set aside, on reading and since."""

    def __init__(self, read: Sequence[DeadLetter], timelines: Iterable[Timeline | Updating]) -> None:
        self._read = read
        self._timelines = timelines

    def __iter__(self) -> Iterator[DeadLetter]:
        found = (letter for each in self._timelines for letter in each.dead)
        return iter(dict.fromkeys((*self._read, *found)))


def line(shown: Shown) -> str:
    """`{"at": 12.5, "answer": "<b>Y</b>"}`, the time as an exact decimal."""
    return f'{{"at": {decimal(shown.at)}, "answer": {json.dumps(shown.text, ensure_ascii=False)}}}\n'
