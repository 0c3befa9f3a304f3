"""SQL as a second spelling of queries (LAWS 8): its text to the tree that query text is read into."""

from anabranch.sql.interpreted import prefer_interpreted
from anabranch.sql.reading import LANGUAGES, Language, in_xquery, language_of_file, read_query

__all__ = ["LANGUAGES", "Language", "in_xquery", "language_of_file", "read_query"]

prefer_interpreted()
