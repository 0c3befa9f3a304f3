"""Items in the units of a query's start (LAWS 4.3)."""
