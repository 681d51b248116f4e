"""The payment gateway: what we ask Stripe, in our own types. No model, no ledger, no decision about money.

`client` is the only module of the site that imports the Stripe library.
"""
