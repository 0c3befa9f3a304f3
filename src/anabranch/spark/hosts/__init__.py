"""Where the jobs of a trunk run, and who lets its epochs come: Spark, or this process."""
