"""How benches run and time things."""
