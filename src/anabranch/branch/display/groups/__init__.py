"""Groups, different values and places in a display, each kept up to date as entries come, change and go."""
