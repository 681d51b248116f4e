"""What a provider's calls are refused for, as problem documents."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError

from common.problems import Problem
from marketplace.listings import AlreadyListed, ListingUnknown, TermsRefused
from marketplace.providers.application import ApplicationLocked, Incomplete, NotAProvider
from marketplace.providers.fields import FieldRefused
from marketplace.providers.fleet import MachineRefused, ServerUnknown
from marketplace.providers.states import StepRefused
from marketplace.servers import DeviceKnown, NameTaken, NotApproved


@contextmanager
def provider_problems(*, server_field: str = "") -> Iterator[None]:
    """Turn a refusal into its problem document. `server_field`: the body's field that names the server, if one does."""
    try:
        yield
    except (FieldRefused, MachineRefused, TermsRefused) as refused:
        raise _field(refused.field, str(refused), refused.code) from refused
    except Incomplete as refused:
        lacks = ErrorDetail(_("The application lacks this."), code="required")
        raise ValidationError({name: [lacks] for name in refused.fields}) from refused
    except DeviceKnown as refused:
        raise _field("device_uuids", _("A server with one of these devices is here already."), "known") from refused
    except NameTaken as refused:
        raise _field("name", _("You have a server of this name."), "taken") from refused
    except (ServerUnknown, ListingUnknown) as refused:
        if server_field and isinstance(refused, ServerUnknown):
            raise _field(server_field, _("You have no such server."), "unknown_server") from refused
        raise NotFound from refused
    except tuple(_CONFLICTS) as refused:
        code, words = _CONFLICTS[type(refused)]
        raise Problem(status=HTTPStatus.CONFLICT, code=code, detail=str(words)) from refused


def _field(name: str, message: str, code: str) -> ValidationError:
    return ValidationError({name: [ErrorDetail(message, code=code)]})


_CONFLICTS: dict[type[Exception], tuple[str, Promise]] = {
    NotAProvider: ("not_a_provider", gettext_lazy("This organisation rents GPUs. Another one can sell.")),
    NotApproved: (
        "not_approved",
        gettext_lazy("Only an approved provider adds and lists servers. `GET provider/` says what is missing."),
    ),
    ApplicationLocked: (
        "application_locked",
        gettext_lazy("The application is no draft any more; what was sent for review stays. Nothing was changed."),
    ),
    StepRefused: ("not_a_draft", gettext_lazy("The application is no draft any more. Nothing was changed.")),
    AlreadyListed: ("already_listed", gettext_lazy("This server is listed already: change that listing.")),
}
