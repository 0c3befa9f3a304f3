"""A network of peers at work: every super-peer is a trunk, every link a durable log between two of them.

What flows where is planned elsewhere (`network/`); here it is done (`running.py`, `team.py`).
What a peer runs follows from the catalogue (`programs.py`): its subscriptions ask their own queries of the flows that
reach it, and each flow that it sends is a subscription of its trunk, whose answer is the flow's abstract query.
After each epoch the peer adds what the flows have gained to their links (`sending.py`, `links.py`), exactly once,
whatever is killed when.

Every reader of a flow applies all of its own query, so a flow may always carry more than it has to, and that is what
keeps answers exact (LAWS 3.7).
Items that nobody selected travel along where a stream has come far by them (`spark/evolution/progress.py`), and an
epoch with anything out of the ordinary in it travels whole (`sending.py`): late items, accents, updates, failures.

A network that goes on is one of streaming queries, and what they commit is sent on at once (`running.py`);
what comes to an end is run by hand, round after round (`peer.py`).
Plans change between epochs, when everything that has been sent has been read; so a subscription begins at one place of
each of its streams, wherever it is answered.
"""
