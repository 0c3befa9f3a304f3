"""How bytes come in: which files a stream has, in which order, and how far an epoch goes."""
