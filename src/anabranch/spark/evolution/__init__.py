"""The accents of a stream: found, logged, and shown to subscriptions (LAWS 4.5, 3.6)."""
