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
    return new_project(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project whose environment is there: building it takes longer than all that is asked of it."""
    project = new_project(tmp_path_factory.mktemp("built"))
    answer = call(project)
    assert answer.returncode == 0, answer.stderr
    assert "Making .venv" in answer.stdout
    assert f"ran in {project / '.venv'}" in answer.stdout
    return project


def new_project(tmp_path: Path) -> Path:
    """Make a copy of manage.py with an empty lock and one command that says in which Python it runs."""
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


def test_the_second_call_finds_what_the_first_has_built(built):
    answer = call(built)
    assert f"ran in {built / '.venv'}" in answer.stdout
    assert "Making .venv" not in answer.stdout
    assert "Installing" not in answer.stdout


def test_a_half_built_environment_is_built_anew(project):
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").write_text("half")
    answer = call(project)
    assert answer.returncode == 0, answer.stderr
    assert "half-built .venv" in answer.stdout


def test_a_changed_lock_is_installed_again_and_pip_put_back_where_it_is_gone(built):
    subprocess.run([str(built / ".venv/bin/python"), "-m", "pip", "-q", "uninstall", "-y", "pip"], check=True)
    (built / "requirements-demo.lock").write_text("# changed\n")
    answer = call(built)
    assert answer.returncode == 0, answer.stderr
    assert "Installing the packages" in answer.stdout


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
