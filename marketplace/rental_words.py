"""Why rentals ended, in words for pages."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

END_REASONS: dict[str, str | Promise] = {
    "stopped": gettext_lazy("Stopped by you."),
    "frozen": gettext_lazy("Stopped because your organisation was frozen."),
    "given_back": gettext_lazy("Given back before it started."),
    "not_started_in_time": gettext_lazy("The machine did not answer within 10 minutes."),
    "server_lost": gettext_lazy("The machine was silent for more than 5 minutes."),
    "time_over": gettext_lazy("Its hours were over."),
    "lease_over": gettext_lazy("The machine was for rent no longer than this."),
    "no_money": gettext_lazy("The wallet had no money for one more hour."),
    "no_rate": gettext_lazy("There was no exchange rate to hold one more hour at."),
    "not_sold": gettext_lazy("How you are taxed was not decided, so no further hour could be held."),
    "platform_down": gettext_lazy("We were down ourselves when the next hour was to be held."),
}


def end_reason(reason: str) -> str | Promise:
    """Return the words for a reason; one that a machine gave is told by its name. Blank for none."""
    if not reason:
        return ""
    named = _("The machine reported: %s.") % reason.replace("_", " ")
    return END_REASONS.get(reason, named)
