"""Units: memory is counted in bytes inside the engine and told in GiB outside."""

GIB = 2**30


def gib(count_bytes: float) -> float:
    """Return bytes as GiB, kept to a thousandth.

    >>> gib(8 * 2**30)
    8.0
    """
    return round(count_bytes / GIB, 3)
