"""The answer log: segments that tasks write and readers read."""
