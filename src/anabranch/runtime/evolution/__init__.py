"""Evolution under query text: items in the units of a query's start, and answers in those of their place (LAWS 4)."""
