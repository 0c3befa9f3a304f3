"""Standing queries as production runs them: analysed once, then answered unit by unit by the law."""
