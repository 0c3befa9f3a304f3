"""TOML: files of sites and networks that are broken, climb out of folders, or ask for too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.errors import AnabranchError
from anabranch.network.description import read_network
from anabranch.site import read_site
from hostile.attacks import Attack, Carry, Outcome

_STREAM = '[streams.s]\npath = "in"\n'
_ENGINE = '[engine]\ncheckpoint = "state"\n'
SITES = {
    "nothing": "",
    "no TOML": "<site/>",
    "a table that is never closed": "[engine",
    "a text that never ends": '[engine]\ncheckpoint = "x',
    "arrays 5,000 deep": f"[engine]\ncheckpoint = {'[' * 5_000}{']' * 5_000}",
    "tables 5,000 deep": f"[{'.'.join('a' * 5_000)}]\n",
    "a key twice": f'{_ENGINE}checkpoint = "other"\n',
    "an unknown key": f"{_ENGINE}eval = true\n",
    "an unknown table": f"{_ENGINE}[plugins.x]\npath = 'x.py'\n",
    "a number for a path": "[engine]\ncheckpoint = 5\n",
    "a NUL in a path": '[engine]\ncheckpoint = "a\\u0000b"\n',
    "an address of another kind": '[engine]\ncheckpoint = "http://127.0.0.1:9/"\n',
    "a stream that is its own checkpoint": f'{_ENGINE}[streams.s]\npath = "state"\n',
    "a sink in the checkpoint": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "q.xq"\nsink = "state/manifest/0"\n',
    "a sink that is the stream": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "q.xq"\nsink = "in"\n',
    "a sink that is the query": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "q.xq"\nsink = "q.xq"\n',
    "a query that is not there": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "none.xq"\n',
    "a query that is a folder": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "."\n',
    "a query that never ends": f'{_ENGINE}{_STREAM}[subscriptions.q]\nquery = "/dev/zero"\n',
    "shards without number": f"{_ENGINE}shards = -1\n",
    "shards without end": f"{_ENGINE}shards = 99999999999999999999\n",
    "an epoch of no bytes": f"{_ENGINE}epoch_bytes = 0\n",
    "functions that are no module": f'{_ENGINE}{_STREAM}[functions]\nf = "os.system"\n',
    "a format that is none": f'{_ENGINE}[streams.s]\npath = "in"\nformat = "pickle"\n',
}
NETWORKS = {
    "no shape": "[network]\n",
    "a shape that is none": '[network]\ntopology = "torus"\npeers = 3\n',
    "a billion peers": '[network]\ntopology = "line"\npeers = 1000000000\n',
    "no peers": '[network]\ntopology = "line"\npeers = 0\n',
    "a link to itself": '[[links]]\nbetween = ["A", "A"]\n[network]\n',
    "a peer that is not there": '[network]\ntopology = "line"\npeers = 2\n[peers.P]\nat = "SP9"\n',
    "a stream nowhere": '[network]\ntopology = "line"\npeers = 2\n[streams.s]\nat = "x"\npath = "in"\n',
    "a link that is none": '[network]\ntopology = "line"\npeers = 2\nlink = "pigeons"\n',
}


def _site(text: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        (folder / "in").mkdir()
        (folder / "q.xq").write_text('for $p in stream("s")/r/p return $p')
        (folder / "SITE.toml").write_text(text)
        try:
            read_site(folder / "SITE.toml").check_files()
        except AnabranchError:
            return "refused"
        return "answered"

    return carry_out


def _network(text: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        (folder / "in").mkdir()
        (folder / "NETWORK.toml").write_text(text)
        try:
            read_network(folder / "NETWORK.toml")
        except AnabranchError:
            return "refused"
        return "answered"

    return carry_out


def attacks() -> Iterator[Attack]:
    """Files of settings."""
    for name, text in SITES.items():
        yield Attack("a SITE.toml", name, _site(text), "refused")
    for name, text in NETWORKS.items():
        yield Attack("a NETWORK.toml", name, _network(text), "refused")
