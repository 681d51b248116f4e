"""The answers of a call that is refused, in Stripe's form."""

from typing import Any


class ApiError(Exception):
    """A refusal. `is_kept`: the call had begun, so the same idempotency key gets the same refusal again."""

    def __init__(
        self, message: str, *, status: int = 400, code: str = "", param: str = "", kind: str = "", is_kept: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.kind = kind or "invalid_request_error"
        self.is_kept = is_kept

    def body(self) -> dict[str, Any]:
        """Return the JSON of the answer."""
        error = {"type": self.kind, "message": self.message, "code": self.code, "param": self.param}
        return {"error": {name: value for name, value in error.items() if value}}


def missing_object(kind: str, object_id: str, *, param: str = "id", status: int = 404) -> ApiError:
    """Return the refusal of an id that does not exist."""
    return ApiError(f"No such {kind}: '{object_id}'", status=status, code="resource_missing", param=param)


def server_error() -> ApiError:
    """Return the answer of a gateway that broke."""
    return ApiError("An unknown error occurred", status=500, kind="api_error")
