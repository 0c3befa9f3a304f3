"""A network of peers at work: every super-peer is a trunk, every link a durable log between two of them.

The flows are planned elsewhere (`network/`); here they are run (`running.py`, `team.py`).
The program of a peer follows from the catalogue (`programs.py`): its subscriptions run their own queries over the flows
that reach it, and each flow that it sends is a subscription of its trunk, with the flow's abstract query.
After each epoch the peer appends the new results of flows to their links (`sending.py`, `links.py`), exactly once, also
after a kill.

Every reader of a flow applies its whole query, so a flow may always carry more than it has to, and that keeps answers
exact (LAWS 3.7).
Items that no query selected are sent where they show the progress of a stream (`spark/evolution/progress.py`), and an
epoch with anything unusual in it is sent completely (`sending.py`): late items, accents, updates, failures.

An endless network consists of streaming queries, whose commits are sent on at once (`running.py`); a finite one is
driven in rounds (`peer.py`).
Plans change between epochs, when everything that was sent has been read; so a subscription begins at one place of each
of its streams, wherever it is answered.
"""
