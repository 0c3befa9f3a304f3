"""Windows and tuples that travel between trunks: who makes them, who makes others of them, and who reads them."""
