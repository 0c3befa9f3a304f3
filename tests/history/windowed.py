"""Random streams of updates with nodes that move between windows, and random queries over their windows."""

from __future__ import annotations

from random import Random

WINDOWS = (
    *("t diff 10", "t diff 10 step 5", "t diff 4 step 7", "t diff 2.5", "t diff 3 step 0.5"),
    *("count 2", "count 3 step 1", "count 1", "count 2 step 3"),
    *("t gap 3", "t gap 5 by k", "t gap 0.5", "t gap 20 by k"),
)
AGGREGATES = ("count($w)", "sum($w/v)", "avg($w/v)", "min($w/v)", "max($w/v)", "median($w/v)", "count($w/v[. > 3])")
RESULTS = (
    "<w>{ $w/v }</w>",
    "<w>{ $w[last()]/v, count($w) }</w>",
    "for $o in $w where $o/v > 2 return <o>{ $o/v }</o>",
    "for $o in $w group by $k := $o/k return <g k='{ $k }'>{ count($o), sum($o/v) }</g>",
    "for $o in $w where $o/v > 5 group by $k := $o/k return <g>{ count($o) }</g>",
    "for $o in $w where $o/v > 1 group by $k := $o/k let $n := sum($o/v) order by $n descending return <g>{ $n }</g>",
    "for $o in $w group by $k := $o/k return <g k='{ $k }'>{ $o/v }</g>",
    "for $o in $w group by $k := $o/k > 'b' return <g k='{ $k }'>{ max($o/v) }</g>",
)


class WindowWriter:
    """Writes one random stream, and queries about it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._ids = 0
        self._places: dict[str, str] = {}
        """The regions that may be edited, each with what it holds."""

    def query(self) -> str:
        """A loop over windows."""
        random = self._random
        window = random.choice(WINDOWS)
        path = random.choice(("i", "i", "i[v > 0]", "i/p", "i[k = 'a']", "*"))
        if random.random() < 0.5:
            chosen = random.sample(AGGREGATES, random.randint(1, 3))
            bounds = ["window-start($w)"] if not window.startswith("count") and random.random() < 0.3 else []
            result = f"<w>{{ {', '.join((*bounds, *chosen))} }}</w>"
        else:
            result = random.choice(RESULTS)
        where = random.choice(("", "", "", "where count($w) > 1 ", "let $n := count($w) where $n < 3 "))
        order = "" if "group by" in result else random.choice(("", "", "order by count($w) descending "))
        loop = f'for $w in stream("s")/root/{path}|{window}| {where}{order}return {result}'
        match random.randint(0, 9):
            case 0:
                return f"<all>{{ {loop} }}{{ count(stream('s')/root/i) }}</all>"
            case 1:
                return f"sum(for $x in ({loop}) return 1)"
            case 2:
                return f"let $x := 1 return ({loop})"
            case _:
                return loop

    def stream(self, length: int) -> str:
        """Items, some of them in regions or with regions inside, and updates of these."""
        return "".join(self._element() for _ in range(length))

    def _element(self) -> str:
        if not self._places or self._random.random() < 0.4:
            content = self._items()
            return self._region(content, "items") if self._random.random() < 0.5 else content
        target = self._random.choice(list(self._places))
        kind = self._places[target]
        match self._random.randint(0, 9):
            case 0 | 1 if kind == "items":
                self._ids += 1
                self._places[f"r{self._ids}"] = "items"
                where = self._random.choice(("before", "after"))
                return f'<s:{where} target="{target}" id="r{self._ids}">{self._items()}</s:{where}>'
            case 2:
                return f'<s:replace target="{target}"/>'
            case _:
                return f'<s:replace target="{target}">{self._content(kind)}</s:replace>'

    def _items(self) -> str:
        return "".join(self._item() for _ in range(self._random.choice((1, 1, 1, 2, 3))))

    def _item(self) -> str:
        leaves = "".join(self._leaf(name) for name in "tkv")
        parts = "".join(
            f"<p>{''.join(self._leaf(name) for name in 'tkv')}</p>" for _ in range(self._random.choice((0, 0, 1, 2)))
        )
        return f"<i>{leaves}{parts}</i>"

    def _leaf(self, name: str) -> str:
        content = self._content(name)
        return self._region(content, name) if self._random.random() < 0.3 else content

    def _region(self, content: str, kind: str) -> str:
        self._ids += 1
        self._places[f"r{self._ids}"] = kind
        return f'<s:mutable id="r{self._ids}">{content}</s:mutable>'

    def _content(self, kind: str) -> str:
        random = self._random
        match kind:
            case "items":
                return self._items()
            case "t":
                return f"<t>{random.choice((*range(25), 1.5, 7.25, 'x' if random.random() < 0.3 else 3))}</t>"
            case "k":
                return random.choice(("<k>a</k>", "<k>b</k>", "<k>c</k>", "", "<k>a</k><k>b</k>"))
            case _:
                return f"<v>{random.choice((*range(8), 2.5, 'none' if random.random() < 0.4 else 4))}</v>"
