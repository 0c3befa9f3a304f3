"""The laws, executable: what a query answers over finite inputs; obviously right, never fast.

`evaluate(query, {"photons": text_input("<photons>...</photons>", time="det_time")}).text` is the answer as XML content;
`stream_input` and `document_input` make inputs of what was read from files.
"""

from anabranch.law.answer import Answer, evaluate
from anabranch.law.inputs import Input, document_input, stream_input, text_input

__all__ = ["Answer", "Input", "document_input", "evaluate", "stream_input", "text_input"]
