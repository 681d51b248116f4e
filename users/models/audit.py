"""Who decided what, when and why. It only grows."""

from typing import ClassVar

from django.db import models

from users.models.organisations import Organisation
from users.models.people import User


class AuditRecord(models.Model):
    """One decision: `action` is dotted ("topup.released"), `subject` what it was about, before and after as JSON."""

    at = models.DateTimeField()
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    action = models.CharField(max_length=60)
    subject_type = models.CharField(max_length=40, blank=True)
    subject_id = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    ip_address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["organisation", "-at"], name="audit_by_organisation"),
            models.Index(fields=["subject_type", "subject_id"], name="audit_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.subject_type} {self.subject_id}"
