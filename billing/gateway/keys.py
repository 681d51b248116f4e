"""What a key of the gateway tells by its first letters, and which keys may not be used where.

>>> mode_of("sk_test_51abc"), mode_of("rk_live_51abc"), mode_of("")
('test', 'live', 'off')
>>> fault_of_keys("sk_live_51abc", ["whsec_1"], is_local=True)
'A live Stripe key does not belong in the demo, in tests or beside DEBUG: real money would move.'
"""

import re
from collections.abc import Sequence
from typing import Literal

Mode = Literal["off", "test", "live"]
_SECRET_KEY = re.compile(r"(?:sk|rk)_(test|live)_\w+", re.ASCII)


def mode_of(secret_key: str) -> Mode:
    """Return what a key moves: real money (live), none (test or unreadable), or that there is no key (off)."""
    if not secret_key:
        return "off"
    found = _SECRET_KEY.fullmatch(secret_key)
    return "live" if found is not None and found[1] == "live" else "test"


def fault_of_keys(secret_key: str, webhook_secrets: Sequence[str], *, is_local: bool) -> str:
    """Return why the site must not start with these keys, "" when it may. `is_local`: demo, tests or DEBUG."""
    if not secret_key:
        return ""
    if _SECRET_KEY.fullmatch(secret_key) is None:
        return "STRIPE_SECRET_KEY must begin with sk_test_, rk_test_, sk_live_ or rk_live_."
    if is_local and mode_of(secret_key) == "live":
        return "A live Stripe key does not belong in the demo, in tests or beside DEBUG: real money would move."
    if not is_local and not webhook_secrets:
        return "STRIPE_WEBHOOK_SECRETS is missing: without one no message of Stripe can be believed."
    return ""
