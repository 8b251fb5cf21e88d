"""Writes src/bulla_kms/_client.py from _async_client.py: python generate.py"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "src/bulla_kms"
HEAD = "# Code generated from _async_client.py by generate.py. DO NOT EDIT.\n\n"
WORDS = [
    ("The client for asyncio.", "The client for programs without asyncio."),
    ("import asyncio\nimport time\n", "import threading\nimport time\n"),
    ("import AsyncIterator, Callable, Iterable, Mapping, Sequence\n", "import Callable, Iterable, Iterator, Mapping, Sequence\n"),
    ("AsyncIterator", "Iterator"),
    ("AsyncHTTPTransport", "HTTPTransport"),
    ("AsyncClient", "Client"),
    (", for asyncio", ""),
    ("by many tasks at once", "by many threads at once"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclose", "close"),
    ("asyncio.sleep", "time.sleep"),
    ("asyncio.Lock", "threading.Lock"),
    ("async with", "with"),
    ("async def", "def"),
    ("await ", ""),
]


def client(source: str) -> str:
    """The client without asyncio."""
    for old, new in WORDS:
        source = source.replace(old, new)
    return HEAD + source


if __name__ == "__main__":
    (FOLDER / "_client.py").write_text(client((FOLDER / "_async_client.py").read_text()))
