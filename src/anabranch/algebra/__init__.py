"""The algebra: operators over streams that evolve, one file each, and their common reaction to accents.

* `operators/`: each operator with its law, its signature, and what the signature does not cover; `operator` is how they
work, element by element, in canonical values.
* `reactions/`: how all of them react to accents, from their `signature` alone: `reaction` compares what the inputs have
become (`origins`) with what the output has become; `course` is the accents of a stream, back and forward, `tiling` what
holds for which items, `readings` are items with their units.
* `accents/`: accents as sets and states, without any operator.
* `display/`: answers that are corrected when the past is edited.
* `plans/`: `builder` writes plans, `written` turns them into text and back, `interpret` runs them.
* `window` and `sliding`: the arithmetic of windows, for all engines.
"""
