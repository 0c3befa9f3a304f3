"""Standing queries as production runs them: taken apart once, then answered unit by unit by the law."""
