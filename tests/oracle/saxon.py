"""SaxonC-HE as the judge: a query and its finite inputs in, the content of the answer out, as canonical XML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lxml import etree
from saxonche import PySaxonProcessor

from anabranch.language import ast
from oracle.translate import translate


@cache
def _processor() -> PySaxonProcessor:
    """One for all tests. It must not optimise: moving an expression out of its `try` would change who fails."""
    processor = PySaxonProcessor(license=False)
    processor.set_configuration_property("http://saxon.sf.net/feature/optimizationLevel", "0")
    processor.set_configuration_property("http://saxon.sf.net/feature/eagerEvaluation", "true")
    return processor


def judge(query: ast.Query, inputs: Mapping[str, str], times: Mapping[str, str] | None = None) -> str:
    """The canonical answer of `query`, translated, over documents given as texts; nothing is read from outside."""
    saxon = _processor().new_xquery_processor()
    for name, text in inputs.items():
        document = _processor().parse_xml(xml_text=text)
        saxon.set_parameter(f"input.{name}", document)
        if len(inputs) == 1:
            saxon.set_context(xdm_item=document)
    saxon.set_query_content(translate(query, inputs, times))
    return canonical(saxon.run_query_to_string(), wrapped=True)


def canonical(content: str, wrapped: bool = False) -> str:
    """Content as canonical XML, inside an `answer` element that makes it a document."""
    text = content if wrapped else f"<answer>{content}</answer>"
    return str(etree.tostring(etree.fromstring(text.encode()), method="c14n").decode())
