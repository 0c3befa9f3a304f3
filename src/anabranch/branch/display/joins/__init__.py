"""Which entries of two streams can meet in a join: by equal keys, or by numbers in a range."""
