"""BLAKE3, BLAKE2, Bao and Ed25519, with a kernel for the vector instructions of each CPU.

>>> import bulla_hash
>>> bulla_hash.blake3(b"abc").hexdigest()
'6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85'

`blake3` has the interface of the class in the package `blake3`. `blake2b` and `blake2s` have those of hashlib.
"""

from . import bao, ed25519
from ._native import __version__, blake2b, blake2bp, blake2s, blake2sp, blake3, hash_many, kernel

__all__ = [
    "__version__",
    "bao",
    "blake2b",
    "blake2bp",
    "blake2s",
    "blake2sp",
    "blake3",
    "ed25519",
    "hash_many",
    "kernel",
]
