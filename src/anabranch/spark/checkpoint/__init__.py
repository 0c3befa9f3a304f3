"""The checkpoint: all that a trunk must not forget, durable, and how it is recovered."""
