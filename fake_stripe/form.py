"""Parameters as Stripe takes them: `line_items[0][price_data][currency]=eur`, read by name, none left over.

>>> nest([("a[b]", "1"), ("c[0][d]", "2"), ("c[1][d]", "3"), ("e[]", "4")])
{'a': {'b': '1'}, 'c': [{'d': '2'}, {'d': '3'}], 'e': ['4']}
"""

import re
from collections.abc import Iterable
from typing import Any

from fake_stripe.errors import ApiError

_MOST_NOTES = 50


class Form:
    """The parameters of one call. What nobody asked for is refused by `end`."""

    def __init__(self, values: dict[str, Any], *, prefix: str = "") -> None:
        self._values = dict(values)
        self._prefix = prefix
        self._inner: list[Form] = []

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises ApiError when it is missing and has no default."""
        value = self._values.pop(name, default)
        if value is None:
            raise ApiError(f"Missing required param: {self._full(name)}.", code="parameter_missing", param=name)
        if not isinstance(value, str):
            raise self._invalid(name, "string")
        return value

    def maybe(self, name: str) -> str | None:
        """Return a text, None when it is not given or empty."""
        return self.text(name, "") or None

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a whole number. Raises ApiError for anything else."""
        text = self.text(name, None if default is None else str(default))
        if not re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
            raise self._invalid(name, "integer")
        return int(text)

    def has(self, name: str) -> bool:
        """Whether the parameter is given."""
        return name in self._values

    def is_nested(self, name: str) -> bool:
        """Whether the parameter is given as `name[...]`."""
        return isinstance(self._values.get(name), dict)

    def inner(self, name: str) -> "Form":
        """Return the parameters inside `name[...]`, none when it is not given."""
        value = self._values.pop(name, {})
        if not isinstance(value, dict):
            raise self._invalid(name, "hash")
        return self._keep(Form(value, prefix=self._full(name)))

    def each(self, name: str) -> list["Form"]:
        """Return the parameters inside `name[0][...]`, `name[1][...]`, and so on."""
        value = self._values.pop(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._invalid(name, "array")
        return [self._keep(Form(item, prefix=f"{self._full(name)}[{n}]")) for n, item in enumerate(value)]

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, one given alone included."""
        value = self._values.pop(name, [])
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]

    def notes(self, name: str = "metadata") -> dict[str, str]:
        """Return metadata: names and texts."""
        value = self._values.pop(name, {})
        if not isinstance(value, dict) or len(value) > _MOST_NOTES:
            raise self._invalid(name, "hash")
        return {str(key): str(text) for key, text in value.items() if text != ""}

    def end(self) -> None:
        """Refuse parameters that the call does not have."""
        for inner in self._inner:
            inner.end()
        for name in self._values:
            raise ApiError(
                f"Received unknown parameter: {self._full(name)}", code="parameter_unknown", param=self._full(name)
            )

    def _keep(self, inner: "Form") -> "Form":
        self._inner.append(inner)
        return inner

    def _full(self, name: str) -> str:
        return f"{self._prefix}[{name}]" if self._prefix else name

    def _invalid(self, name: str, wanted: str) -> ApiError:
        return ApiError(f"Invalid {wanted}: {self._full(name)}", code="parameter_invalid", param=self._full(name))


def nest(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return flat pairs as nested dictionaries and lists."""
    tree: dict[str, Any] = {}
    for name, value in pairs:
        first, *rest = re.findall(r"[^\[\]]+|(?<=\[)(?=\])", name) or [name]
        _put(tree, [first, *rest], value)
    return {name: _with_lists(branch) for name, branch in tree.items()}


def _put(tree: dict[str, Any], path: list[str], value: str) -> None:
    for step in path[:-1]:
        branch = tree.setdefault(step, {})
        if not isinstance(branch, dict):
            raise ApiError(f"Invalid parameter: {step}", code="parameter_invalid", param=step)
        tree = branch
    last = path[-1] or str(len(tree))  # `name[]`: the next place in the list
    tree[last] = value


def _with_lists(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    inner = {name: _with_lists(value) for name, value in branch.items()}
    if inner and all(name.isdigit() for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
