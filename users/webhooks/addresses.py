"""Which addresses may be told: public ones, by https on its own port, under a name that a certificate can be for.

Two looks. The first is at the address as it was typed, the second at what its name stands for at the moment of
sending: whoever owns a name decides that anew each time, so only the second one protects our own network.
For a receiver on one's own machine both have an exception, which is off unless a setting turns it on.

>>> read_url("https://hooks.example.com/bourse?team=4").path
'/bourse?team=4'
>>> read_url("https://169.254.169.254/latest/")
Traceback (most recent call last):
    ...
users.webhooks.addresses.UrlRefused: not_a_name
>>> is_public("93.184.216.34"), is_public("::ffff:127.0.0.1"), is_public("100.64.0.1")
(True, False, False)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

LONGEST_URL = 500
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)
_UNSAFE = re.compile(r'[\\"<>^`{|}]', re.ASCII)
# The last label begins with a letter: what ends in a number is an IPv4 address in one of its many spellings.
_NAME = re.compile(r"(?=.{4,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])", re.ASCII)
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "onion", "invalid", "test")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1")
# IANA's registries of special purposes, multicast and what is reserved. Of IPv6 only 2000::/3 is given out at all:
# that leaves out loopback, private, link-local and multicast ranges, and every form that carries an IPv4 address.
_SPECIAL_V4 = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
            "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
_GIVEN_OUT_V6 = ip_network("2000::/3")
_SPECIAL_V6 = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")))


class UrlRefused(ValueError):
    """This address is never told anything; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class NotReachable(ValueError):
    """The name stands for an address that is not public, or for none."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where to send: `path` with its query. `is_loopback`: on this very machine, which only a setting allows."""

    scheme: str
    host: str
    port: int
    path: str
    is_loopback: bool = False


def read_url(url: str, *, is_loopback_allowed: bool = False) -> Target:
    """Return the parts of an address. Raises UrlRefused."""
    if len(url) > LONGEST_URL:
        raise UrlRefused("too_long")
    if not _PRINTABLE.fullmatch(url) or _UNSAFE.search(url):
        raise UrlRefused("not_a_url")
    parts, port = _split(url)
    host = (parts.hostname or "").lower()
    if parts.username is not None or parts.password is not None:
        raise UrlRefused("has_credentials")
    if parts.fragment or url.endswith("#"):
        raise UrlRefused("has_fragment")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if is_loopback_allowed and host in _LOOPBACK_NAMES and parts.scheme in ("http", "https"):
        usual = 443 if parts.scheme == "https" else 80
        return Target(scheme=parts.scheme, host=host, port=port or usual, path=path, is_loopback=True)
    _check_public(parts.scheme, host, port)
    return Target(scheme="https", host=host, port=443, path=path)


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise UrlRefused("not_a_url") from None


def _check_public(scheme: str, host: str, port: int | None) -> None:
    if scheme != "https":
        raise UrlRefused("not_https")
    if port not in (None, 443):
        raise UrlRefused("other_port")
    if host.rpartition(".")[2] in _LOCAL_NAMES:
        raise UrlRefused("local_name")
    if not _NAME.fullmatch(host):
        raise UrlRefused("not_a_name")


def reachable_address(target: Target, resolved: Sequence[str]) -> str:
    """Return the one address to connect to, of all that the target's name stands for. Raises NotReachable.

    One that is not public spoils them all: such an answer is a mistake or an attack. IPv4 goes first.
    """
    is_fine = is_loopback if target.is_loopback else is_public
    if not resolved or not all(map(is_fine, resolved)):
        raise NotReachable(", ".join(resolved))
    return min(resolved, key=lambda address: ":" in address)


def is_public(address: str) -> bool:
    """Whether an address in its usual spelling is given out to the public network, for one receiver."""
    parsed = _parsed(address)
    if isinstance(parsed, IPv4Address):
        return parsed.is_global and not any(parsed in network for network in _SPECIAL_V4)
    if isinstance(parsed, IPv6Address):
        return parsed in _GIVEN_OUT_V6 and parsed.is_global and not any(parsed in network for network in _SPECIAL_V6)
    return False


def is_loopback(address: str) -> bool:
    """Whether this is the machine itself."""
    parsed = _parsed(address)
    return parsed is not None and parsed.is_loopback


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address) if "%" not in address else None
    except ValueError:
        return None
