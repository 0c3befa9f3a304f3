"""The accents of a stream: found, logged, and passed to subscriptions (LAWS 4.5, 3.6)."""
