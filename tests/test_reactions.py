"""What the history of a stream says that subscriptions did about its accents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

from anabranch.engine.reports.evolution import StreamCourse
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.stream.reading.source import Source, domains_of
from spark.bare import BareTrunk

N = 'xmlns:s="urn:anabranch:stream"'
HALF = '<s:accent {} where="s = {}"><s:alter path="t" by=". * 2"/></s:accent>'
DROP = f'<s:accent {N}><s:drop path="t"/></s:accent>'
EACH = 'for $i in stream("a")/r/i '
ASKED = {
    "shows": EACH + "return <o>{ $i/s }{ $i/t }</o>",
    "hides": EACH + "return <o>{ $i/t }</o>",
    "selects": EACH + "where $i/t > 3 return <o>{ $i/s }</o>",
    "averages": 'for $w in stream("a")/r/i|ts diff 10| return <o>{ avg($w/t) }</o>',
    "other": EACH + "return <o>{ $i/s }</o>",
    "joins": """for $x in stream("a")/r/i|ts diff 10| for $y in stream("b")/r/i|ts diff 10|
        where $x/t = $y/t return <o>{ $x/s }</o>""",
}


class Site:
    """Two streams that grow, and a trunk over them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.sources = [
            Source(name, folder / name, "lines", root="r", domains=domains_of({"s": [1, 2]})) for name in ("a", "b")
        ]
        self.trunk = BareTrunk(folder / "state", self.sources, Random(1), finite=False)

    def run(self, queries: Mapping[str, str], **lines: str) -> None:
        for name, line in lines.items():
            with (self._folder / name).open("a") as file:
                file.write(f"{line}\n")
        self.trunk.run(queries, (1 << 20,), (1,))

    def told(self, stream: int = 0) -> list[dict[str, tuple[str, ...]]]:
        history = StreamCourse(self.sources[stream], Checkpoint.at(self._folder / "state")).history()
        return [{each.deed: each.subscriptions for each in event.reactions} for event in history]


def test_each_does_what_it_can(tmp_path: Path) -> None:
    """It passes an accent on, reckons with it until it can, or ends; who has nothing to do with it is not named."""
    site = Site(tmp_path)
    site.run(ASKED, a="<i><ts>1</ts><s>1</s><t>4</t></i>", b="<i><ts>1</ts><t>4</t></i>")
    site.run(ASKED, a=HALF.format(N, 2))
    site.run(ASKED, a=HALF.format(N, 1))
    site.run(ASKED, a=DROP)
    assert site.told() == [
        {"passes it on": ("shows",), "reckons with it": ("hides", "selects", "averages", "joins")},
        {"passes it on": ("shows", "hides", "averages"), "reckons with it": ("selects", "joins")},
        {"passes it on": ("shows", "hides", "averages"), "ends": ("selects", "joins")},
    ]
    assert site.told(1) == []


def test_who_comes_late_or_goes_did_nothing(tmp_path: Path) -> None:
    """What was said before a subscription began is not its doing, though it reckons with it from then on."""
    site = Site(tmp_path)
    early, late = {"early": ASKED["hides"], "gone": ASKED["hides"]}, {"early": ASKED["hides"], "late": ASKED["hides"]}
    site.run(early, a="<i><s>1</s><t>4</t></i>", b="<i/>")
    site.run(early, a=HALF.format(N, 2))
    site.run(late, a="<i><s>1</s><t>4</t></i>")
    site.run(late, a=HALF.format(N, 1))
    assert site.told() == [{"reckons with it": ("early",)}, {"passes it on": ("early", "late")}]


def test_an_accent_that_is_refused_ends_those_who_read_its_path(tmp_path: Path) -> None:
    """LAWS 4.5: nobody knows what the path means; the reason stands beside it."""
    site = Site(tmp_path)
    site.run(ASKED, a=DROP, b="<i/>")
    site.run({name: ASKED[name] for name in ("hides", "other")}, a=DROP)
    assert site.told() == [{"passes it on": ("hides",)}, {"ends": ("hides",)}]
    history = StreamCourse(site.sources[0], Checkpoint.at(tmp_path / "state")).history()
    assert str(history).splitlines()[2].endswith("refused: 't' is dropped where it does not exist; ends: hides")
    assert "ends: hides" in history._repr_html_()
