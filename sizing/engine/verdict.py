"""Does it fit? The upper end of the estimate against the real memory of the card, not the number in its name.

The widths of the interval are measured over estimated, 5th to 95th percentile, on the published rows (docs/sizing.md).
"""

from typing import Literal

from sizing.engine.architecture import Architecture
from sizing.engine.job import Job

Verdict = Literal["fits", "tight", "no"]

# Lower and upper end as shares of the estimate.
GENERATION_INTERVAL = (0.95, 1.08)
# Weights alone or cache alone, as an engine's log prints them.
PART_INTERVAL = (0.97, 1.03)
TRAINING_INTERVAL = (0.88, 1.12)
# Sequence length or checkpointing of a training run not stated: it may be several times what was assumed.
UNSTATED_INTERVAL = (0.75, 1.4)
# Tensor or pipeline parallel training, and training of experts: few or no measurements to hold against.
GAP_INTERVAL = (0.75, 1.25)


def interval(arch: Architecture, job: Job, *, is_stated: bool = True) -> tuple[float, float]:
    """Return the lower and upper end of the estimate as shares of it.

    `is_stated` is false when the length or the checkpointing of a training run had to be assumed.
    """
    if job.task == "inference":
        return GENERATION_INTERVAL if arch.is_known else TRAINING_INTERVAL
    if not is_stated:
        return UNSTATED_INTERVAL
    return GAP_INTERVAL if known_gaps(arch, job) else TRAINING_INTERVAL


def known_gaps(arch: Architecture, job: Job) -> list[str]:
    """Return what of this job nobody has measured enough, in words."""
    gaps = []
    if job.task != "inference" and (job.layout.tensor > 1 or job.layout.pipeline > 1):
        gaps.append("tensor and pipeline parallel training: few measurements, wider interval")
    if job.task != "inference" and arch.experts:
        gaps.append("training a mixture of experts: few measurements, wider interval")
    if not arch.is_known:
        gaps.append("the model family is not one of ours: wider interval")
    return gaps


def verdict(*, needed_gib: float, high_gib: float, usable_gib: float) -> Verdict:
    """Return "fits" if the upper end fits, "tight" if only the estimate does, else "no".

    >>> [verdict(needed_gib=70, high_gib=78, usable_gib=card) for card in (79.1, 71, 69)]
    ['fits', 'tight', 'no']
    """
    if high_gib <= usable_gib:
        return "fits"
    return "tight" if needed_gib <= usable_gib else "no"
