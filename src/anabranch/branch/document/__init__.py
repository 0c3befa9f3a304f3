"""Documents that are edited: their entries, and the state in layers that an epoch leaves."""
