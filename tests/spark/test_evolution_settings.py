"""What users decide about accents: whether they are followed, and what a query does that cannot pass one on."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.algebra.reactions.signature import Policy
from anabranch.cli import main
from anabranch.engine.live import Engine
from anabranch.errors import UsageError
from anabranch.site import read_site
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

ACCENT = '<s:accent xmlns:s="urn:anabranch:stream" where="s = 2"><s:alter path="t" by=". * 2"/></s:accent>'
LINES = ("<i><ts>1</ts><s>1</s><t>3</t></i>", ACCENT, "<i><ts>12</ts><s>2</s><t>8</t></i>")
ITEMS = 'for $i in stream("a")/r/i return <o>{ $i/t }</o>'
WINDOWS = 'for $w in stream("a")/r/i|ts diff 10| return <o>{ avg($w/t) }</o>'


def trunk(folder: Path, *lines: str, accents: bool = True, policies: dict[str, Policy] | None = None) -> BareTrunk:
    folder.mkdir()
    (folder / "in").write_text("".join(f"{line}\n" for line in lines))
    source = Source("a", folder / "in", "lines", root="r")
    return BareTrunk(folder / "state", [source], Random(1), finite=True, accents=accents, policies=policies)


def test_accents_can_be_switched_off(tmp_path: Path) -> None:
    """Then a stream without them is answered as ever; one that comes all the same is set aside (LAWS 4.5).

    It ends whoever reads its path, by name, and nobody else.
    """
    plain = [line for line in LINES if line != ACCENT]
    answers = []
    for accents in (True, False):
        made = trunk(tmp_path / str(accents), *plain, accents=accents)
        made.run({"items": ITEMS, "windows": WINDOWS}, (20, 1 << 20), (1, 2))
        answers.append([made.answer(name) for name in ("items", "windows")])
    assert answers[0] == answers[1] == ["<o><t>3</t></o><o><t>8</t></o>", "<o>3</o><o>8</o>"]
    refused = trunk(tmp_path / "refused", *LINES, accents=False)
    refused.run({"items": ITEMS, "windows": WINDOWS, "others": ITEMS.replace("$i/t", "$i/ts")}, (20, 1 << 20), (1, 2))
    assert refused.answer("items") == "<o><t>3</t></o>"
    assert refused.answer("others") == "<o><ts>1</ts></o><o><ts>12</ts></o>"
    reason = "accents are turned off here: leave 'accents = false' out of [engine]"
    assert [(each.place.offset, each.reason) for each in refused.log.dead_letters()] == [(34, reason)]
    manifests = list(refused.log.manifests.since(0))
    assert refused.plan is not None
    names = {each.id: each.name for each in refused.plan.subscriptions}
    ended = {names[number]: reason for number, reason in manifests[-1].aborted.items()}
    assert ended == dict.fromkeys(("items", "windows"), f"the query reads 't', which is unknown from here on: {reason}")


def test_what_a_stream_has_gone_through_holds_without_accents(tmp_path: Path) -> None:
    """Who began with other units goes on in them when accents are turned off; only further ones are refused."""
    made = trunk(tmp_path / "a", *LINES, policies={"items": "absorb"})
    made.run({"items": ITEMS}, (1 << 20,), (1,))
    with (tmp_path / "a" / "in").open("a") as file:
        file.write("<i><s>2</s><t>10</t></i>\n")
    made.accents = False
    made.run({"items": ITEMS}, (1 << 20,), (1,))
    assert made.answer("items") == "<o><t>3</t></o><o><t>4</t></o><o><t>5</t></o>"


@pytest.mark.parametrize("query", [ITEMS, WINDOWS])
def test_each_subscription_has_its_policy(tmp_path: Path, query: str) -> None:
    """LAWS 4.7: the same query twice, one of which ends where the other goes on in the unit of its start."""
    made = trunk(tmp_path / "a", *LINES, policies={"ends": "abort", "absorbs": "absorb"})
    made.run({"goes on": query, "ends": query, "absorbs": query}, (1 << 20,), (1,))
    found = ["<o><t>3</t></o>", "<o><t>4</t></o>"] if query == ITEMS else ["<o>3</o>", "<o>4</o>"]
    assert made.answer("goes on") == made.answer("absorbs") == "".join(found)
    assert made.answer("ends") == (found[0] if query == ITEMS else "")
    (reason,) = made.log.manifests.load(0).aborted.values()
    assert "cannot pass on the accent on 't' where s = 2" in reason


def test_an_answer_that_absorbs_stays_in_its_unit(tmp_path: Path) -> None:
    """Also where the accents that have come are for all items; the same query with another policy is told."""
    other = ACCENT.replace("s = 2", "not(s = 2)")
    made = trunk(tmp_path / "a", *LINES, other, "<i><ts>13</ts><s>1</s><t>10</t></i>", policies={"absorbs": "absorb"})
    made.run({"absorbs": ITEMS, "told": ITEMS}, (1 << 20,), (1,))
    assert made.answer("absorbs") == "<o><t>3</t></o><o><t>4</t></o><o><t>5</t></o>"
    assert made.answer("told").startswith("<o><t>3</t></o><o><t>4</t></o><s:accent")
    assert made.answer("told").endswith('by=". * 2"/></s:accent><o><t>10</t></o>')


def test_another_policy_is_another_subscription(tmp_path: Path) -> None:
    """Under the same name: it answers from its own first element on."""
    made = trunk(tmp_path / "a", LINES[0])
    made.run({"q": ITEMS}, (1 << 20,), (1,))
    with (tmp_path / "a" / "in").open("a") as file:
        file.write(f"{LINES[0]}\n")
    made.policies = {"q": "absorb"}
    made.run({"q": ITEMS}, (1 << 20,), (1,))
    assert made.answer("q") == "<o><t>3</t></o>"
    assert made.plan is not None
    assert [(each.id, each.policy) for each in made.plan.subscriptions] == [(1, "absorb")]


SITE = '[engine]\ncheckpoint = "state"\n{}\n[streams.a]\npath = "in"\n[subscriptions.q]\nquery = "q.xq"\n{}\n'


def site(folder: Path, engine: str = "", subscription: str = "") -> Path:
    (folder / "in").touch()
    (folder / "q.xq").write_text(ITEMS)
    (folder / "SITE.toml").write_text(SITE.format(engine, subscription))
    return folder / "SITE.toml"


def test_a_site_says_what_it_wants(tmp_path: Path) -> None:
    """Accents are followed and accumulated unless told otherwise; a subscription may differ from the others."""
    found = read_site(site(tmp_path))
    assert (found.settings.accents, found.subscriptions["q"].policy) == (True, "accumulate")
    found = read_site(site(tmp_path, 'accents = false\npolicy = "abort"'))
    assert (found.settings.accents, found.subscriptions["q"].policy) == (False, "abort")
    found = read_site(site(tmp_path, 'policy = "abort"', 'policy = "absorb"'))
    assert found.subscriptions["q"].policy == "absorb"
    for given in ({"engine": 'policy = "hope"'}, {"subscription": 'policy = "hope"'}):
        with pytest.raises(UsageError, match="the policy 'hope' is unknown"):
            read_site(site(tmp_path, **given))


def test_an_engine_knows_its_policies() -> None:
    """Another word is refused before anything is started."""
    with pytest.raises(UsageError, match="the policy 'hope' is unknown"):
        Engine(policy="hope")  # type: ignore[arg-type]  # the mistake


def test_domains_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One path of a stream at a time, and each once."""
    query = tmp_path / "q.xq"
    query.write_text(ITEMS)
    (tmp_path / "in").write_text("".join(LINES[:1]))
    given = ["query", str(query), "--stream", f"a={tmp_path / 'in'}", "--domain", "a=s:1,2", "--domain", "a=s:1"]
    assert main(given) == 2
    assert "--domain is given twice for 'a=s'" in capsys.readouterr().err
