"""The rounds of a `for` over streams: an item, a window or a tuple of a join at a time (LAWS 3)."""
