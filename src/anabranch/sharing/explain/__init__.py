"""What sharing makes of queries, shown: as text, as data and as a picture."""
