"""Windows that are closed from the partial aggregates of panes."""
