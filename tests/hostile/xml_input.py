"""XML: items that are too deep, wide or long, ill-formed, or in another encoding."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.attacks import Attack, Outcome
from hostile.streams import among_lines

_CONTROL = b'xmlns:s="urn:anabranch:stream"'
SET_ASIDE = {
    "depth 101": b"<i>" + b"<d>" * 100 + b"</d>" * 100 + b"</i>",
    "depth 10,000": b"<i>" + b"<d>" * 10_000 + b"</d>" * 10_000 + b"</i>",
    "depth 500,000, never closed": b"<i>" + b"<d>" * 500_000,
    "only closing tags": b"</d>" * 200_000,
    "200,000 children": b"<i>" + b"<c/>" * 200_000 + b"</i>",
    "200,000 texts": b"<i>" + b"x<c/>" * 100_000 + b"</i>",
    "200,000 comments": b"<i>" + b"<!---->" * 200_000 + b"</i>",
    "200,000 instructions": b"<i>" + b"<?p?>" * 200_000 + b"</i>",
    "257 attributes": b"<i " + b" ".join(b'a%d="1"' % n for n in range(257)) + b"/>",
    "100,000 attributes": b"<i " + b" ".join(b'a%d="1"' % n for n in range(100_000)) + b"/>",
    "300 namespaces": b"<i " + b" ".join(b'xmlns:n%d="u%d"' % (n, n) for n in range(300)) + b"/>",
    "a name of 1,001 characters": b"<i><" + b"n" * 1_001 + b"/></i>",
    "a name of a megabyte": b"<i><" + b"n" * 1_000_000 + b"/></i>",
    "an attribute's name of a megabyte": b"<i " + b"n" * 1_000_000 + b'="1"/>',
    "a namespace of a megabyte": b'<i xmlns="' + b"n" * 1_000_000 + b'"/>',
    "a text of five megabytes": b"<i>" + b"x" * 5_000_000 + b"</i>",
    "an attribute of five megabytes": b'<i a="' + b"x" * 5_000_000 + b'"/>',
    "a comment of five megabytes": b"<i><!--" + b"x" * 5_000_000 + b"--></i>",
    "a comment that never ends": b"<i><!--" + b"x" * 100_000,
    "a CDATA section that never ends": b"<i><![CDATA[" + b"x" * 100_000,
    "an instruction that never ends": b"<i><?p " + b"x" * 100_000,
    "a tag that never ends": b"<i " + b"x" * 100_000,
    "an attribute that never ends": b'<i a="' + b"x" * 100_000,
    "a billion laughs in an item": b"<!DOCTYPE i [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><i>&b;</i>",
    "a DOCTYPE in an item": b"<!DOCTYPE i><i><a>1</a></i>",
    "an external DTD": b'<!DOCTYPE i SYSTEM "http://127.0.0.1:9/x.dtd"><i/>',
    "an undefined entity": b"<i>&laugh;</i>",
    "an entity of HTML": b"<i>&nbsp;</i>",
    "an entity without an end": b"<i>&amp</i>",
    "a lone ampersand": b"<i>a & b</i>",
    "a reference to no character": b"<i>&#0;</i>",
    "a reference to a control character": b"<i>&#7;</i>",
    "a reference to half a character": b"<i>&#xD800;</i>",
    "a reference beyond Unicode": b"<i>&#x110000;</i>",
    "a reference of a million digits": b"<i>&#" + b"9" * 1_000_000 + b";</i>",
    "a NUL": b"<i>\x00</i>",
    "a control character": b"<i>\x07</i>",
    "a NUL in a name": b"<i\x00/>",
    "no character U+FFFE": b"<i>\xef\xbf\xbe</i>",
    "overlong UTF-8": b"<i>\xc0\xbc</i>",
    "overlong UTF-8 of three bytes": b"<i>\xe0\x80\xbc</i>",
    "half a character in UTF-8": b"<i>\xed\xa0\x80</i>",
    "UTF-8 cut off": b"<i>\xe2\x82</i>",
    "a byte that is no UTF-8": b"<i>\xff</i>",
    "Latin-1": b"<i>\xe9</i>",
    "UTF-16 without a mark": "<i/>".encode("utf-16-le"),
    "UTF-16 with a mark": "<i/>".encode("utf-16"),
    "UTF-32": "<i/>".encode("utf-32"),
    "EBCDIC": "<i/>".encode("cp037"),
    "UTF-7": b"+ADw-i/+AD4-",
    "tags that cross": b"<i><a><b></a></b></i>",
    "a closing tag of another name": b"<i></j>",
    "a tag that is never closed": b"<i><a>",
    "two closing tags": b"<i></i></i>",
    "an attribute twice": b'<i a="1" a="2"/>',
    "an attribute twice by its namespace": b'<i xmlns:p="u" xmlns:q="u" p:a="1" q:a="2"/>',
    "an attribute without a value": b"<i a/>",
    "an attribute without quotes": b"<i a=1/>",
    "an attribute with a tag": b'<i a="<b/>"/>',
    "attributes without a blank": b'<i a="1"b="2"/>',
    "an end tag with an attribute": b'<i></i a="1">',
    "a name that begins with a digit": b"<i><1/></i>",
    "a name that begins with a colon": b"<i><:a/></i>",
    "a name with two colons": b'<i xmlns:a="u"><a:b:c/></i>',
    "a prefix that is not declared": b"<i><p:a/></i>",
    "a prefix that is undeclared": b'<i xmlns:p=""/>',
    "the prefix xml for another namespace": b'<i xmlns:xml="u"/>',
    "the prefix xmlns": b'<i xmlns:xmlns="u"/>',
    "the namespace of xmlns": b'<i xmlns:p="http://www.w3.org/2000/xmlns/"/>',
    "a comment with two hyphens": b"<i><!-- a -- b --></i>",
    "an instruction called xml": b"<i><?xml a?></i>",
    "an end of CDATA in text": b"<i>]]></i>",
    "a CDATA section outside": b"<![CDATA[x]]>",
    "text outside": b"hello",
    "markup cut off": b"<",
    "markup of no kind": b"<!i>",
    "a conditional section": b"<i><![INCLUDE[x]]></i>",
    "an accent that is none": b"<s:accent " + _CONTROL + b"><s:explode/></s:accent>",
    "an accent over a path of a megabyte": b"<s:accent "
    + _CONTROL
    + b'><s:drop path="'
    + b"a/" * 500_000
    + b'a"/></s:accent>',
    "an accent with a condition of a megabyte": b"<s:accent "
    + _CONTROL
    + b' where="'
    + b"b = 1 or " * 100_000
    + b'b = 2"><s:add path="z"/></s:accent>',
    "an accent with conditions 60 deep": b"<s:accent "
    + _CONTROL
    + b' where="'
    + b"(" * 60
    + b"b = 1"
    + b")" * 60
    + b'"><s:add path="z"/></s:accent>',
    "an unknown control element": b"<s:shutdown " + _CONTROL + b"/>",
    "an update in a stream that is not edited": b"<s:replace " + _CONTROL + b' target="1" at="1"><a/></s:replace>',
    "a control element within an item": b"<i><s:accent " + _CONTROL + b"/></i>",
}
ANSWERED = {
    "version 9.9": b'<?xml version="9.9"?><i/>',
    "a declaration of another encoding": b'<?xml version="1.0" encoding="utf-16"?><i/>',
    "a declaration within a stream": b'<?xml version="1.0"?><i/>',
    "depth 99": b"<i>" + b"<d>" * 98 + b"</d>" * 98 + b"</i>",
    "50,000 children": b"<i>" + b"<c/>" * 50_000 + b"</i>",
    "200 attributes": b"<i " + b" ".join(b'a%d="1"' % n for n in range(200)) + b"/>",
    "300,000 references": b"<i>" + b"&amp;" * 300_000 + b"</i>",
    "100,000 numeric references": b"<i>" + b"&#x1F600;" * 100_000 + b"</i>",
    "a text of three megabytes": b"<i>" + b"x" * 3_000_000 + b"</i>",
    "CDATA sections one behind the other": b"<i>" + b"<![CDATA[x]]>" * 40_000 + b"</i>",
    "a CDATA section with an entity": b"<i><![CDATA[&laugh;]]></i>",
    "a command in text": b"<i>$(reboot) `reboot` %s %n {0.__class__}</i>",
    "a path in text": b"<i>../../../../etc/passwd</i>",
    "a script in text": b"<i>&lt;script>alert(1)&lt;/script></i>",
    "XInclude, which is only an element": b'<i xmlns:x="http://www.w3.org/2001/XInclude">'
    b'<x:include href="/etc/passwd"/></i>',
    "a style sheet, which is only an instruction": b'<i><?xml-stylesheet href="http://127.0.0.1:9/"?></i>',
    "a schema's location, which is only an attribute": b'<i xmlns:x="http://www.w3.org/2001/XMLSchema-instance" '
    b'x:schemaLocation="u http://127.0.0.1:9/"/>',
    "a byte order mark in text": b"<i>\xef\xbb\xbf</i>",
    "characters that turn the writing round": "<i>\u202egood\u202c</i>".encode(),
    "blanks without end": b"<i" + b" " * 1_000_000 + b"/>",
    "an empty line": b"",
}
MULTIPLIED = " and ".join(f"(b{n} = 1 or c{n} = 2)" for n in range(300))[:9_990].rpartition(" and ")[0]
"""A condition that would have more than 10^90 parts if it were multiplied out."""
SET_ASIDE["an accent whose condition multiplies out"] = (
    b"<s:accent " + _CONTROL + b' where="' + MULTIPLIED.encode() + b'"><s:add path="q"/></s:accent>'
)
DOUBTFUL = {
    "an accent with a number that is none": b"<s:accent " + _CONTROL + b'><s:alter path="z" by=". * x"/></s:accent>',
    "an accent with code": b"<s:accent " + _CONTROL + b'><s:alter path="z" by="__import__(1)"/></s:accent>',
}
"""Behind these a path is in doubt, and who reads it ends (LAWS 4.5)."""
NUMBERS = {
    "a number of a million digits": b"<i><a>" + b"9" * 1_000_000 + b"</a></i>",
    "a number with a million decimals": b"<i><a>0." + b"3" * 1_000_000 + b"</a></i>",
    "1e999999999": b"<i><a>1e999999999</a></i>",
    "1e-999999999": b"<i><a>1e-999999999</a></i>",
    "INF": b"<i><a>INF</a></i>",
    "NaN": b"<i><a>NaN</a></i>",
    "minus zero": b"<i><a>-0.0</a></i>",
    "two million blanks around a number": b"<i><a>" + b" " * 1_000_000 + b"1" + b" " * 1_000_000 + b"</a></i>",
}


def attacks() -> Iterator[Attack]:
    """Items of XML among good ones."""
    groups: tuple[tuple[dict[str, bytes], Outcome], ...] = ((SET_ASIDE, "set aside"), (ANSWERED, "answered"))
    for found, expected in groups:
        for name, data in found.items():
            yield Attack("an item of XML", name, among_lines(data), expected)
    for name, data in DOUBTFUL.items():
        yield Attack("an item of XML", name, among_lines(data, asked=("numbers",)), "set aside")
    for name, data in NUMBERS.items():
        yield Attack("a number in XML", name, among_lines(data), "answered")
