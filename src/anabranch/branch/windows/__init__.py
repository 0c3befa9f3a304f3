"""Windows that hold their items."""
