"""`POST /webhooks/stripe/`: the gateway tells us something. Stored at once, applied later."""

import logging
from datetime import UTC, datetime

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from kombu.exceptions import OperationalError

from billing.gateway import client
from billing.gateway.errors import BadSignature, WrongMode
from billing.tasks import apply_gateway_events
from billing.topups.take_event import UnstorableEvent, take_event

log = logging.getLogger("topups")
MOST_BYTES = 256 * 1024


@csrf_exempt  # the signature says who sends
@require_POST
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Answer 200 once the event is stored, also when it was before; 400 for what the gateway did not send like this."""
    if _length_of(request) > MOST_BYTES:
        return HttpResponse("Too large.\n", status=413, content_type="text/plain")
    try:
        event = client.verify_event(request.body, request.headers.get("Stripe-Signature", ""))
        is_new = take_event(event, now=datetime.now(UTC))
    except (BadSignature, WrongMode, UnstorableEvent) as refusal:
        log.warning("Refused a message to the webhook: %s", refusal)
        return HttpResponse("Refused.\n", status=400, content_type="text/plain")
    if is_new:
        transaction.on_commit(_nudge)
    return HttpResponse("Stored.\n", content_type="text/plain")


def _nudge() -> None:
    """Have it applied now rather than at the next tick of beat; without a broker the tick will do."""
    try:
        apply_gateway_events.apply_async(retry=False, expires=60)
    except OperationalError as problem:
        log.warning("The event waits for beat: %s", problem)


def _length_of(request: HttpRequest) -> int:
    length = request.headers.get("Content-Length") or "0"
    return int(length) if length.isdecimal() else MOST_BYTES + 1
