"""Queries over one stream of updates that share its history, and what each entry of it gives."""
