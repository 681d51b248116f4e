"""Ports of this machine's own addresses, of both families where there are two."""

import socket

_PORTS_TRIED = 50


def loopback_hosts() -> list[str]:
    """Return the addresses to listen on, as servers take them."""
    if not socket.has_ipv6:
        return ["127.0.0.1"]
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "[::1]"]


def first_free(wanted: int) -> int | None:
    """Return the first port from `wanted` on that is free on every address; None when there is none nearby."""
    nearby = range(wanted, min(wanted + _PORTS_TRIED, 65536))
    return next((port for port in nearby if _is_free(port)), None)


def _is_free(port: int) -> bool:
    for host in loopback_hosts():
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), port))
            except OSError:
                return False
    return True
