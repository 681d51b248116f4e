"""Starting and stopping child processes so that none outlives the site.

Each child gets its own session and log file, is asked by the kernel to end when its parent dies, and is noted in
`processes.json`: what a killed run left behind is found and stopped at the next start.
"""

import contextlib
import ctypes
import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOG_BYTES = 5_000_000


@dataclass(kw_only=True)
class Child:
    """One supervised process. `stop_signal` asks it to end cleanly within `stop_seconds`."""

    name: str
    command: Sequence[str]
    log: Path
    env: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; its output is appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.old"))
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.env),
                start_new_session=True,
                preexec_fn=_die_with_parent(self.stop_signal),
            )

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.popen is not None and self.popen.poll() is None

    def ask_to_stop(self) -> None:
        """Send the stop signal, without waiting."""
        if self.popen is not None and self.popen.poll() is None:
            self.popen.send_signal(self.stop_signal)

    def stop(self) -> None:
        """Ask, wait, then insist: afterwards no process of its session is left."""
        if self.popen is None:
            return
        self.ask_to_stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(self.stop_seconds)
        _kill_group(self.popen.pid)
        self.popen.wait(5)

    def last_lines(self, count: int = 5) -> str:
        """Return the end of the log, for a message."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


def note_children(path: Path, children: Sequence[Child]) -> None:
    """Write which processes run now, with the kernel's start time so that a reused pid is not taken for ours."""
    rows = [
        {"name": child.name, "pid": child.popen.pid, "started": start_ticks(child.popen.pid)}
        for child in children
        if child.popen is not None and child.is_running
    ]
    path.write_text(json.dumps(rows))


def stop_leftovers(path: Path) -> list[str]:
    """Stop what a killed run left behind; return the names of what was found."""
    try:
        rows = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return []
    alive = [row for row in rows if row["started"] is not None and start_ticks(row["pid"]) == row["started"]]
    for row in alive:
        _signal(row["pid"], signal.SIGINT if row["name"] == "postgres" else signal.SIGTERM)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(start_ticks(row["pid"]) == row["started"] for row in alive):
        time.sleep(0.1)
    for row in alive:
        if start_ticks(row["pid"]) == row["started"]:
            _kill_group(row["pid"])
    path.unlink(missing_ok=True)
    return [row["name"] for row in alive]


def start_ticks(pid: int) -> str | None:
    """Return when a process started, in the system's own words; None when there is no such living process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if platform.system() == "Linux":
            return None
        answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return answer.stdout.strip() or None
    return None if fields[0] == "Z" else fields[19]


def _die_with_parent(stop_signal: signal.Signals) -> Callable[[], None] | None:
    if platform.system() != "Linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def arrange() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(stop_signal))
        if os.getppid() != parent:  # the parent died between fork and here
            os._exit(1)

    return arrange


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
