"""Answers that are corrected when documents are edited (history paper, section 9).

`ordered` is a sequence that is edited anywhere and knows sums; on it is `display`, an answer as text with its edits;
`publishing` writes these as an update stream, and `replay` reads such a stream back.

The history paper's own pipeline, with its universal wrapper, is a model in the tests (`tests/models/pipeline/`).
"""
