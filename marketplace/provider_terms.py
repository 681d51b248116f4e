"""The provider terms and the self-billing agreement in force, and the figures they promise.

A flow that stores a provider's consent stores both versions with it. The page that shows the texts prints the figures
from here.
"""

from datetime import date

TERMS_VERSION = "1"
SELF_BILLING_VERSION = "1"
IN_FORCE_FROM = date(2026, 12, 1)
NOTICE_DAYS = 15
OBJECTION_DAYS = 14  # to a self-billed invoice
APPEAL_DAYS = 14  # against a suspension
