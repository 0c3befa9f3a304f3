"""Functions in Python that a site or a command registers: queries 4 and 5 of the history paper, as they are printed."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from pyspark.sql import SparkSession

import papers
from anabranch.cli import main
from anabranch.errors import UsageError
from anabranch.running import run
from anabranch.site import read_site

MODULE = """\
import math

import {helper}

def triangulate(a, b):
    first, second = math.radians(a), math.radians(b)
    return round(math.sin(first) * math.sin(second) / math.sin(first + second), 3)

class Roads:
    @staticmethod
    def distance(a, b):
        return {helper}.apart(a, b)

number = 5
"""
HELPER = "def apart(a, b):\n    return abs(a - b)\n"
STREAMS = {
    "radar1": "<event><at>1</at><frequency>5.1</frequency><angle>45</angle></event>\n"
    "<event><at>4</at><frequency>5.1</frequency><angle>60</angle></event>\n",
    "radar2": "<event><at>1.5</at><frequency>5.1</frequency><angle>45</angle></event>\n"
    "<event><at>4.25</at><frequency>6.2</frequency><angle>30</angle></event>\n",
    "vehicle": "<event><at>1</at><type>bus</type><location>5</location></event>\n"
    "<event><at>2</at><type>ambulance</type><location>5</location></event>\n",
    "road_sensor": "<event><at>1.5</at><location>5.05</location><speed>2</speed></event>\n",
    "traffic_light": "<event><at>1.75</at><id>L1</id><location>7</location></event>\n"
    "<event><at>1.8</at><id>L2</id><location>90</location></event>\n",
}
POSITIONS = [{"at": 1.5, "answer": "<position>0.5</position>"}, {"at": 4, "answer": ""}]
"""By hand: two angles of 45 degrees, and the pair leaves when a second is over."""
LIGHT = '<set id="L1"><status>green</status>,\n  <time>1</time></set>\n'
"""By hand: two units of way at a speed of two; the other light is too far away."""

_numbers = count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with streams, queries and a module that needs another beside it; gives the module's name.

    What a process has imported once it knows for good, so every test has modules of its own.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name, helper = (f"{kind}_{next(_numbers)}" for kind in ("roads", "ways"))
    Path(f"{name}.py").write_text(MODULE.format(helper=helper))
    Path(f"{helper}.py").write_text(HELPER)
    for stream, lines in STREAMS.items():
        Path(stream).write_text(lines)
    Path("radar.xq").write_text(papers.RADAR)
    Path("traffic.xq").write_text(papers.TRAFFIC)
    return name


def streams(*names: str) -> list[str]:
    """The options for some streams."""
    options = {"--stream": "{0}={0}", "--time": "{0}=at", "--format": "{0}=lines"}
    return [word for name in names for key, value in options.items() for word in (key, value.format(name))]


def site(functions: str) -> Path:
    """A site with both queries."""
    text = '[engine]\ncheckpoint = "state"\nlog = "log"\n'
    for name in STREAMS:
        text += f'[streams.{name}]\npath = "{name}"\nformat = "lines"\ntime = "at"\nitem = "event"\n'
    for name in ("radar", "traffic"):
        text += f'[subscriptions.{name}]\nquery = "{name}.xq"\n'
    Path("site.toml").write_text(f"{text}[functions]\n{functions}")
    return Path("site.toml")


def both(module: str) -> str:
    """The functions of both queries, as a site registers them."""
    return f'triangulate = "{module}:triangulate"\ndistance = "{module}:Roads.distance"\n'


def test_queries_4_and_5_from_the_command_line(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As they are printed, with a module in the working directory."""
    given = ["query", "radar.xq", *streams("radar1", "radar2"), "--engine", "reference", "--timeline"]
    assert main([*given, "--function", f"triangulate={module}:triangulate"]) == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == POSITIONS
    given = ["query", "traffic.xq", *streams("vehicle", "road_sensor", "traffic_light"), "--engine", "reference"]
    assert main([*given, "--function", f"distance={module}:Roads.distance"]) == 0
    assert capsys.readouterr().out == LIGHT


def test_queries_that_call_functions_are_explained(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` knows the function by its name."""
    assert main(["explain", "radar.xq"]) == 1
    assert "no function is called 'triangulate()'" in capsys.readouterr().err
    assert main(["explain", "radar.xq", "--function", f"triangulate={module}:triangulate"]) == 0
    assert "items of the last 1 s" in capsys.readouterr().out


@pytest.mark.spark
def test_queries_4_and_5_on_a_site(spark: SparkSession, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As they are printed; the tasks find the module, and that which it imports, beside the site.

    Streams that run have no end, so heartbeats say that nothing earlier follows (LAWS 1.2).
    """
    for name in ("road_sensor", "traffic_light"):
        with Path(name).open("a") as file:
            file.write('<s:punctuation xmlns:s="urn:anabranch:stream" at="2"/>\n')
    site(both(module))
    assert main(["run", "site.toml", "--once"]) == 0
    capsys.readouterr()
    assert main(["answer", "site.toml", "traffic"]) == 0
    assert capsys.readouterr().out == LIGHT
    assert main(["answer", "site.toml", "radar", "--timeline"]) == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == POSITIONS
    assert main(["state", "site.toml"]) == 0


@pytest.mark.spark
def test_queries_4_and_5_on_spark(spark: SparkSession, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line, too; and a query that is answered item by item."""
    given = ["query", "traffic.xq", *streams("vehicle", "road_sensor", "traffic_light"), "--engine", "spark"]
    assert main([*given, "--function", f"distance={module}:Roads.distance"]) == 0
    assert capsys.readouterr().out == LIGHT
    Path("near.xq").write_text('for $v in stream("vehicle")//event return <d>{ distance($v/location, 3) }</d>')
    given = ["query", "near.xq", *streams("vehicle"), "--engine", "spark"]
    assert main([*given, "--function", f"distance={module}:Roads.distance"]) == 0
    assert capsys.readouterr().out == "<d>2</d><d>2</d>\n"


@pytest.mark.spark
def test_other_functions_come_with_the_next_start(spark: SparkSession, module: str) -> None:
    """A run keeps the functions that it has begun with, and says so."""
    file = site(both(module))
    stop = Event()
    thread = Thread(target=lambda: run(file, stop=stop))
    thread.start()
    try:
        await_message("started")
        site(both(module).replace(":triangulate", ":Roads.distance"))
        assert await_message("warning")["message"] == "'functions' takes effect with the next start"
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def await_message(kind: str) -> dict[str, object]:
    """Wait until the log tells of it."""
    deadline = monotonic() + 60
    while monotonic() < deadline:
        if Path("log").exists():
            for each in map(json.loads, Path("log").read_text().splitlines()):
                if each["event"] == kind:
                    return dict(each)
        Event().wait(0.02)
    raise AssertionError(f"no '{kind}' in the log")


WRONG = {
    "no module": ("distance", "nowhere_at_all:f", "there is no module 'nowhere_at_all'"),
    "no module inside": ("distance", "{module}.deeper:f", "there is no module '{module}.deeper'"),
    "no attribute": ("distance", "{module}:missing", "module '{module}' has no 'missing'"),
    "no attribute inside": ("distance", "{module}:Roads.missing", "module '{module}' has no 'Roads.missing'"),
    "not callable": ("distance", "{module}:number", "'{module}:number' is a int, which cannot be called"),
    "no function": ("distance", "{module}", "the function 'distance' takes 'module:function', not '{module}'"),
    "no name": ("distance", "{module}:a b", "the function 'distance' takes 'module:function', not '{module}:a b'"),
    "built in": ("count", "{module}:triangulate", "the function 'count' is built in"),
    "a stream": ("stream", "{module}:triangulate", "the function 'stream' is built in"),
    "a keyword": ("text", "{module}:triangulate", "'text' is no name that a query can call"),
    "two names": ("a b", "{module}:triangulate", "'a b' is no name that a query can call"),
    "raises": ("distance", "raising_module:f", "module 'raising_module' cannot be imported: ValueError: no roads"),
    "exits": ("distance", "exiting_module:f", "module 'exiting_module' cannot be imported: SystemExit: 3"),
    "needs another": (
        "distance",
        "needing_module:f",
        "module 'needing_module' cannot be imported: ModuleNotFoundError",
    ),
    "hidden": ("distance", "json:dumps", "another module 'json' hides"),
}


@pytest.mark.parametrize(("name", "given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_before_anything_starts(
    module: str, capsys: pytest.CaptureFixture[str], name: str, given: str, message: str
) -> None:
    """By name, on the command line and in a site; the site also names the line of what it should not say."""
    Path("raising_module.py").write_text('raise ValueError("no roads")\n')
    Path("exiting_module.py").write_text("raise SystemExit(3)\n")
    Path("needing_module.py").write_text("import nowhere_at_all\n")
    if "json" in given:
        Path("json.py").write_text("def dumps(): pass\n")
    given, message = given.format(module=module), message.format(module=module)
    assert main(["query", "radar.xq", *streams("radar1", "radar2"), "--function", f"{name}={given}"]) == 2
    assert message in capsys.readouterr().err
    site(f'"{name}" = "{given}"\n')
    assert main(["run", "site.toml", "--once"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("state").exists()


def test_a_site_is_looked_at_without_its_modules(module: str) -> None:
    """Reading a site imports nothing, and says where it is wrong."""
    assert read_site(site('distance = "nowhere_at_all:f"\n')).functions["distance"].module == "nowhere_at_all"
    with pytest.raises(UsageError, match=r"line \d+, \[functions\]: the function 'sum' is built in"):
        read_site(site('sum = "a:b"\n'))
    with pytest.raises(UsageError, match=r"\[functions\]: 'distance' takes text, not '5'"):
        read_site(site("distance = 5\n"))


def test_what_a_function_raises_concerns_one_item(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """LAWS 2.4: it is a dynamic error of that item; here all items have one, which the exit status tells."""
    Path("near.xq").write_text('for $v in stream("vehicle")//event return <d>{ distance($v/type, 3) }</d>')
    given = ["query", "near.xq", *streams("vehicle"), "--engine", "reference", "--dead-letter", "dead"]
    assert main([*given, "--function", f"distance={module}:Roads.distance"]) == 3
    letters = list(map(json.loads, Path("dead").read_text().splitlines()))
    assert [each["code"] for each in letters] == ["FOER0000", "FOER0000"]
    assert "function 'distance' failed: TypeError" in letters[0]["reason"]
