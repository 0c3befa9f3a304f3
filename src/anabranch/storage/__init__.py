"""Where durable state and the files of users are: on a disk, or in an object store.

`interface.py` says what a storage can do, `location.py` names an object in one.
"""

from anabranch.storage.interface import Stat, Storage, Writer
from anabranch.storage.location import Location, Where, resolved

__all__ = ["Location", "Stat", "Storage", "Where", "Writer", "resolved"]
