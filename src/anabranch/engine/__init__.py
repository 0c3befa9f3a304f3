"""Streams and subscriptions: `finite` answers queries over inputs that have an end, `live` is the Python API.

`live` loads Spark and is therefore not loaded here: whoever only wants the reference need not have Java.
"""

from anabranch.engine.finite import FiniteRun, answering
from anabranch.engine.preparing import EngineName, Inputs, Prepared, prepare, refuse_endless

__all__ = ["EngineName", "FiniteRun", "Inputs", "Prepared", "answering", "prepare", "refuse_endless"]
