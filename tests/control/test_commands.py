"""Control elements that a stream does not take, in the real commands: `anabranch run` goes on, and so does the site.

On the shared Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anabranch.algebra.plans.written import is_plan
from anabranch.cli import main
from anabranch.spark.epoch import trunk as epochs
from control.elements import KINDS, SCHEMA, World
from control.queries import subscriptions
from spark.bare import BareTrunk
from spark.trunks import Killed

N = 'xmlns:s="urn:anabranch:stream"'
REPLACE = f'<s:replace {N} target="1"><p>9</p></s:replace>'
ALL = '<all>{{ for $p in stream("{}")/root/p return $p }}</all>'
DISPLAY = '<all>{{ for $e in stream("edited")/root/e return $e/{} }}</all>'


class Folder:
    """A site in the working directory."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def site(self, streams: Mapping[str, str], queries: Mapping[str, str]) -> None:
        """Write the site: streams by name with more settings, subscriptions with their queries."""
        found = ['[engine]\ncheckpoint = "state"\ntrigger_ms = 20\nlog = "log"\ndead_letters = "dead"\n']
        for name, more in streams.items():
            (self.top / name).mkdir(exist_ok=True)
            found.append(f'[streams.{name}]\npath = "{name}"\nformat = "lines"\n{more}\n')
        for name, text in queries.items():
            (self.top / f"{name}.xq").write_text(text)
            found.append(f'[subscriptions.{name}]\nquery = "{name}.xq"\n')
        (self.top / "SITE.toml").write_text("\n".join(found))

    def append(self, stream: str, *elements: str) -> None:
        with (self.top / stream / "a").open("a") as file:
            file.writelines(f"{each}\n" for each in elements)

    def letters(self) -> list[tuple[str, int, str]]:
        lines = map(json.loads, (self.top / "dead").read_text().splitlines())
        return [(each["stream"], each["offset"], each["reason"]) for each in lines]

    def warnings(self) -> list[str]:
        lines = map(json.loads, (self.top / "log").read_text().splitlines())
        return [each["message"] for each in lines if each["event"] == "warning"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def run() -> int:
    return main(["run", "SITE.toml", "--once"])


def answer(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["answer", "SITE.toml", name]) == 0
    return capsys.readouterr().out.strip()


@pytest.mark.spark
def test_an_update_in_a_stream_of_items(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is set aside, once, with a reason that helps; the run goes on, now and after a restart."""
    folder.site({"s": "", "t": ""}, {"s_all": ALL.format("s"), "t_all": ALL.format("t")})
    folder.append("s", "<p>1</p>", REPLACE, "<p>2</p>")
    folder.append("t", "<p>3</p>")
    assert run() == 0
    folder.append("s", "<p>4</p>")
    assert run() == 0
    assert answer("s_all", capsys) == "<all><p>1</p><p>2</p><p>4</p></all>"
    assert answer("t_all", capsys) == "<all><p>3</p></all>"
    reason = "an update stands in a stream of items: one that is edited needs 'updates = true'"
    assert folder.letters() == [("s", 9, reason)]


@pytest.mark.spark
def test_an_accent_in_a_stream_of_updates(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Displays change their units, also behind a restart; a bad accent ends who reads its path, and nobody else."""
    streams, queries = {"edited": "updates = true"}, {"reads": DISPLAY.format("t"), "others": DISPLAY.format("n")}
    folder.site(streams, queries)
    folder.append("edited", f'<e><s:mutable {N} id="1"><t>1</t></s:mutable><n>1</n></e>')
    assert run() == 0
    assert main(["accent", "SITE.toml", "edited", '<s:accent><s:alter path="t" by=". * 2"/></s:accent>']) == 0
    file = folder.top / "edited" / "b"
    file.write_text(f'<s:replace {N} target="1"><t>4</t></s:replace>\n<e><t>5</t><n>2</n></e>\n')
    assert run() == 0
    assert answer("reads", capsys) == "<all><t>4</t><t>5</t></all>"
    folder.site(streams, {**queries, "late": DISPLAY.format("t"), "past": DISPLAY.format("t#[1]")})
    replaced, bad = (
        f'<s:replace {N} target="1"><t>8</t></s:replace>',
        '<s:accent {}><s:alter path="t" by="?"/></s:accent>',
    )
    (folder.top / "edited" / "c").write_text(f"{replaced}\n")
    assert run() == 0
    assert answer("reads", capsys) == "<all><t>8</t><t>5</t></all>"
    assert answer("late", capsys) == "<all><t>8</t><t>5</t></all>"
    assert answer("past", capsys) == "<all><t>8</t><t>4</t><t>5</t></all>"
    (folder.top / "edited" / "d").write_text(f"{bad.format(N)}\n<e><t>6</t><n>3</n></e>\n")
    assert run() == 0
    assert answer("reads", capsys) == "<all><t>8</t><t>5</t></all>"
    assert answer("others", capsys) == "<all><n>1</n><n>2</n><n>3</n></all>"
    ended = [each for each in folder.warnings() if "has ended" in each]
    assert len(ended) == 3
    assert all("the query reads 't', which is unknown from here on" in each for each in ended)


@pytest.mark.spark
def test_a_stream_that_was_taken_out_holds_nobody_up(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch that was begun and not committed is forgotten: files of it that are gone were never read."""
    both = {"s": "", "t": ""}
    queries = {"s_all": ALL.format("s"), "t_all": ALL.format("t")}
    folder.site(both, queries)
    folder.append("s", "<p>1</p>", "<p>2</p>")
    folder.append("t", "<p>3</p>")

    def die(found: str, epoch: int) -> None:
        if found == "plan-written":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(epochs, "point", die)
        with pytest.raises(Killed):
            run()
    (folder.top / "s" / "a").unlink()
    assert run() == 0
    assert answer("t_all", capsys) == "<all><p>3</p></all>"
    folder.site({"t": ""}, {"t_all": ALL.format("t")})
    folder.append("t", "<p>4</p>")
    assert run() == 0
    assert answer("t_all", capsys) == "<all><p>3</p><p>4</p></all>"
    folder.site(both, queries)
    folder.append("s", "<p>5</p>")
    assert run() == 0
    assert answer("s_all", capsys) == "<all><p>5</p></all>"
    assert answer("t_all", capsys) == "<all><p>3</p><p>4</p></all>"


@pytest.mark.spark
def test_fifty_subscriptions_beside_all_of_it(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them ends, and none differs from a trunk that was never disturbed."""
    asked = {
        name: text for name, text in subscriptions().items() if not is_plan(text) and not name.startswith("promised")
    }
    assert len(asked) >= 50
    calm, wild = World(folder.top / "calm", disturbed=False), World(folder.top / "wild", disturbed=True)
    calm.write()
    wild.write()
    expected = BareTrunk(folder.top / "calm-state", calm.sources(), Random(1), finite=False)
    expected.run(asked, (1 << 20,), (2,))
    (folder.top / "s.dtd").write_text(SCHEMA)
    site = ['[engine]\ncheckpoint = "state"\nlog = "log"\ndead_letters = "dead"\nepoch_bytes = 60000\n']
    for kind in (each for each in KINDS if each.evolves):
        source = kind.source(wild.folder)
        paths = ", ".join(f'"{path}"' for path in source.partitions)
        settings = {
            "format": f'"{kind.form}"',
            "root": '"r"',
            "item": f'"{source.item}"',
            **({"time": f'"{kind.time}"'} if kind.time else {}),
            **({"updates": "true"} if kind.updates else {}),
            **({"dtd": '"s.dtd"', "strict": "true"} if kind.strict else {}),
        }
        lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
        site.append(f"[streams.{kind.name}]\npath = [{paths}]\n{lines}")
    for number, (name, text) in enumerate(asked.items()):
        (folder.top / f"{number}.xq").write_text(text)
        site.append(f'[subscriptions."{name}"]\nquery = "{number}.xq"\n')
    (folder.top / "SITE.toml").write_text("\n".join(site))
    assert run() == 0
    assert {name: answer(name, capsys) for name in asked} == {name: expected.answer(name).strip() for name in asked}
    assert not [each for each in folder.warnings() if "has ended" in each]
    assert len(folder.letters()) > 500
