"""Numbers as people write them: 500M tokens, 2.5 B, 1 000 000, 0,5.

>>> read_tokens("500M"), read_tokens("2.5 B"), read_tokens("1,000,000"), read_tokens("1 000 000"), read_tokens("0,5k")
(500000000, 2500000000, 1000000, 1000000, 500)
>>> read_tokens("NaN") is read_tokens("-1") is read_tokens("1.5") is None
True
"""

import re
from decimal import Decimal

_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+", re.ASCII)
_NUMBER = re.compile(r"([0-9]{1,20}(?:[.,][0-9]{1,9})?)([kKmMbBgGtT]?)", re.ASCII)
_SPACES = re.compile(r"[\s_]")
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}


def read_tokens(text: str) -> int | None:
    """Return a whole number of tokens, None where the text is not one."""
    bare = _SPACES.sub("", text)
    found = _NUMBER.fullmatch(bare.replace(",", "") if _GROUPED.fullmatch(bare) else bare)
    if not found:
        return None
    value = Decimal(found[1].replace(",", ".")) * _TIMES[found[2].lower()]
    return int(value) if value == value.to_integral_value() else None


def read_b_params(text: str) -> float | None:
    """Return billions of parameters, None where the text is not a number of them.

    >>> read_b_params("7"), read_b_params("0,5"), read_b_params("70B"), read_b_params("inf")
    (7.0, 0.5, 70.0, None)
    """
    found = _NUMBER.fullmatch(_SPACES.sub("", text))
    if not found or found[2].lower() not in ("", "b"):
        return None
    return float(found[1].replace(",", "."))


def short_tokens(count: int) -> str:
    """Return a number of tokens as it is typed: 100M, 2.5B.

    >>> short_tokens(100_000_000), short_tokens(2_500_000_000), short_tokens(1234)
    ('100M', '2.5B', '1234')
    """
    for letter, times in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        value = Decimal(count) / times
        if value >= 1 and value == value.quantize(Decimal("0.001")):
            return f"{value.normalize():f}{letter}"
    return str(count)
