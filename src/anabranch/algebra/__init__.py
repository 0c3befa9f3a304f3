"""One file per operator: its law, and its faces towards items, accents, updates and property trees."""
