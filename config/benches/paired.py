"""Measure two things in turn, so that a machine that drifts drifts under both."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

SLICES = 5


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Median seconds per call of the limit and of ours."""

    limit_seconds: float
    ours_seconds: float

    @property
    def times_slower(self) -> float:
        """How many times the limit's duration ours takes."""
        return self.ours_seconds / self.limit_seconds

    @property
    def share_of_speed(self) -> float:
        """Our calls per second as a share of the limit's."""
        return self.limit_seconds / self.ours_seconds


def measure(limit: Callable[[], object], ours: Callable[[], object], *, slice_seconds: float = 0.6) -> Pair:
    """Alternate slices of both; each slice gives a mean, the medians of the slices are returned."""
    for warm_up in (limit, ours):
        warm_up()
    slices = [(_mean_seconds(limit, slice_seconds), _mean_seconds(ours, slice_seconds)) for _ in range(SLICES)]
    return Pair(
        limit_seconds=statistics.median(limit_mean for limit_mean, _ in slices),
        ours_seconds=statistics.median(ours_mean for _, ours_mean in slices),
    )


def _mean_seconds(call: Callable[[], object], slice_seconds: float) -> float:
    started, calls = time.perf_counter(), 0
    while True:
        call()
        calls += 1
        passed = time.perf_counter() - started
        if passed >= slice_seconds:
            return passed / calls
