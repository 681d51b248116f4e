"""Lists, newest first and page by page, and ids replaced by their objects (`expand`)."""

from itertools import islice
from typing import Any

from fake_stripe.errors import ApiError, missing_object
from fake_stripe.form import Form
from fake_stripe.store import Json
from fake_stripe.world import World, public

# Kind of object: the fields its list may be narrowed by, beside `created`.
FILTERS: dict[str, tuple[str, ...]] = {
    "checkout.session": ("customer", "payment_intent", "status"),
    "payment_intent": ("customer",),
    "charge": ("customer", "payment_intent"),
    "refund": ("charge", "payment_intent"),
    "dispute": ("charge", "payment_intent"),
    "customer": ("email",),
    "event": ("type",),
    "balance_transaction": ("currency", "source", "type"),
    "payout": ("status",),
}
_MOST_ROWS = 100
_DEEPEST = 4


def list_of(world: World, kind: str, form: Form, *, url: str) -> Json:
    """Return one page of a kind's objects."""
    limit = form.whole("limit", 10)
    if not 1 <= limit <= _MOST_ROWS:
        raise ApiError("limit must be between 1 and 100.", code="parameter_invalid_integer", param="limit")
    after, before = form.maybe("starting_after"), form.maybe("ending_before")
    wanted = {name: form.text(name) for name in FILTERS[kind] if form.has(name)}
    types = form.texts("types") if kind == "event" else []
    span = _span(form)
    expand = form.texts("expand")
    form.end()
    fits = (
        thing
        for thing in world.store.newest(kind, before=_place(world, after, 2**62), after=_place(world, before, 0))
        if _is_in(thing["created"], span)
        and all(thing.get(name) == value for name, value in wanted.items())
        and (not types or thing["type"] in types)
    )
    found = list(fits if before else islice(fits, limit + 1))
    rows = found[-limit:] if before else found[:limit]
    data = [expanded(world, thing, [path.removeprefix("data.") for path in expand]) for thing in rows]
    return {"object": "list", "url": url, "has_more": len(found) > limit, "data": data}


def expanded(world: World, thing: Json, paths: list[str]) -> Json:
    """Return an object as the API shows it, the ids at `paths` ("latest_charge.balance_transaction") replaced."""
    shown = public(thing)
    for path in paths:
        steps = path.split(".")
        if len(steps) > _DEEPEST:
            raise ApiError("You cannot expand more than 4 levels of a property.", param="expand")
        _expand(world, shown, steps, path)
    return shown


def _expand(world: World, shown: Json, steps: list[str], path: str) -> None:
    value = shown.get(steps[0])
    if steps[0] not in shown or not isinstance(value, str | dict | None):
        raise ApiError(f"This property cannot be expanded ({path}).", param="expand")
    if isinstance(value, str):
        found = world.store.find_any(value)
        if found is None:
            raise ApiError(f"This property cannot be expanded ({path}).", param="expand")
        value = shown[steps[0]] = public(found)
    if value is not None and steps[1:]:
        _expand(world, value, steps[1:], path)


def _place(world: World, object_id: str | None, default: int) -> int:
    if object_id is None:
        return default
    place = world.store.place_of(object_id)
    if place is None:
        raise missing_object("object", object_id, param="starting_after", status=400)
    return place


def _span(form: Form) -> dict[str, int]:
    if not form.has("created"):
        return {}
    if not form.is_nested("created"):
        return {"exactly": form.whole("created")}
    inner = form.inner("created")
    return {name: inner.whole(name) for name in ("gt", "gte", "lt", "lte") if inner.has(name)}


def _is_in(created: Any, span: dict[str, int]) -> bool:
    tests = {
        "exactly": created == span.get("exactly"),
        "gt": created > span.get("gt", 0),
        "gte": created >= span.get("gte", 0),
        "lt": created < span.get("lt", 0),
        "lte": created <= span.get("lte", 0),
    }
    return all(tests[name] for name in span)
