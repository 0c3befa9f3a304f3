"""The engine on Spark, by the life of an epoch; only this package imports pyspark."""
