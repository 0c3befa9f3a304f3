"""Windows counted in columns, pane by pane, where the items are read."""
