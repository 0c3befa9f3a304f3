"""What an engine tells people: explanations, tables, reactions to accents, warnings."""
