"""Values and sequences of queries: numbers, texts, times, objects, and their operations (LAWS section 2)."""
