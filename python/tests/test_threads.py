"""Many threads, and processes that fork."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import blake3 as official
import pytest
from support import pattern

import bulla_hash

MAKERS: list[Callable[[], Any]] = [bulla_hash.blake3, lambda: bulla_hash.blake3(max_threads=bulla_hash.blake3.AUTO), bulla_hash.blake2b, bulla_hash.blake2s, bulla_hash.blake2bp, bulla_hash.blake2sp]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("length", [16, 8192, 400_000])
def test_threads_that_update_one_hasher_lose_nothing(make: Callable[[], Any], length: int) -> None:
    # All pieces are equal, so that their order does not matter.
    piece, times, hasher = bytes([7]) * length, 40, make()

    def work() -> None:
        for _ in range(times // 4):
            hasher.update(piece)
            hasher.digest()
            hasher.copy()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    expected = make()
    for _ in range(times):
        expected.update(piece)
    assert hasher.digest() == expected.digest()


def runs_beside(work: Callable[[], object]) -> bool:
    """Whether another thread of Python ever runs while this one works. Without the lock's release, it runs only before and after, however often
    this one works. With it, a busy machine may still not run the other one at the first try."""
    ticks, done, begun = [0], threading.Event(), threading.Event()

    def tick() -> None:
        begun.set()
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0)

    # A thread that is asked for the lock keeps it this long: longer than the work.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    ticker = threading.Thread(target=tick)
    try:
        ticker.start()
        begun.wait()
        before = ticks[0]
        for _ in range(500):
            work()
            if ticks[0] > before:
                return True
        return False
    finally:
        done.set()
        sys.setswitchinterval(interval)
        ticker.join()


LONG = bytes(32 << 20)


@pytest.mark.parametrize(
    "work",
    [
        lambda: bulla_hash.blake3(LONG),
        lambda: bulla_hash.blake3().update(LONG),
        lambda: bulla_hash.blake3().digest(len(LONG)),
        lambda: bulla_hash.hash_many([LONG]),
        lambda: bulla_hash.blake2b(LONG),
        lambda: bulla_hash.blake2sp().update(LONG),
        lambda: bulla_hash.bao.outboard(LONG),
    ],
)
def test_others_run_while_long_input_is_hashed(work: Callable[[], object]) -> None:
    assert runs_beside(work)


def test_short_input_keeps_the_lock() -> None:
    # The control of the test above: it can tell the two apart.
    assert not runs_beside(lambda: bulla_hash.blake3(b"short").digest())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    data = pattern(4_000_000)
    expected = official.blake3(data).digest()
    assert bulla_hash.blake3(data, max_threads=2).digest() == expected
    child = os.fork()
    if child == 0:
        os._exit(0 if bulla_hash.blake3(data, max_threads=2).digest() == expected else 1)
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the forked process waits for threads that it does not have")
    assert status == 0


def test_big_input() -> None:
    data = pattern(100_000_000)
    assert bulla_hash.blake3(data, max_threads=2).digest() == bulla_hash.blake3(data).digest() == official.blake3(data).digest()
    assert bulla_hash.blake2b(data).digest() == hashlib.blake2b(data).digest()
