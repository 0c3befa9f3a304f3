"""History: update streams, one event at a time, and answers that are corrected when the past is edited.

* What flows: `events`, and `tokens`, which lead from the wire format to them and back; `qualifier` says which versions
  of a region are meant.
* What is kept: `ordered`, a sequence with sums; on it `bodies` and `regions`, content in regions and what it comes to;
  `keeping` makes plain data of them.
* The end of a pipeline: `display`, a text that is edited in place, fed with events by `showing`, a stage in the
  universal `wrapper`, and told on the wire by `publishing`.

The other stages of the history paper's pipeline are a model in the tests (`models/pipeline/`); what runs is
`branch/display/`.
"""
