"""The checkpoint: all durable state of a trunk, and how it is recovered."""
