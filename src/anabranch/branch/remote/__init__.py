"""Windows and tuples that are sent between trunks: made, combined and read."""
