"""The network: peers that share streams on the way (sharing paper, sections 1 and 4 to 6).

Super-peers are joined by links (`topology.py`); thin peers register streams and subscriptions at them, and all of it is
written down in a NETWORK.toml (`description.py`).
What flows where is in the catalogue (`catalogue.py`): each flow has a property tree or forest, goes over one link, and
is made from another flow, so all flows of a stream form a tree whose root is the stream itself.
The planner (`planner.py`) finds for a new subscription (`needs.py`) the flow from which it costs least (`options.py`),
by what a sample of each stream says (`estimates.py`); it gives the steps to the next catalogue, and why
(`explanation.py`).
What each peer does is a query, or windows made and combined (`operators.py`).
`picture.py` draws the map.
"""
