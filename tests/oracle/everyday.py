"""Random queries of everyday XQuery over items: operators, types, computed constructors, axes, functions as values.

Axes that leave the item are not generated: over documents they go on where LAWS 2.8 ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oracle.generate import Writer

WORDS = ('"x"', '"abc"', "'5'", '"1.3"', '""', '"Wiley"')
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
TYPES = ("element()", "element(n)*", "node()+", "item()?", "attribute()", "text()", "xs:string", "empty-sequence()")
PATTERNS = ("'^[0-9.]+$'", "'a|x'", "'\\p{L}+'", "'[a-z-[b]]'", "'W.*Y', 'i'")
AROUND = (
    *("a/following-sibling::*[1]", "n/preceding-sibling::*", "n/preceding-sibling::*[1]", "c/a/ancestor::c/@k"),
    *(
        "c/*/ancestor::i/@id",
        "c/following-sibling::node()",
        "s/ancestor-or-self::s",
    ),
)


def everyday(write: Writer, base: str) -> str:
    """What stands between the braces of a constructor."""
    path, single, text = write.path(base, "item"), write.single(base, "item"), write.text(base, "item")
    number, word = write.number(base, "item"), write.one(*WORDS)
    return write.one(
        f"{single} {write.one(*COMPARISONS)} {word}",
        f"{number} {write.one(*COMPARISONS)} {number}",
        f"{write.single(base, 'item')} {write.one(*COMPARISONS)} {single}",
        f"({single} || {text} || {number})",
        f"{path} ! string()",
        f"({path}) ! concat(position(), '/', last(), .)",
        f"{base}/{write.one('(a | n)', '(n, a)', '(a | c/a)/text()', '(c | .)/n', '(n | n)')}",
        f"{base}/{write.one('* except', 'a intersect', '* intersect')} {base}/{write.one('a', 'n', '*')}",
        f"{base}/{write.one(*AROUND)}",
        f"{base}/{write.one('a', 'n', 'c', '*')}/{write.one('string()', 'name()', 'string-length()', 'count(*)')}",
        f"switch ({single}) case {word} case '5' return 'y' case () return 'none' default return {text}",
        f"try {{ {number} }} catch * {{ 'failed' }}",
        f"try {{ xs:integer({single}) }} catch err:FORG0001 {{ 'text' }} catch err:* {{ 'others' }}",
        f"{path} instance of {write.one(*TYPES)}",
        f"typeswitch ({path}) case element(n) return 'n' case $v as element()+ return count($v) default return 'other'",
        f"element {{ concat('e', string-length(string({single}))) }} {{ {path} }}",
        f"(attribute k {{ {path} }}, text {{ {path} }}, comment {{ string-length(string({single})) }})",
        f"for $e allowing empty at $i in {path} return <e i='{{ $i }}'>{{ string($e) }}</e>",
        f"for $e in {path} order by $e/{write.one('n', 'a', '@k', '.. descending')} empty greatest return $e",
        f"for $e in {path} order by string($e) count $i where $i > 1 return $e",
        f"for-each({path}, function($e) {{ string-length($e) }})",
        f"filter({path}, function($e) {{ {write.condition('$e', 'leaf', 0)} }})",
        f"fold-left({path}, '', function($all, $e) {{ concat($all, '|', $e) }})",
        f"let $f := function($v as item()*) as xs:integer {{ count($v) }} return $f({path}) + $f(())",
        f"(count({path}) idiv {write.one('2', '3', '0')}, 1 to count({path}))",
        f"({single} idiv {write.one('2', '0.5', '7')})",
        f"sort({path} ! string-length())",
        f"matches({single}, {write.one(*PATTERNS)})",
        f"replace({single}, '[0-9]', '<$0>')",
        f"tokenize({single}, '\\.'), tokenize({single})",
        f"({base}/a[1] << {base}/n[1], {base}/t is {base}/*[last()])",
        f"(zero-or-one({path}), exactly-one({single}))",
        f"(index-of({path}, {word}), deep-equal({path}, {path}), compare({single}, {word}))",
        f"(insert-before({path}, 2, 'new'), remove({path}, 1))",
    )


def everyday_query(write: Writer) -> str:
    """Such things for each item."""
    source = f'stream("s")/r/i{write.chosen()}'
    parts = "".join(f"<o>{{ {everyday(write, '$x')} }}</o>" for _ in range(write.random.randint(1, 3)))
    body = write.one(
        f"for $x in {source} return ({parts.replace('</o><o>', '</o>, <o>')})",
        f"for $x as element() in {source} where {write.single('$x', 'item')} {write.one(*COMPARISONS)} "
        f"{write.one(*WORDS)} return <p>{parts}</p>",
        f"{source}/{write.one('string()', '(a | n)', 'c/name()', 'count(*)', '(n ! string())')}",
        f"declare variable $w := {write.one(*WORDS)}; for $x in {source} return <o>{{ $x/a[. eq $w] }}{parts}</o>",
    )
    return body
