"""Names and values that would act in a page: what the service makes of them, and how the page writes them.

The service tells them as JSON, to the letter, under a type that no browser shows as a page.
The page's own modules are run by the Node that Playwright brings along: `text.js`, and `html.js` with its libraries,
whose elements are what the page is made of; that a browser then runs nothing is shown by `tests/browser`.
"""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import monotonic, sleep

from playwright._impl._driver import compute_driver_executable

from anabranch.service.routes.page import FILES
from hostile.attacks import Attack, Carry, Outcome
from service.local_service import PATIENCE, served

_MARKUP = {
    "a script": "<script>alert(1)</script>",
    "an image with a handler": '<img src=x onerror="alert(1)">',
    "the end of an attribute": '" onmouseover="alert(1)" x="',
    "the end of a script": "</script><script>alert(1)//",
    "an address that is a script": "javascript:alert(1)",
    "a style": "<style>@import 'https://evil.example'</style>",
    "an element of SVG": "<svg/onload=alert(1)>",
    "the end of a comment": "--><b>x</b><!--",
    "a template of the page": "${alert(1)}`",
    "entities": "&lt;script&gt;&amp;#x3c;",
    "a line separator in JSON": "\u2028alert(1)\u2029",
    "a name of a prototype": "__proto__",
}
_ACTING = {
    "a command of a terminal": "\x1b[2J\x1b]0;owned\x07",
    "a command of eight bits": "\x9b2J",
    "writing from right to left": "\u202efdp.exe",
    "an isolate": "\u2066good\u2069",
    "a character without width": "go\u200bod",
    "a tag": "good\U000e0041",
    "half a character": "\ud800",
    "a soft hyphen": "go\u00adod",
    "a carriage return": "good\rbad",
}
_DRAWN = """
import { html } from "./html.mjs";
import { visible, inline } from "./text.mjs";
let given = "";
process.stdin.setEncoding("utf8").on("data", (piece) => (given += piece)).on("end", () => {
  const text = JSON.parse(given);
  const drawn = html`<p title=${text}>${text}</p>`;
  const kinds = [drawn.type, typeof drawn.props.children];
  process.stdout.write(JSON.stringify([kinds, drawn.props.title, drawn.props.children, visible(text), inline(text)]));
});
"""


def _made_of(folder: Path, text: str) -> list[str]:
    """What the page's modules make of a text: an element's title and content, and the text as people see it."""
    for name in ("html", "text"):
        written = (FILES / f"{name}.js").read_text()
        for module, file in _modules().items():
            written = written.replace(f'from "{module}"', f'from "./{file}"')
        (folder / f"{name}.mjs").write_text(written)
    for file in _modules().values():
        found = next((FILES / "vendor").glob(f"*/{file}")).read_text()
        for module, other in _modules().items():
            found = re.sub(rf'from\s*"{module}"', f'from "./{other}"', found)
        (folder / file).write_text(found)
    (folder / "drawn.mjs").write_text(_DRAWN)
    node, *_ = compute_driver_executable()
    told = subprocess.run(
        [node, folder / "drawn.mjs"], input=json.dumps(text), capture_output=True, text=True, check=True
    )
    kinds, *made = json.loads(told.stdout)
    assert kinds == ["p", "string"], "no element came of the text"
    return [str(each) for each in made]


def _modules() -> dict[str, str]:
    """The files of the libraries that the page names."""
    page = (FILES / "index.html").read_text()
    (found,) = re.findall(r'<script type="importmap">(.*?)</script>', page)
    return {name: path.rpartition("/")[2] for name, path in json.loads(found)["imports"].items()}


def _drawn(text: str) -> Carry:
    """The text is one text in the page, and as an attribute one value; shown to people nothing in it acts or hides."""

    def carry_out(folder: Path) -> Outcome:
        title, content, visible, inline = _made_of(folder, text)
        assert title == content == text
        for shown in (visible.replace("\n", ""), inline):
            assert shown.isprintable(), shown
        return "answered"

    return carry_out


def _told(text: str) -> Carry:
    """As an item's value, and as the name and in the query of what is refused: as JSON, and as it was."""

    def carry_out(folder: Path) -> Outcome:
        with redirect_stdout(StringIO()), served(folder) as server:
            item = text.replace("&", "&amp;").replace("<", "&lt;")
            server.add(item)
            until = monotonic() + PATIENCE
            while not (found := server.ask("GET", "/api/subscriptions/all/answers")).content["answers"]:
                assert monotonic() < until
                sleep(0.02)
            (answer,) = found.content["answers"]
            assert Xml.fromstring(answer["text"]).text == text
            refused = server.ask("POST", "/api/subscriptions", {"name": text, "query": f'1 = "{text}'})
            assert 400 <= refused.status < 500
            assert refused.content["name"] == text
            for each in (found, refused):
                assert each.headers["content-type"] == "application/json"
            page = server.ask("GET", "/")
            assert "script-src 'self' 'sha256-" in page.headers["content-security-policy"]
            assert page.headers["x-content-type-options"] == "nosniff"
        return "answered"

    return carry_out


def attacks() -> Iterator[Attack]:
    """What the page draws, and what the service tells it."""
    for name, text in (_MARKUP | _ACTING).items():
        yield Attack("drawn by the page", name, _drawn(text), "answered")
    for name, text in _MARKUP.items():
        yield Attack("told by the service", name, _told(text), "answered")
