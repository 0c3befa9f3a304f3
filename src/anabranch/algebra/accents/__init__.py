"""Accents as mathematics: the sets of items they describe, and how they change a stream.

* `sets`: descriptions as sets of items, exact and two-valued, and as descriptions again; rewritten when a path evolves.
* `boxes`: sets divided into disjoint conjunctions, combined, compared; hidden paths quantified away.
  `index` finds the boxes that may overlap.
* `items`: values at the paths of an item.
* `evolution`: one partition as accents are applied: who may carry which path, and in which unit; `layers` are the
changes of one path.
* `events`: what elements announce about the items behind them, and which elements are bad.

Canonical streams, the oracle of the tests, are in `tests/models/`.
Nothing here knows operators; how they react to accents is in `algebra/reactions/`.
"""
