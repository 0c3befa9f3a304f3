"""The plan of an epoch: streams, subscriptions, and the branches that answer them."""
