"""Reports for people: explanations, tables, reactions to accents, warnings."""
