"""A JSON body read with care: bounded in size and depth, no repeated names, no NaN."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import IO, Any, ClassVar

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from common.problems import Problem

MOST_BYTES = 512 * 1024  # a config.json takes a few KB; the longest known, with a line per layer, 60
MOST_DEPTH = 16


class BoundedJSONParser(BaseParser):
    """Parses `application/json`."""

    media_type = "application/json"
    most_bytes: ClassVar[int] = MOST_BYTES

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the body's value. Raises ParseError, or a 413 problem for a body that is too large."""
        body = stream.read(self.most_bytes + 1)
        if len(body) > self.most_bytes:
            detail = _("The body is larger than %(most)d KB.") % {"most": self.most_bytes // 1024}
            raise Problem(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, code="too_large", detail=detail)
        try:
            value = json.loads(body.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as problem:
            reason = _("nested too deeply") if isinstance(problem, RecursionError) else str(problem)[:200]
            raise ParseError(_("The body is no JSON that can be read: %(reason)s") % {"reason": reason}) from problem
        if _depth(value) > MOST_DEPTH:
            raise ParseError(_("The body is nested deeper than %(most)d levels.") % {"most": MOST_DEPTH})
        return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:60]!r} is given twice")
        found[name] = value
    return found


def _depth(value: Any) -> int:
    """Return how deep lists and objects are nested, counted level by level."""
    depth, level = 0, [value]
    while level := [item for outer in level if isinstance(outer, dict | list) for item in _items(outer)]:
        depth += 1
        if depth > MOST_DEPTH:
            break
    return depth


def _items(outer: dict[str, Any] | list[Any]) -> list[Any]:
    return list(outer.values()) if isinstance(outer, dict) else outer
