"""History: update streams, one event at a time, and answers that are corrected when the past is edited.

* What flows: `events`, and `tokens`, which lead from the wire format to them and back; `qualifier` says which versions
  of a region are meant.
* What is kept: `ordered`, a sequence with sums; on it `bodies` and `regions`, content in regions and what it comes to;
  `keeping` makes plain data of them.
* Stages, each an update stream in and one out, in the universal `wrapper`: `transformer` and `steps` (which are inert),
  `temporal` (qualifiers), `combining` (virtual streams), `results` and on it `totals` (aggregates) and `sorting` (where
  and order by).
* The end of a pipeline: `display`, a text that is edited in place, fed with events by `showing`, told on the wire by
  `publishing`.
"""
