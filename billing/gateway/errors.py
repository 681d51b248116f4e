"""Why a call to the gateway gave no answer we can use."""


class GatewayError(Exception):
    """A call to the gateway failed; the subclass says what is known about the outcome."""


class GatewayOff(GatewayError):
    """No key is set and no test gateway runs: nothing was asked."""


class GatewayUnavailable(GatewayError):
    """No usable answer: a time-out, a broken connection, a 5xx, a 429, or a key that was refused.

    Whether the call took effect is unknown. Ask again with the same key, or look for the object by its metadata.
    """


class GatewayRefused(GatewayError):
    """The gateway refused, and nothing happened there. `code` is its own ("amount_too_small"), "" when it gave none."""

    def __init__(self, *, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NoSuchObject(GatewayRefused):
    """The gateway does not know the object, or one that the call named."""


class KeyConflict(GatewayError):
    """The idempotency key was used before with other parameters."""


class BadSignature(GatewayError):
    """The message is not signed with a secret of ours, is older than five minutes, or is no event."""


class WrongMode(GatewayError):
    """A test message where live ones are expected, or the other way round."""
