#!/usr/bin/env python3
"""The one door: builds `.venv` when needed, then runs the command in it.

    python3 manage.py demo     the whole site with sample data
    python3 manage.py test     the test suite
    python3 manage.py help     everything else

Only the standard library is used up to the moment the environment exists.
"""

import fcntl
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

PROJECT = Path(__file__).resolve().parent
VENV = PROJECT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "built-from.json"
LOCKS = {"demo": PROJECT / "requirements-demo.lock", "test": PROJECT / "requirements-test.lock"}


def main() -> int:
    """Run the command named on the command line; return its exit code."""
    arguments = sys.argv[1:]
    if sys.version_info < (3, 11):
        give_up(f"GPU Bourse needs Python 3.11 or later; this is {sys.version.split()[0]}.")
    if os.environ.get("BOURSE_ENV") != "production":  # there, the image already holds the packages
        ensure_environment("test" if arguments[:1] == ["test"] else "demo")
        os.environ.setdefault("BOURSE_ENV", "demo")
    return run(arguments)


def run(arguments: list[str]) -> int:
    """Hand over to `config.runtime`, which exists only inside the environment."""
    sys.path.insert(0, str(PROJECT))
    name = arguments[0] if arguments else "help"
    module = {"demo": "demo", "test": "suite"}.get(name, "commands")
    entry = importlib.import_module(f"config.runtime.{module}").main
    return int(entry(arguments if module == "commands" else arguments[1:]))


def ensure_environment(profile: str) -> None:
    """Build or refresh `.venv` for the profile and continue inside it; returns when we already are."""
    if not is_current(profile):
        with (PROJECT / ".venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two first starts at once build once
            if not is_current(profile):
                build(profile)
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), str(PROJECT / "manage.py"), *sys.argv[1:]])


def is_current(profile: str) -> bool:
    """Whether `.venv` was built whole from today's lock; the test set contains the demo's."""
    built = built_from()
    enough = ("test",) if profile == "test" else ("demo", "test")
    return VENV_PYTHON.exists() and any(built.get(name) == digest(LOCKS[name]) for name in enough)


def built_from() -> dict[str, str]:
    """Return the stamp: profile and fingerprint of its lock; empty when `.venv` is missing or half-built."""
    try:
        return dict(json.loads(STAMP.read_text()))
    except (OSError, ValueError):
        return {}


def build(profile: str) -> None:
    """Make `.venv` and install the locked packages, hashes checked; the stamp is written last."""
    started = time.monotonic()
    if "test" in built_from():  # an environment that had the test tools keeps them
        profile = "test"
    lock = LOCKS[profile]
    if VENV.exists() and not (STAMP.exists() and VENV_PYTHON.exists()):
        print("  Found a half-built .venv: building it anew", flush=True)
        shutil.rmtree(VENV)
    uv = shutil.which("uv")
    if not VENV_PYTHON.exists():
        print("  Making .venv", flush=True)
        make_venv(uv)
    print(f"  Installing the packages of {lock.name} (the first time takes a minute)", flush=True)
    install(uv, lock)
    STAMP.write_text(json.dumps({profile: digest(lock)}))
    print(f"  Packages are in place ({time.monotonic() - started:.1f} s)", flush=True)


def make_venv(uv: str | None) -> None:
    """Make the empty environment with uv, else with Python's own module."""
    if (
        uv
        and subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)], check=False).returncode == 0
    ):
        return
    if importlib.util.find_spec("ensurepip") is None:
        give_up("Python's venv module is missing here. Type: sudo apt install python3-venv   (or: brew install uv)")
    if subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False).returncode != 0:
        give_up("The environment could not be made; the lines above say why.")


def install(uv: str | None, lock: Path) -> None:
    """Install exactly what the lock names."""
    has_pip = subprocess.run([str(VENV_PYTHON), "-c", "import pip"], capture_output=True, check=False).returncode == 0
    if uv and not has_pip:
        command = [uv, "pip", "install", "--quiet", "--python", str(VENV_PYTHON), "--require-hashes", "-r", str(lock)]
    else:
        if not has_pip:  # uv made this environment and is gone
            subprocess.run([str(VENV_PYTHON), "-m", "ensurepip"], capture_output=True, check=False)
        pip = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
        command = [*pip, "--no-deps", "--require-hashes", "-r", str(lock)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if answer.returncode != 0:
        print("\n".join(answer.stdout.strip().splitlines()[-6:]), flush=True)
        give_up("The packages could not be installed. Is there a network? Start again when there is: nothing is lost.")


def digest(path: Path) -> str:
    """Return the lock's fingerprint, bound to this Python's version."""
    return hashlib.sha256(path.read_bytes() + sys.version[:4].encode()).hexdigest()


def give_up(reason: str) -> NoReturn:
    """Say one clear line and end."""
    print(reason, file=sys.stderr, flush=True)
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
