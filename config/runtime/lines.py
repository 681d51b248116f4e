"""Progress lines: one per step, with its duration."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print `text`, then how long the block took; a failure ends the line with the word."""
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"  {text}: failed")
        raise
    say(f"  {text} ({time.monotonic() - started:.1f} s)")


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True, file=sys.stdout)
