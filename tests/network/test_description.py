from __future__ import annotations

from pathlib import Path

import pytest

import papers
from anabranch.errors import UsageError
from anabranch.network.description import read_network
from anabranch.network.planner import Planner
from anabranch.stream.photons import photons_dtd
from network.making import document

NETWORK = """\
[network]
topology = "hypercube"
peers = 8
bandwidth = 5000
strategy = "sharing"
budget = 60.0

[[links]]
between = ["SP5", "SP4"]
bandwidth = 700

[peers.P0]
at = "SP4"

[peers.P1]
at = "SP1"

[streams.photons]
at = "P0"
path = "photons.xml"
dtd = "photons.dtd"
time = "det_time"

[subscriptions.vela]
at = "P1"
query = "vela.xq"

[subscriptions.rxj]
at = "SP3"
query = "rxj.xq"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the network names."""
    (tmp_path / "photons.xml").write_text(document(1, 50))
    (tmp_path / "photons.dtd").write_text(photons_dtd())
    (tmp_path / "vela.xq").write_text(papers.Q4)
    (tmp_path / "rxj.xq").write_text(papers.Q3)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """The network as a file."""
    file = folder / "NETWORK.toml"
    file.write_text(text)
    return file


def test_what_a_network_says(folder: Path) -> None:
    """Thin peers stand for their super-peers; a link that is named keeps its own bandwidth."""
    found = read_network(written(folder, NETWORK))
    assert found.topology.links[("SP4", "SP5")] == 700
    assert found.topology.links[("SP0", "SP1")] == 5000
    assert (found.streams["photons"].at, found.streams["photons"].by) == ("SP4", "P0")
    assert [(each.name, each.at, each.by) for each in found.subscriptions.values()] == [
        ("vela", "SP1", "P1"),
        ("rxj", "SP3", "SP3"),
    ]
    assert (found.strategy, found.budget) == ("sharing", 60.0)


def test_it_is_planned_in_its_order(folder: Path) -> None:
    """rxj shares the stream of vela, which was registered before it; another strategy may be asked for."""
    network = read_network(written(folder, NETWORK))
    planner, decisions = Planner.of(network)
    assert [each.about for each in decisions] == ["vela", "rxj"]
    assert [each.chosen.shares for each in decisions if each.chosen] == [False, True]
    shipped, _ = Planner.of(network, "shipping")
    assert len(list(shipped.catalogue.hops)) == 5 > len(list(planner.catalogue.hops))


def test_links_alone(folder: Path) -> None:
    """Without a shape the links say which super-peers there are."""
    text = '[[links]]\nbetween = ["here", "there"]\n[[links]]\nbetween = ["there", "beyond"]\n'
    assert read_network(written(folder, text)).topology.peers == ("here", "there", "beyond")


def test_a_stream_that_has_not_begun(folder: Path) -> None:
    """Nothing is known of it, and it is planned all the same."""
    (folder / "in").mkdir()
    planner, _ = Planner.of(read_network(written(folder, NETWORK.replace("photons.xml", "in"))))
    assert len(list(planner.catalogue.hops)) == 3


def test_a_random_network_has_a_seed(folder: Path) -> None:
    """The same number gives the same links."""
    one, two, again = (
        read_network(written(folder, f'[network]\ntopology = "random"\npeers = 9\nseed = {seed}\n')).topology
        for seed in (1, 2, 1)
    )
    assert one == again != two


WRONG = (
    ('topology = "hypercube"', 'topology = "cube"', 1, "the topology 'cube' is unknown", "hypercube, grid"),
    ("peers = 8", "peers = 7", 1, "no hypercube has 7 peers", "power of two"),
    ("peers = 8", "peers = -1", 3, "'peers' takes a positive number, not '-1'", None),
    ("bandwidth = 5000", "bandwith = 5000", 4, "'bandwith' is unknown", "did you mean 'bandwidth'?"),
    ("bandwidth = 700", 'bandwidth = "much"', 10, "'bandwidth' takes a positive number, not 'much'", None),
    ('strategy = "sharing"', 'strategy = "hope"', 5, "the strategy 'hope' is unknown", "shipping, sharing, widening"),
    ('["SP5", "SP4"]', '["SP5", "SP9"]', 9, "'SP9' is no super-peer", "SP0, SP1"),
    ('["SP5", "SP4"]', '["SP5"]', 9, "'between' takes two super-peers", None),
    ('[peers.P1]\nat = "SP1"', '[peers.P1]\nat = "P0"', 16, "'P0' is no super-peer", "SP0, SP1"),
    ("[peers.P1]", "[peers.SP1]", 15, "'SP1' is a super-peer already", "a name of its own"),
    ('at = "P0"', 'at = "P7"', 19, "there is no peer 'P7'", "SP0"),
    ('path = "photons.xml"', 'path = "missing"', 20, "there is no '", "make the directory first"),
    ("budget = 60.0", 'log = "x"\ndead_letters = "x"', 7, "x' would be written twice over", "a file of its own"),
    ('query = "vela.xq"', "", 24, "'query' is missing", "names the file"),
    ('query = "vela.xq"', 'query = "none.xq"', 26, "cannot read '", None),
    ('query = "vela.xq"', 'query = "vela.xq"\nquary = 1', 27, "'quary' is unknown", "did you mean 'query'?"),
)


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), WRONG, ids=[row[1][:24] for row in WRONG])
def test_mistakes(folder: Path, old: str, new: str, line: int, message: str, hint: str | None) -> None:
    """What is wrong is said with its line, and where it helps with a hint."""
    assert NETWORK.count(old) == 1
    with pytest.raises(UsageError) as caught:
        read_network(written(folder, NETWORK.replace(old, new)))
    assert message in caught.value.message
    assert f"NETWORK.toml', line {line}, [" in caught.value.message
    assert (hint is None) == (caught.value.hint is None)
    assert hint is None or hint in (caught.value.hint or "")


def test_no_toml(folder: Path) -> None:
    """What is no TOML is told with the place where it stops being so."""
    with pytest.raises(UsageError, match="line 2"):
        read_network(written(folder, "[network]\npeers =\n"))
    with pytest.raises(UsageError, match="cannot read"):
        read_network(folder / "none.toml")
    with pytest.raises(UsageError, match="nothing says which super-peers there are"):
        read_network(written(folder, ""))
