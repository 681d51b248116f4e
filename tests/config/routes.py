"""What each address may answer, by who asks: one line each. `test_route_walk.py` asks them all.

A new address gets its line in ROUTES, under its name (as `reverse` takes it) and with its kind:

    page()              the same for everyone
    own_page()          of one organisation: looking is open to its members, changing takes a role
    own_object()        the same, of one object, which others do not find (404)
    own_action()        POST alone, on the organisation or on one of its objects (`object_of_theirs=True`)
    operator_page()     of operators
    keyed_call()        of the API with a key; its scopes are the view's own
    entrance()          for people who are not signed in
    of_a_person()       for anyone who is signed in, about themselves

The arguments in an address are filled from `Theirs.arguments` (`test_route_walk.py`) by their names; a line may
name others: `own_object(key_id="ended_key_id")`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Actor(Enum):
    """Who asks. The objects in the addresses are of an organisation that only the viewer and two keys belong to."""

    ANONYMOUS = "someone not signed in"
    STRANGER = "the owner of another organisation"
    VIEWER = "a viewer of the organisation"
    OPERATOR = "an operator"
    STRANGERS_KEY = "a key of another organisation"
    UNSCOPED_KEY = "a key of the organisation without the scope"


Statuses = tuple[int, ...]
TO_LOGIN = (302,)
FORBIDDEN, NOT_FOUND, NO_METHOD = (403,), (404,), (405,)
OF_ITS_OWN = (200, 302, 303, 400, 404, 409, 429)  # whatever somebody's own affairs are answered with
KEYS = (Actor.STRANGERS_KEY, Actor.UNSCOPED_KEY)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The statuses that each actor may get from GET and from POST with an empty form, and names for the arguments.

    Other methods may get what these two get, 405, or 429 from the library's own quotas. Who is not named here is not sent.
    """

    get: Mapping[Actor, Statuses]
    post: Mapping[Actor, Statuses]
    is_keyed: bool = False
    is_operators: bool = False  # operators see every organisation here
    may_leave: bool = False  # a member may change what is theirs in the organisation
    arguments: Mapping[str, str] = field(default_factory=dict)


def _by_session(anonymous: Statuses, stranger: Statuses, viewer: Statuses, operator: Statuses) -> dict[Actor, Statuses]:
    return {
        Actor.ANONYMOUS: anonymous,
        Actor.STRANGER: stranger,
        Actor.VIEWER: viewer,
        Actor.OPERATOR: operator,
    }


_NOT_AT_ALL = _by_session((302, 405), (403, 405), (403, 405), (403, 405))


def page(*, get: Statuses = (200,), post: Statuses = (200, 405), **arguments: str) -> Route:
    """For everyone alike."""
    return Route(get=_by_session(get, get, get, get), post=_by_session(post, post, post, post), arguments=arguments)


def own_page(*, post: bool = True, **arguments: str) -> Route:
    """Of whoever asks, about their own organisation: an operator has none."""
    changed = _by_session(TO_LOGIN, OF_ITS_OWN, FORBIDDEN, FORBIDDEN) if post else _NOT_AT_ALL
    return Route(get=_by_session(TO_LOGIN, (200,), (200,), FORBIDDEN), post=changed, arguments=arguments)


def own_object(*, post: bool = True, **arguments: str) -> Route:
    """One object: those of another organisation do not find it."""
    changed = _by_session(TO_LOGIN, NOT_FOUND, FORBIDDEN, FORBIDDEN) if post else _NOT_AT_ALL
    return Route(get=_by_session(TO_LOGIN, NOT_FOUND, (200,), FORBIDDEN), post=changed, arguments=arguments)


def own_action(*, object_of_theirs: bool = False, is_for_all: bool = False, **arguments: str) -> Route:
    """A form's target, without a page; the form is empty. `is_for_all`: every member may do it, for themselves."""
    stranger = (404, 302) if object_of_theirs else OF_ITS_OWN
    changed = _by_session(TO_LOGIN, stranger, OF_ITS_OWN if is_for_all else FORBIDDEN, FORBIDDEN)
    return Route(get=_by_session(*[(405, 302)] * 4), post=changed, may_leave=is_for_all, arguments=arguments)


def operator_page(
    *,
    get: Statuses = (200,),
    post: Statuses = (200, 302, 400, 405),
    members: Statuses = FORBIDDEN,
    **arguments: str,
) -> Route:
    """Of operators: members of whatever organisation are refused."""
    return Route(
        get=_by_session(TO_LOGIN, members, members, get),
        post=_by_session((*TO_LOGIN, 405), (*members, 405), (*members, 405), post),
        is_operators=True,
        arguments=arguments,
    )


def keyed_call(*, strangers: Statuses = (200,), **arguments: str) -> Route:
    """A call with a key. A session opens nothing; a key of another organisation reads its own, or finds nothing."""
    no_key = dict.fromkeys((Actor.ANONYMOUS, Actor.STRANGER, Actor.VIEWER, Actor.OPERATOR), (401,))
    return Route(
        get={**no_key, Actor.STRANGERS_KEY: (*strangers, 405), Actor.UNSCOPED_KEY: (403, 405)},
        post={**no_key, Actor.STRANGERS_KEY: (400, 404, 405), Actor.UNSCOPED_KEY: (403, 405)},
        is_keyed=True,
        arguments=arguments,
    )


def providers_call(**arguments: str) -> Route:
    """A call that takes the scope `provider`, which no renter's key has."""
    no_key = dict.fromkeys((Actor.ANONYMOUS, Actor.STRANGER, Actor.VIEWER, Actor.OPERATOR), (401,))
    refused = {**no_key, Actor.STRANGERS_KEY: (403, 405), Actor.UNSCOPED_KEY: (403, 405)}
    return Route(get=refused, post=refused, is_keyed=True, arguments=arguments)


def providers_object(*, get: bool = True, **arguments: str) -> Route:
    """An object of a provider: for renters it is not there. `tests/marketplace/test_provider_pages.py` asks as providers."""
    missing = NOT_FOUND if get else NO_METHOD
    return Route(
        get=_by_session((*TO_LOGIN, 405), missing, missing, (*FORBIDDEN, 405)),
        post=_by_session((*TO_LOGIN, 405), (404, 405), (*FORBIDDEN, 404, 405), (*FORBIDDEN, 405)),
        arguments=arguments,
    )


def entrance(*, get: Statuses = (200,), post: Statuses = (200, 302, 400, 405)) -> Route:
    """For people who are not signed in; others are sent on, or asked to sign out first."""
    signed_in = (200, 302)
    return Route(
        get=_by_session(get, signed_in, signed_in, signed_in),
        post=_by_session(post, (*signed_in, 405), (*signed_in, 405), (*signed_in, 405)),
    )


def of_a_person(
    *, get: Statuses = (200, 302), post: Statuses = (200, 302, 400, 403, 404, 405), **arguments: str
) -> Route:
    """About whoever is signed in, operators too. Some of it asks for the password first (302)."""
    return Route(
        get=_by_session(TO_LOGIN, get, get, get), post=_by_session((302, 405), post, post, post), arguments=arguments
    )


ROUTES: dict[str, Route] = {
    # the site
    "healthz": page(),
    "readyz": page(get=(200, 503), post=(200, 503)),
    "robots": page(),
    "llms": page(),
    "status": page(post=NO_METHOD),
    "sitemap": page(),
    "stripe-webhook": page(get=NO_METHOD, post=(400, 503)),
    # catalogue and sizing
    "catalog:board": page(),
    "catalog:gpus": page(),
    "catalog:gpu": page(),
    "comparison:compare": page(),
    "comparison:pair": page(get=(302,), post=(302,), a="slug", b="slug"),
    "guides:guide": page(slug="guide_slug"),
    "catalog:price-history": page(),
    "catalog:prices": page(),
    "catalog:prices-feed": page(post=NO_METHOD),
    "catalog:gpu-feed": page(post=NO_METHOD),
    "catalog:gpu-picture": page(post=NO_METHOD),
    "catalog:history-picture": page(post=NO_METHOD),
    "catalog:alerts": Route(
        get=_by_session(TO_LOGIN, (200,), (200,), FORBIDDEN),
        post=_by_session(TO_LOGIN, OF_ITS_OWN, OF_ITS_OWN, FORBIDDEN),
        may_leave=True,
    ),
    "catalog:end-alert": Route(
        get=_by_session(*[(405, 302)] * 4),
        post=_by_session(TO_LOGIN, NOT_FOUND, FORBIDDEN, FORBIDDEN),
    ),
    "catalog:end-alert-by-link": page(get=NOT_FOUND, post=NOT_FOUND, token="made_up"),
    "catalog:clouds": page(),
    "catalog:cloud": page(slug="cloud_slug"),
    "catalog:compare": page(),
    "catalog:compare-csv": page(post=NO_METHOD),
    "catalog:sources": page(),
    "catalog:method": page(),
    "sizing:llm-training": page(),
    "sizing:fine-tuning": page(),
    "sizing:llm-inference": page(),
    "sizing:image-video": page(),
    "sizing:rendering": page(),
    "sizing:science": page(),
    "calculator:calculator": page(post=(303,)),  # to the address of what was sent
    # the API without a key
    "api-schema": page(post=NO_METHOD),
    "api-docs": page(post=NO_METHOD),
    "api-gpus": page(post=NO_METHOD),
    "api-gpu-name": page(get=(400,), post=NO_METHOD),
    "api-gpu": page(post=NO_METHOD),
    "api-prices": page(post=NO_METHOD),
    "api-price-history": page(post=NO_METHOD),
    "api-offers": page(post=NO_METHOD),
    "api-clouds": page(post=NO_METHOD),
    "api-sources": page(post=NO_METHOD),
    "api-estimate": page(get=NO_METHOD, post=(400,)),
    "api/": page(get=NOT_FOUND, post=NOT_FOUND),
    "api-market": page(post=NO_METHOD),
    "api-book": page(post=NO_METHOD),
    "api-trades": page(post=NO_METHOD),
    # the API with a key
    "api-topups": keyed_call(),
    "api-topup": keyed_call(strangers=NOT_FOUND),
    "api-topup-refund": keyed_call(strangers=NOT_FOUND),
    "api-wallets": keyed_call(),
    "api-ledger": keyed_call(strangers=(200, 400)),
    "api-quotes": keyed_call(),
    "api-orders": keyed_call(),
    "api-order": keyed_call(strangers=NOT_FOUND),
    "api-order-cancel": keyed_call(strangers=NOT_FOUND),
    "api-rentals": keyed_call(),
    "api-rental": keyed_call(strangers=NOT_FOUND),
    "api-rental-stop": keyed_call(strangers=NOT_FOUND),
    "api-webhooks": keyed_call(),
    "api-webhook": keyed_call(strangers=NOT_FOUND),
    "api-webhook-secret": keyed_call(strangers=NOT_FOUND),
    "api-webhook-test": keyed_call(strangers=NOT_FOUND),
    "api-webhook-deliveries": keyed_call(strangers=NOT_FOUND),
    "api-webhook-again": keyed_call(strangers=NOT_FOUND, event_id="message_id"),
    "api-provider": providers_call(),
    "api-provider-application": providers_call(),
    "api-provider-servers": providers_call(),
    "api-provider-enrol-token": providers_call(server_id="order_id"),
    "api-provider-listings": providers_call(),
    "api-provider-listing": providers_call(listing_id="order_id"),
    "api-provider-listing-pause": providers_call(listing_id="order_id"),
    "api-provider-listing-resume": providers_call(listing_id="order_id"),
    "api-provider-earnings": providers_call(),
    "api-provider-rentals": providers_call(),
    # signing up and in
    "account_signup": entrance(),
    "account_login": entrance(),
    "account_logout": entrance(get=(302,)),
    "account_inactive": page(),
    "account_confirm_email": page(get=(200, 302), post=(200, 302, 404, 405), key="made_up"),
    "account_email_verification_sent": page(),
    "account_reset_password": page(),
    "account_reset_password_done": page(),
    "account_reset_password_from_key": page(uidb36="made_up", key="made_up"),
    "account_reset_password_from_key_done": page(),
    "mfa_authenticate": entrance(get=(302,)),
    "mfa_login_webauthn": page(get=(200, 302, 405), post=(200, 302, 405)),
    # what guards an account
    "account_reauthenticate": of_a_person(),
    "account_email": of_a_person(),
    "account_change_password": of_a_person(),
    "account_set_password": of_a_person(),
    "mfa_index": of_a_person(),
    "mfa_list_webauthn": of_a_person(),
    "mfa_reauthenticate": of_a_person(),
    "mfa_activate_totp": of_a_person(),
    "mfa_deactivate_totp": of_a_person(get=(302, 404)),
    "mfa_view_recovery_codes": of_a_person(get=(302, 404)),
    "mfa_generate_recovery_codes": of_a_person(),
    "mfa_download_recovery_codes": of_a_person(get=(302, 404)),
    "mfa_add_webauthn": of_a_person(),
    "mfa_reauthenticate_webauthn": of_a_person(),
    "mfa_edit_webauthn": of_a_person(get=(302, 404), pk="number"),
    "mfa_remove_webauthn": of_a_person(get=(302, 404), pk="number"),
    "usersessions_list": of_a_person(),
    # organisations
    "users:account": of_a_person(),
    "users:members": own_page(),
    "users:leave": own_action(is_for_all=True),
    "users:set-role": own_action(object_of_theirs=True),
    "users:remove-member": own_action(object_of_theirs=True),
    "users:withdraw-invitation": own_action(object_of_theirs=True),
    "users:invitation": page(get=NOT_FOUND, post=NOT_FOUND, token="made_up"),
    "users:history": own_page(post=False),
    "users:keys": own_page(),
    "users:revoke-key": own_object(),
    "users:webhooks": own_page(),
    "users:webhook": own_object(post=False),
    "users:webhook-secret": own_action(object_of_theirs=True),
    "users:webhook-test": own_action(object_of_theirs=True),
    "users:webhook-on": own_action(object_of_theirs=True),
    "users:remove-webhook": own_object(),
    "users:webhook-delivery": own_object(post=False, event_id="message_id"),
    "users:webhook-again": own_action(object_of_theirs=True, event_id="message_id"),
    "users:terms": page(),
    "users:privacy": page(),
    "users:refunds": page(),
    "users:imprint": page(),
    # the exchange
    "marketplace:market": page(post=NO_METHOD),
    "marketplace:book": page(post=NO_METHOD),
    "marketplace:skypilot-csv": page(post=NO_METHOD),
    "marketplace:live-book": page(post=NO_METHOD),
    "marketplace:preview": page(post=NO_METHOD),
    "marketplace:ticket": Route(
        get=_by_session(*[(200, 302, 303)] * 4), post=_by_session(TO_LOGIN, OF_ITS_OWN, FORBIDDEN, FORBIDDEN)
    ),
    "marketplace:place": own_action(),
    "marketplace:orders": own_page(post=False),
    "marketplace:order": own_object(post=False),
    "marketplace:cancel-order": own_action(object_of_theirs=True),
    "marketplace:rentals": own_page(post=False),
    "marketplace:rental": own_object(post=False),
    "marketplace:live-rental": own_object(post=False),
    "marketplace:stop-rental": own_object(),
    "marketplace:operator-rentals": operator_page(),
    # selling, and what operators decide about it
    "marketplace:selling": page(post=NO_METHOD),
    "marketplace:seller": page(get=NOT_FOUND, post=NO_METHOD, organisation_id="number"),
    "marketplace:provider": own_page(post=False),
    "marketplace:provider-bank-account": own_page(),
    "marketplace:provider-application": own_page(),
    "marketplace:provider-take-back": providers_object(get=False),
    "marketplace:provider-terms": page(post=NO_METHOD),
    "marketplace:provider-servers": own_page(post=False),
    "marketplace:provider-new-server": own_page(),
    "marketplace:provider-server": providers_object(server_id="order_id"),
    "marketplace:provider-enrol-token": providers_object(get=False, server_id="order_id"),
    "marketplace:provider-pause": providers_object(get=False, server_id="order_id"),
    "marketplace:provider-resume": providers_object(get=False, server_id="order_id"),
    "marketplace:provider-withdraw": providers_object(get=False, server_id="order_id"),
    "marketplace:provider-earnings": own_page(post=False),
    "marketplace:provider-earnings-csv": providers_object(),
    "marketplace:operator": operator_page(),
    "marketplace:operator-applications": operator_page(),
    "marketplace:operator-application": operator_page(get=NOT_FOUND, post=(404, 405), provider_id="number"),
    "marketplace:operator-servers": operator_page(),
    "marketplace:operator-decide-server": operator_page(get=NO_METHOD, server_id="order_id"),
    "marketplace:operator-breaches": operator_page(),
    "marketplace:operator-listings": operator_page(),
    "marketplace:operator-stop-listing": operator_page(get=NO_METHOD, listing_id="order_id"),
    "marketplace:operator-audit": operator_page(),
    "marketplace:operator-prices": operator_page(),
    "marketplace:operator-rule-on-price": operator_page(get=NO_METHOD, name_pk="number"),
    # money
    "billing:wallet": own_page(post=False),
    "billing:statement-csv": own_page(post=False),
    "billing:top-up": own_page(),
    "billing:top-up-state": own_object(post=False),
    "billing:ask-about-top-up": own_action(object_of_theirs=True),
    "billing:refund": own_page(),
    "billing:tax": own_page(),
    "billing:check-vat-id": own_action(),
    "billing:operator-top-ups": operator_page(),
    "billing:operator-try-again": operator_page(get=NO_METHOD),
    "billing:operator-settle-payment": operator_page(get=NO_METHOD, payment_id="app"),
    "billing:operator-settle-movement": operator_page(get=NO_METHOD, movement_pk="number"),
    "billing:operator-disputes": operator_page(),
}
# The operators' own: a page per model and what can be done with a row, all under one guard, which sends others to sign
# in; there members are refused.
ADMIN = operator_page(
    get=(200, 302, 403, 404, 405),
    post=(200, 302, 400, 403, 404, 405),
    members=TO_LOGIN,
    object_id="number",
    content_type_id="number",
    app_label="app",
    url="made_up",
)
ADMIN_DOORS = {
    "admin:login": page(get=(200, 302, 403), post=(200, 302, 403)),
    "admin:logout": page(get=(302, 403, 405), post=(200, 302, 403)),
    "admin:jsi18n": page(get=(200, 302, 403), post=(200, 302, 403, 405)),
}


def route_of(name: str) -> Route | None:
    """Return what an address may answer; None where nobody wrote it down."""
    if name.startswith("admin:"):
        return ADMIN_DOORS.get(name, ADMIN)
    return ROUTES.get(name)
