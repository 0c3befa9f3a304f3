"""Plans of operators as branches."""
