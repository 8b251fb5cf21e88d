#!/usr/bin/env python3
"""Compares bulla with the package blake3 and with hashlib: python bench.py [--launches N] [--cases TEXT]

A ratio is the peer's time divided by ours: above 1, ours is faster. In one process, the two take turns in random order, and a ratio is the median
of their turns. Addresses differ between processes, so there are several launches, and the table has the median of their ratios. `control` is
the peer against itself: it shows how large the noise is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import blake3 as official

import bulla_hash

Call = Callable[[], object]

ROUNDS = 15
"""How often each contender has its turn in a launch."""

SAMPLE = 2_000_000
"""How long a turn is, in nanoseconds: at least one call."""

SIZES = (0, 1, 16, 32, 64, 128, 256, 257, 512, 1024, 1025, 2048, 4096, 8192, 16384, 65536, 1 << 20, 16 << 20, 64 << 20)


class Case(NamedTuple):
    """Two functions that compute the same."""

    name: str
    ours: Call
    peer: Call


class Result(NamedTuple):
    """Nanoseconds for one call of ours, and ratios."""

    ours: float
    ratio: float
    control: float


def text(size: int) -> str:
    """A number of bytes as people write it."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def digest(make: Callable[[bytes], Any], data: bytes) -> Call:
    """The digest of one object."""
    return lambda: make(data).digest()


def update(hasher: Any, piece: bytes) -> Call:
    """One more piece."""
    return lambda: hasher.update(piece)


def one_call() -> Iterator[Case]:
    """The digest of a complete input."""
    for size in SIZES:
        data = random.randbytes(size)
        yield Case(f"blake3(x).digest(), {text(size)}", digest(bulla_hash.blake3, data), digest(official.blake3, data))


def shapes() -> Iterator[Case]:
    """Other calls of the class `blake3`."""
    ours, peer = bulla_hash.blake3, official.blake3
    data, key, view = random.randbytes(64), random.randbytes(32), memoryview(bytearray(64))
    yield Case("blake3(x).hexdigest(), 64 B", lambda: ours(data).hexdigest(), lambda: peer(data).hexdigest())
    yield Case("blake3(x, key=k).digest(), 64 B", lambda: ours(data, key=key).digest(), lambda: peer(data, key=key).digest())
    yield Case("blake3(memoryview).digest(), 64 B", lambda: ours(view).digest(), lambda: peer(view).digest())
    yield Case("blake3(x).digest(1000), 64 B", lambda: ours(data).digest(1000), lambda: peer(data).digest(1000))
    yield Case("blake3(x).copy().digest(), 64 B", lambda: ours(data).copy().digest(), lambda: peer(data).copy().digest())
    for size in (16, 64, 1024, 8192):
        piece = random.randbytes(size)
        yield Case(f"h.update(x), {text(size)}", update(ours(), piece), update(peer(), piece))
    auto, long = ours.AUTO, random.randbytes(64 << 20)
    yield Case(
        "blake3(x, max_threads=AUTO).digest(), 64 MiB",
        lambda: ours(long, max_threads=auto).digest(),
        lambda: peer(long, max_threads=auto).digest(),
    )


def threads() -> Iterator[Case]:
    """One large input with 1, 2, 4, ... threads, up to the number of processors."""
    data, count = random.randbytes(1 << 20) * 1024, 1

    def digest_with(make: Callable[..., Any], count: int) -> Call:
        return lambda: make(data, max_threads=count).digest()

    while count <= (os.cpu_count() or 1):
        ours, peer = digest_with(bulla_hash.blake3, count), digest_with(official.blake3, count)
        yield Case(f"blake3(x, max_threads={count}).digest(), 1024 MiB", ours, peer)
        count *= 2


def many() -> Iterator[Case]:
    """Many inputs in one call, against one call each."""

    def ours(inputs: list[bytes]) -> Call:
        return lambda: bulla_hash.hash_many(inputs)

    def peer(inputs: list[bytes]) -> Call:
        make = official.blake3
        return lambda: [make(data).digest() for data in inputs]

    for count, size in ((8, 64), (64, 64), (64, 1024), (1000, 32)):
        inputs = [random.randbytes(size) for _ in range(count)]
        yield Case(f"hash_many, {count} x {text(size)}", ours(inputs), peer(inputs))


def blake2() -> Iterator[Case]:
    """BLAKE2 against hashlib."""
    for name in ("blake2b", "blake2s"):
        for size in (0, 64, 1024, 1 << 20):
            data = random.randbytes(size)
            ours, peer = digest(getattr(bulla_hash, name), data), digest(getattr(hashlib, name), data)
            yield Case(f"{name}(x).digest(), {text(size)}", ours, peer)


def cases() -> Iterator[Case]:
    """All cases, in the order of the table."""
    yield from one_call()
    yield from shapes()
    yield from threads()
    yield from many()
    yield from blake2()


def timed(call: Call, calls: int) -> float:
    """Nanoseconds for one call."""
    turns = range(calls)
    start = time.perf_counter_ns()
    for _ in turns:
        call()
    return (time.perf_counter_ns() - start) / calls


def measure(case: Case) -> Result:
    """The figures of one case in this process."""
    contenders = {"ours": case.ours, "peer": case.peer, "control": case.peer}
    calls = max(1, int(SAMPLE / max(timed(case.ours, 3), timed(case.peer, 3))))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name in random.sample(list(contenders), len(contenders)):
            times[name].append(timed(contenders[name], calls))
    ratio = statistics.median(peer / ours for peer, ours in zip(times["peer"], times["ours"]))
    control = statistics.median(peer / again for peer, again in zip(times["peer"], times["control"]))
    return Result(statistics.median(times["ours"]), ratio, control)


def launch(wanted: str) -> None:
    """Measures the cases whose names contain `wanted`, and prints one line of JSON for each."""
    for case in cases():
        if wanted in case.name:
            print(json.dumps([case.name, *measure(case)]), flush=True)


def main() -> None:
    """Launches this program several times, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=3, help="processes to start [default: 3]")
    parser.add_argument("--cases", default="", metavar="TEXT", help="only cases whose names contain this")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch:
        launch(args.cases)
        return
    found: dict[str, list[Result]] = {}
    for _ in range(args.launches):
        command = [sys.executable, __file__, "--launch", "--cases", args.cases]
        for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
            name, *figures = json.loads(line)
            found.setdefault(name, []).append(Result(*figures))
    print(f"Python {sys.version.split()[0]}, bulla {bulla_hash.__version__} ({bulla_hash.kernel()}), blake3 {official.__version__}")
    print(f"\n| {'case':<46} | {'ours, ns':>11} | {'ratio':>6} | {'control':>7} |\n|:{'-' * 46}-|{'-' * 12}:|{'-' * 7}:|{'-' * 8}:|")
    for name, results in found.items():
        ours, ratio, control = (statistics.median(figures) for figures in zip(*results))
        print(f"| {name:<46} | {ours:>11.0f} | {ratio:>6.2f} | {control:>7.2f} |")


if __name__ == "__main__":
    main()
