"""A small site with a branch of each kind, whose checkpoint in the middle of its streams is kept with each release.

    python tests/upgrade/site.py VERSION       # writes tests/upgrade/VERSION.tar.gz

The archive has the streams as they were when the checkpoint was made; what comes behind is made by the test.
Another, `running/VERSION.tar.gz`, has a site that was stopped between two epochs while there was more to read: its
file, streams, checkpoint, log, and what its sinks had.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from anabranch import Engine
from anabranch.running import run as run_site

HERE = Path(__file__).parent
QUERIES = {
    "items": 'for $p in stream("s")/root/p where $p/v >= 5 return <n>{ $p/v }</n>',
    "windows": 'for $w in stream("s")/root/p |t diff 10 step 5| return <w n="{ count($w/v) }">{ avg($w/v) }</w>',
    "counted": 'for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w/v }</w>',
    "groups": 'for $w in stream("s")/root/p |t diff 10| for $p in $w group by $k := $p/k '
    "return <g k='{ $k }'>{ sum($p/v), median($p/v) }</g>",
    "sessions": 'for $w in stream("s")/root/p |t gap 2| return <w>{ count($w/v) }</w>',
    "join": 'for $a in stream("s")/root/p |t diff 6 step 3|, $b in stream("o")/root/p |t diff 6 step 3| '
    "where $a/k = $b/k return <pair>{ $a/v, $b/v }</pair>",
    "growing": '<all>{ count(stream("s")/root/p), sum(stream("s")/root/p/v) }</all>',
    "display": '<show>{ for $p in stream("e")/root/p where $p/v > 3 return $p }</show>',
    "past": '<was>{ for $p in stream("e")/root/p where $p/v#1 < $p/v return $p/v }</was>',
}
STREAMS = ("s", "o", "e")
UNREAD = 10
"""So many moments have come and were not read when the running site was stopped."""
NAMESPACE = 'xmlns:s="urn:anabranch:stream"'


def grow(folder: Path, start: int, end: int) -> None:
    """Let moments come into all streams."""
    for name in ("s", "o"):
        with (folder / name).open("a") as file:
            for t in range(start, end):
                at = t + (3 if t % 7 == 0 else 0)
                file.write(f"<p><t>{at}</t><k>{'abc'[t % 3]}</k><v>{(t * 7) % 11}.5</v></p>\n")
    with (folder / "e").open("a") as file:
        for t in range(start, end):
            region = t - t % 4
            content = f"<v>{(t * 5) % 9}</v>"
            if t == region:
                file.write(f'<p {NAMESPACE} s:at="{t}"><s:mutable id="r{region}">{content}</s:mutable></p>\n')
            else:
                file.write(f'<s:replace {NAMESPACE} target="r{region}" at="{t}">{content}</s:replace>\n')


def run(folder: Path) -> dict[str, str]:
    """Read to the end of what is there; gives the answers."""
    with Engine(local=True, checkpoint=folder / "state", once=True, epoch_bytes=700) as engine:
        for name in ("s", "o"):
            engine.stream(name, folder / name, format="lines", root="root", time="t")
        engine.stream("e", folder / "e", format="lines", root="root", updates=True)
        found = [engine.subscribe(text, name) for name, text in QUERIES.items()]
        engine.wait()
        return {each.name: each.answer() for each in found}


def declare(folder: Path) -> Path:
    """Write the file of a site with these streams and queries, whose answers also go into files."""
    lines = ["[engine]", 'checkpoint = "state"', "epoch_bytes = 700", 'log = "log.jsonl"']
    for name in STREAMS:
        rest = "updates = true" if name == "e" else 'time = "t"'
        lines += [f"[streams.{name}]", f'path = "{name}"', 'format = "lines"', 'root = "root"', rest]
    for name, text in QUERIES.items():
        lines += [f"[subscriptions.{name}]", f"text = '''{text}'''"]
        lines += ['sink = "files"', f'path = "out/{name}.xml"']
    (folder / "SITE.toml").write_text("\n".join(lines) + "\n")
    return folder / "SITE.toml"


def shown(folder: Path) -> dict[str, str]:
    """What the sinks of a site have."""
    return {name: (folder / f"out/{name}.xml").read_text() for name in QUERIES}


def write(version: str) -> Path:
    """Write the archives of a release."""
    with tempfile.TemporaryDirectory() as found:
        folder = Path(found)
        grow(folder, 0, 30)
        run_site(declare(folder), once=True, local=True)
        grow(folder, 30, 30 + UNREAD)
        archive = HERE / "running" / f"{version}.tar.gz"
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:gz") as tar:
            for each in ("SITE.toml", *STREAMS, "out", "state"):
                tar.add(folder / each, each, filter=_kept)
    with tempfile.TemporaryDirectory() as found:
        folder = Path(found)
        grow(folder, 0, 30)
        run(folder)
        archive = HERE / f"{version}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for name in STREAMS:
                tar.add(folder / name, name)
            tar.add(folder / "state", "state", filter=_kept)
    return archive


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What is in an archive: nothing that a run makes anew, and nobody's name."""
    if entry.name.startswith(("state/scratch", "state/lock")):
        return None
    entry.uname = entry.gname = ""
    entry.uid = entry.gid = 0
    entry.mtime = 0
    return entry


if __name__ == "__main__":
    print(write(sys.argv[1]))
