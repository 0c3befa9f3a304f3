"""Answers for clients: results by position, in pages and as events; displays and their past; what was set aside."""
