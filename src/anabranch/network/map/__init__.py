"""A plan of the network in words and as a picture."""
