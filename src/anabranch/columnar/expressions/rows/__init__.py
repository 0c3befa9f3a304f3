"""What is computed of many rows at once: functions of sequences, their orders, and comparisons."""
