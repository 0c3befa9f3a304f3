"""What a query reads of its windows: aggregates, groups and session keys, for which no item need be held."""
