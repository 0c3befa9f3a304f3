"""Windows that travel between trunks: made of items, put together from smaller ones, and read by a query."""
