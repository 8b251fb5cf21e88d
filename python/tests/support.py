"""What several tests use."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

VECTORS = Path(os.environ.get("BULLA_VECTORS", Path(__file__).parents[2] / "spec/vectors"))


@cache
def vectors(name: str) -> Any:
    """The test vectors that all languages share."""
    return json.loads((VECTORS / f"{name}.json").read_text())


def pattern(length: int) -> bytes:
    """The input of the vectors: bytes from 0 to 250, again and again."""
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def error_of(call: Any, *args: Any, **named: Any) -> type[BaseException] | None:
    """The class of the exception that a call raises."""
    try:
        call(*args, **named)
    except Exception as error:
        return type(error)
    return None
