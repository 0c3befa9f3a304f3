"""How streams evolve, for clients: the schema over time as lanes, accents and what was done about them, new accents."""
