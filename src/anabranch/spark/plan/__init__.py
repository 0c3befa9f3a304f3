"""What an epoch runs with: streams, subscriptions, and who answers what."""
