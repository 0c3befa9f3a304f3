"""The algebra: operators over streams that evolve, one file each, and the one machinery by which they react to accents.

* Operators, each with its law, its signature, and what the signature does not cover: `select`, `quantify`,
  `order`, `project`, `construct`, `union`, `intersect`, `join`, `windowed`, `grouped`.
  What windows and aggregates are made of, for whoever answers them, is in `window`, `sliding`, `aggregate`, `numbers`.
* How all of them work, element by element, in canonical values: `operator`; `readings` are their items, `changes` what
  flows beside these.
* How all of them react to accents, from their `signature` alone: `reaction`, which holds what the inputs have become
  (`origins`) against what the output has become (`outgoing`, `apart`); `renaming` for operators that give their items
  another form.
* What that reckons with: `course` (the accents of a stream, back and forward), `tiling` and `filed` (what holds for
  which items), `untouched` (why nothing can come out yet).
* Plans: `builder` writes them, `interpret` runs them, `judged` sets aside what is not valid.

Accents themselves, as sets and states without any operator, are in `accents`; streams of updates, and answers that are
corrected when the past is edited, are in `history`.
"""
