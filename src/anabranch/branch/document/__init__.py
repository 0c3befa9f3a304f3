"""Documents that are edited: their entries, and their state in layers."""
