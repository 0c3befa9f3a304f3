"""Objects and arrays as values: what they are, what is found in them, and how they are written as JSON."""
