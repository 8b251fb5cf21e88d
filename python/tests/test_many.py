"""`hash_many` and `kernel`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import blake3 as official
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import error_of, pattern

import bulla_hash


@given(lengths=st.lists(st.integers(0, 10_000), max_size=100), key=st.none() | st.binary(min_size=32, max_size=32))
def test_many_digests_are_those_of_each(lengths: list[int], key: bytes | None) -> None:
    inputs = [pattern(length) for length in lengths]
    named: dict[str, Any] = {} if key is None else {"key": key}
    expected = [official.blake3(data, **named).digest() for data in inputs]
    assert bulla_hash.hash_many(inputs, key=key) == expected
    assert bulla_hash.hash_many(tuple(inputs), key=key) == expected
    assert bulla_hash.hash_many(map(bytearray, inputs), key=key) == expected


@pytest.mark.parametrize(
    ("inputs", "error"),
    [(None, TypeError), (1, TypeError), ("text", TypeError), (b"bytes", TypeError), ([b"", None], TypeError), ([memoryview(bytes(4))[::2]], BufferError)],
)
def test_anything_else_is_refused(inputs: Any, error: type[Exception]) -> None:
    assert error_of(bulla_hash.hash_many, inputs) is error


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="a key has 32 bytes, and this one has 3"):
        bulla_hash.hash_many([b""], key=b"123")


def test_an_iterable_that_fails_is_heard() -> None:
    def broken() -> Any:
        yield b""
        raise KeyError("broken")

    assert error_of(bulla_hash.hash_many, broken()) is KeyError


KERNELS = {"blake3": "BULLA_BLAKE3_FORCE_KERNEL", "blake2": "BULLA_BLAKE2_FORCE_KERNEL", "ed25519": "BULLA_ED25519_FORCE_KERNEL"}


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A new process of Python."""
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("algorithm", KERNELS)
def test_the_environment_forces_a_kernel(algorithm: Any) -> None:
    assert bulla_hash.kernel(algorithm) != ""
    ran = python(f"import bulla_hash; print(bulla_hash.kernel({algorithm!r}))", **{KERNELS[algorithm]: "portable"})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "portable\n", "")


@pytest.mark.parametrize("algorithm", KERNELS)
def test_a_kernel_that_does_not_exist_is_an_import_error(algorithm: str) -> None:
    ran = python("import bulla_hash", **{KERNELS[algorithm]: "abacus"})
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(f"ImportError: {KERNELS[algorithm]}: ")


def test_the_kernel_of_something_else_is_an_error() -> None:
    assert bulla_hash.kernel() == bulla_hash.kernel("blake3")
    assert error_of(bulla_hash.kernel, "sha1") is ValueError
