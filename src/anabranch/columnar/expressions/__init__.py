"""Computing with columns: the compiled loops over the numbers and texts of many items at once."""
