"""The forms of the operator's pages that only narrow what is shown, and rulings on unclear names."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.forms import DayField
from users.audit_words import ACTIONS

NOT_LISTED, NEEDS_ALIAS = "not_listed", "needs_alias"
RULINGS = (
    (NEEDS_ALIAS, _("a GPU of the catalogue: it needs a line in the alias file")),
    (NOT_LISTED, _("no GPU that we list")),
)
_LARGEST = 2**31 - 1


class AuditForm(forms.Form):
    """Which records to show: `action`, `organisation` (its number), `actor` (address), `subject` (id), `from`, `to`."""

    action = forms.ChoiceField(label=_("Decision"), required=False)
    organisation = forms.IntegerField(label=_("Organisation no."), required=False, min_value=1, max_value=_LARGEST)
    actor = forms.EmailField(label=_("Decided by"), required=False, max_length=254)
    subject = forms.CharField(label=_("About"), required=False, max_length=64)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        named = sorted(((name, str(words)) for name, words in ACTIONS.items()), key=lambda pair: pair[1].casefold())
        field = self.fields["action"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", _("everything")), *named]
        self.fields["from"] = DayField(label=_("From"))  # no name that a class could give to a field
        self.fields["to"] = DayField(label=_("To"))

    @property
    def wanted(self) -> dict[str, Any]:
        """The filters of a valid form, as `marketplace.queries.records` takes them; none where a field is wrong."""
        if not self.is_valid():
            return {}
        told = self.cleaned_data
        since, until = told.get("from"), told.get("to")
        return {
            "action": told["action"],
            "organisation_id": told["organisation"],
            "actor": told["actor"],
            "subject": told["subject"].strip(),
            "since": datetime.combine(since, time(), tzinfo=UTC) if since else None,
            "until": datetime.combine(until, time(), tzinfo=UTC) + timedelta(days=1) if until else None,
        }


class RulingForm(forms.Form):
    """What an unclear name is, and why."""

    decision = forms.ChoiceField(choices=RULINGS)
    reason = forms.CharField(max_length=500)
