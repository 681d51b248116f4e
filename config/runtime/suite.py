"""`manage.py test`: the suite, on servers of its own, beside whatever else runs from this home."""

import os
import signal
import subprocess
import sys

from config.runtime import addresses, postgres, root, servers, valkey
from config.runtime.lines import say
from config.translations import compile_translations

_RUNS_AT_ONCE = 9


def main(arguments: list[str]) -> int:
    """Run pytest with the given arguments; return its exit code."""
    folder = addresses.home()
    compile_translations()
    os.environ.update({"BOURSE_ENV": "test", "DJANGO_SETTINGS_MODULE": "config.settings"})
    for number in range(1, _RUNS_AT_ONCE + 1):
        os.environ["BOURSE_HOME"] = str(folder / ("test" if number == 1 else f"test-{number}"))
        env = dict(os.environ)
        try:
            with servers.owned(env, quiet=True):
                addresses.static_root().mkdir(exist_ok=True)  # whitenoise warns about a missing one
                return _pytest(arguments, env)
        except servers.HomeBusy:
            continue  # another run of the suite: take the next folder
        except (postgres.PostgresUnavailable, valkey.BrokerUnavailable, root.RootRefused) as why:
            say(str(why))
            return 1
    say(f"{_RUNS_AT_ONCE} runs of the suite are already at work in {folder}.")
    return 1


def _side_by_side(arguments: list[str]) -> list[str]:
    """The whole suite runs in two processes, a file in one of them, slow files first; chosen tests run in one, where they can be watched."""
    if any(not argument.startswith("-") or argument.startswith(("-n", "-k", "-m", "-p")) for argument in arguments):
        return []
    return ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]


def _pytest(arguments: list[str], env: dict[str, str]) -> int:
    child = subprocess.Popen(
        [sys.executable, "-m", "pytest", *_side_by_side(arguments), *arguments], env=env, cwd=addresses.PROJECT
    )
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # pytest got it too and reports; we wait so that the servers outlive it
            child.send_signal(signal.SIGINT)
