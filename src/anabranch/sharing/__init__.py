"""What queries can have in common, and how one stream is made to serve several."""
