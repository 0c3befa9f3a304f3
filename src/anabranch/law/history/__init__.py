"""The law of update streams: a document with all its versions, and what a query answers over it (history, 5; LAWS 5).

`document.py` keeps a stream with all versions of its regions (`chains.py`), and `admission.py` says which elements it
takes, and which ids are known.
`view.py` is the document at one moment as nodes with lives, `versions.py` says what a qualifier gives, `evaluate.py`
answers queries over that, and `timeline.py` does so after every moment.
"""
