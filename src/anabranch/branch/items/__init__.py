"""Queries of one item at a time whose answers have an order to keep."""
