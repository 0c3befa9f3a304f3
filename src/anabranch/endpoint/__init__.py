"""The HTTP endpoint of a run: programs push items into its streams."""
