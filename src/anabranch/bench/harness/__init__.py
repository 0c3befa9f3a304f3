"""How benches run queries, here and on plain Spark, and how they time them."""
