"""Money in: a payment at the gateway becomes money in a wallet, once.

`start` writes the row and opens a payment page; `take_event` stores what the gateway says, `apply_event` asks it how
things stand; `look` moves the row on and `credit` is the one way money reaches a wallet.
"""
