"""How long work shows where it is: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")
#: ``progress(label, total, items)`` hands the items on and shows how many have passed.
Progress = Callable[[str, int, Iterable[T]], Iterator[T]]

#: Seconds between two plain lines.
INTERVAL = 5.0


def silent(label: str, total: int, items: Iterable[T]) -> Iterator[T]:
    """Show nothing."""
    yield from items


def on_stream(stream: TextIO | None = None) -> "Progress[T]":
    """A bar where ``stream`` (default: standard error) is a terminal, else plain lines."""
    out = stream or sys.stderr
    if out.isatty():
        return _bar(out)
    return lines(lambda text: _say(out, text))


def lines(say: Callable[[str], None]) -> "Progress[T]":
    """A line at the end of each loop; in longer ones one now and then: how far, how fast."""

    def show(label: str, total: int, items: Iterable[T]) -> Iterator[T]:
        start = said = time.monotonic()
        done = 0
        for item in items:
            yield item
            done += 1
            now = time.monotonic()
            if now - said >= INTERVAL and done < total:
                rate = done / (now - start)
                left = (total - done) / rate
                say(f"{label}: {done}/{total}, {rate:.3g} a second, {left:.0f} s left")
                said = now
        say(f"{label}: {done}/{total}, {time.monotonic() - start:.1f} s")

    return show


def _say(out: TextIO, text: str) -> None:
    out.write(text + "\n")
    out.flush()


def _bar(out: TextIO) -> "Progress[T]":
    def show(label: str, total: int, items: Iterable[T]) -> Iterator[T]:
        with tqdm(total=total, desc=label, file=out, leave=True, dynamic_ncols=True) as bar:
            for item in items:
                yield item
                bar.update()

    return show
