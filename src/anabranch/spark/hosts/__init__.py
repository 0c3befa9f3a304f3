"""Where the jobs of a trunk run, and what triggers its epochs: Spark, or this process."""
