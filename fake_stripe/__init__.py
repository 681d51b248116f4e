"""A test gateway that speaks Stripe's public API: Checkout, payments, refunds, disputes, balance, signed messages.

    python -m fake_stripe --port 8420 --state payments.sqlite --webhook http://localhost:8000/webhooks/stripe/

No money moves. It is a program of its own, needs the standard library alone and imports nothing of the site, which
reaches it over HTTP by Stripe's own library. Its state is one file, so that a restart loses nothing; what goes wrong
with a real gateway (lost answers, doubled and late messages, refunds that fail) is switched on under `/_control/`.

Read `api.py` for the calls, `paying.py` for what a payment does, `control.py` for the switches.
"""

API_VERSION = "2026-10-28.endive"
