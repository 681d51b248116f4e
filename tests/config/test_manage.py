"""`manage.py` on a machine that has nothing yet: a project of three files, so that each start takes seconds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def project(tmp_path):
    """A copy of manage.py with an empty lock and one command that says in which Python it runs."""
    shutil.copy(PROJECT / "manage.py", tmp_path)
    for name in ("requirements-demo.lock", "requirements-test.lock"):
        (tmp_path / name).write_text("")
    package = tmp_path / "config" / "runtime"
    package.mkdir(parents=True)
    (package / "commands.py").write_text(
        "import sys\ndef main(arguments):\n    print('ran in', sys.prefix)\n    return 0\n"
    )
    return tmp_path


def call(project: Path, *, path: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    env = {"PATH": path or "/usr/bin:/bin", "HOME": str(project), **more}
    return subprocess.run(
        [base, "manage.py", "version"], cwd=project, env=env, capture_output=True, text=True, check=False
    )


def test_the_first_call_builds_the_environment_and_runs_in_it(project):
    answer = call(project)
    assert answer.returncode == 0, answer.stderr
    assert "Making .venv" in answer.stdout
    assert f"ran in {project / '.venv'}" in answer.stdout
    assert "Making .venv" not in call(project).stdout, "the second call finds it"


def test_a_half_built_environment_is_built_anew(project):
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").write_text("half")
    answer = call(project)
    assert answer.returncode == 0, answer.stderr
    assert "half-built .venv" in answer.stdout


def test_a_changed_lock_is_installed_again(project):
    call(project)
    (project / "requirements-demo.lock").write_text("# changed\n")
    assert "Installing the packages" in call(project).stdout


def test_an_environment_without_pip_gets_it_back(project):
    call(project)
    subprocess.run([str(project / ".venv/bin/python"), "-m", "pip", "-q", "uninstall", "-y", "pip"], check=True)
    (project / "requirements-demo.lock").write_text("# changed\n")
    answer = call(project)
    assert answer.returncode == 0, answer.stderr


def test_without_a_network_one_clear_line_says_what_to_do(project):
    lock = "six==1.16.0 --hash=sha256:" + "0" * 64 + "\n"
    (project / "requirements-demo.lock").write_text(lock)
    answer = call(project, PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_CONFIG_FILE=os.devnull)
    assert answer.returncode == 1
    assert "Is there a network?" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_without_the_venv_module_the_line_to_type_is_named(project):
    (project / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'ensurepip' else find(n, *a)\n"
    )
    answer = call(project, PYTHONPATH=str(project))
    assert answer.returncode == 1
    assert "sudo apt install python3-venv" in answer.stderr


def test_an_old_python_is_told_which_one_is_needed(project):
    (project / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 9, 2)\n")
    answer = call(project, PYTHONPATH=str(project))
    assert answer.returncode == 1
    assert "needs Python 3.11 or later" in answer.stderr
