"""Spools: what is pushed into streams, durable from the moment at which it is accepted until it is read."""
