"""How operators react to accents, from their signatures alone (accents 6)."""
