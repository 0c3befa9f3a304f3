"""What a query sees of its windows: aggregates, groups and sessions of which no item need be held."""
