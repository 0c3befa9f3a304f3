"""What can be said of a query before any data is seen."""
