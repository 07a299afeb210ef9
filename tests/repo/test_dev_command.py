"""dev.py decides well before it touches the network: stamps, repairs, fallbacks, refusals."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.repo.source_files import ROOT, python_files
from tools import needs, terminal, venv


def load_dev() -> ModuleType:
    """dev.py as a module: it is a script, so it is loaded from its path."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dev"] = module  # its dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


dev = load_dev()


@pytest.fixture
def checkout(tmp_path: Path) -> venv.Venv:
    """A folder that looks like a clone, in which nothing was set up; its name has a space on purpose."""
    root = tmp_path / "a clone"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("x==1\n")
    return venv.Venv(root)


def put_program(checkout: venv.Venv, name: str, *, code: int) -> None:
    """Put a program into .venv that notes how it was called and ends with a code."""
    program = Path(checkout.tool(name))
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{checkout.root}/calls"\necho words of {name}\nexit {code}\n')
    program.chmod(0o755)


def calls(checkout: venv.Venv) -> list[str]:
    """How the programs of .venv were called."""
    return (checkout.root / "calls").read_text().splitlines()


def finish_set_up(checkout: venv.Venv, profile: venv.Profile) -> None:
    """Leave .venv as a set-up leaves it."""
    put_program(checkout, "python", code=0)
    checkout.origin.write_text(venv.expected_origin(checkout.root))
    checkout.stamp(profile.name).write_text(venv.stamp_key(checkout.root))


# --- stamps and repairs -----------------------------------------------------------------------------------------------


def test_finished_set_up_is_recognised(checkout):
    finish_set_up(checkout, venv.EVERYTHING)

    assert checkout.fault() == ""
    assert checkout.has(venv.EVERYTHING)


def test_tools_of_the_tests_include_what_the_demo_needs_but_not_the_other_way_round(checkout):
    finish_set_up(checkout, venv.EVERYTHING)
    assert checkout.has(venv.RUNTIME)

    checkout.stamp("test").rename(checkout.stamp("run"))
    assert not checkout.has(venv.EVERYTHING)


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_file_asks_for_a_new_installation(checkout, name):
    finish_set_up(checkout, venv.RUNTIME)

    (checkout.root / name).write_text("changed\n")

    assert not checkout.has(venv.RUNTIME)
    assert checkout.fault() == ""


def test_text_that_moves_from_one_file_to_the_other_changes_the_stamp(checkout):
    before = venv.stamp_key(checkout.root)

    (checkout.root / "pyproject.toml").write_text("[project]\nx==1\n")
    (checkout.root / "constraints.txt").write_text("")

    assert venv.stamp_key(checkout.root) != before


def test_another_python_makes_another_venv(checkout, monkeypatch):
    finish_set_up(checkout, venv.RUNTIME)

    monkeypatch.setattr(venv.platform, "python_version", lambda: "3.99.0")

    assert "another Python" in checkout.fault()


def test_venv_that_was_copied_with_its_folder_is_not_trusted(checkout):
    finish_set_up(checkout, venv.RUNTIME)

    moved = venv.Venv(checkout.root.rename(checkout.root.with_name("copy")))

    assert "another folder" in moved.fault()


def test_set_up_that_was_killed_in_the_middle_is_begun_again(checkout):
    finish_set_up(checkout, venv.RUNTIME)

    with pytest.raises(KeyboardInterrupt), checkout.changing():
        raise KeyboardInterrupt

    assert checkout.fault() == "the last set-up was cut short"
    assert not checkout.has(venv.RUNTIME)


def test_venv_without_its_python_is_made_again(checkout):
    finish_set_up(checkout, venv.RUNTIME)

    Path(checkout.tool("python")).unlink()

    assert checkout.fault() == "its Python is gone"


def test_folder_that_nobody_finished_is_replaced_as_a_whole(checkout, monkeypatch):
    (checkout.path / "half").mkdir(parents=True)
    monkeypatch.setattr(venv, "make", lambda place, why: put_program(place, "python", code=0))

    venv.make_usable(checkout)

    assert checkout.fault() == ""
    assert not (checkout.path / "half").exists()


def test_second_set_up_starts_no_program_at_all(checkout):
    finish_set_up(checkout, venv.RUNTIME)

    venv.set_up(checkout, venv.RUNTIME)

    assert not (checkout.root / "calls").exists()


def test_set_up_without_pinned_versions_says_what_to_do(checkout):
    (checkout.root / "constraints.txt").unlink()

    with pytest.raises(terminal.Problem, match=r"constraints\.txt is missing"):
        venv.set_up(checkout, venv.RUNTIME)


# --- uv, pip ----------------------------------------------------------------------------------------------------------


def test_uv_installs_with_our_versions(checkout):
    put_program(checkout, "uv", code=0)

    venv.install(checkout, venv.EVERYTHING)

    (call,) = calls(checkout)
    assert call.startswith("uv pip install")
    assert "-c constraints.txt" in call
    assert call.endswith("-e .[dev]")


def test_pip_takes_over_when_uv_fails(checkout, capsys):
    put_program(checkout, "uv", code=1)
    put_program(checkout, "python", code=0)

    venv.install(checkout, venv.RUNTIME)

    assert [call.split()[0] for call in calls(checkout)] == ["uv", "python", "python"]
    assert calls(checkout)[1:] == [
        "python -m pip install -c constraints.txt -U pip",
        "python -m pip install -c constraints.txt -e .[cli,server]",
    ]
    printed = capsys.readouterr().out
    assert "words of uv" in printed
    assert "uv did not manage (exit code 1): going on with pip" in printed


def test_pip_takes_over_when_uv_cannot_even_start(checkout):
    put_program(checkout, "python", code=0)
    Path(checkout.tool("uv")).write_bytes(b"not a program")

    venv.install(checkout, venv.RUNTIME)

    assert calls(checkout)[-1] == "python -m pip install -c constraints.txt -e .[cli,server]"


def test_failure_of_both_shows_what_pip_said(checkout):
    put_program(checkout, "uv", code=1)
    put_program(checkout, "python", code=1)

    with pytest.raises(terminal.Problem, match="words of python"):
        venv.install(checkout, venv.RUNTIME)


def test_pins_are_versions_and_nothing_else():
    unwanted = ["--index-url https://x.org/simple", "# note", "d @ file:///d", "    # via e", ""]
    wanted = ["a-b==1.0", "c==2.0 ; sys_platform == 'win32'"]

    assert venv.pins("\n".join(unwanted + wanted)) == wanted


def test_foreign_python_settings_do_not_reach_our_programs(checkout, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("PIP_USER", "1")

    env = checkout.environment()

    assert not {"PYTHONPATH", "PIP_USER"} & env.keys()
    assert env["PATH"].startswith(str(checkout.path / "bin"))


def test_home_that_cannot_be_written_turns_the_cache_of_uv_off(checkout, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout.root / "pyproject.toml" / "cache"))

    assert checkout.environment()["UV_NO_CACHE"] == "1"


# --- what the system must have ----------------------------------------------------------------------------------------


def put_postgres(folder: Path, *programs: str) -> Path:
    """Make a folder of PostgreSQL programs."""
    folder.mkdir(parents=True)
    for program in programs:
        (folder / program).touch()
    return folder


def test_given_server_is_used_before_any_installed_one(tmp_path):
    put_postgres(tmp_path / "15" / "bin", "initdb")

    assert needs.find_postgres({"BIDE_TEST_PG_DSN": "host=db"}, tmp_path) == "host=db"


def test_newest_postgres_with_a_server_is_found(tmp_path):
    put_postgres(tmp_path / "9.6" / "bin", "initdb")
    newest = put_postgres(tmp_path / "15" / "bin", "initdb")
    put_postgres(tmp_path / "17" / "bin", "psql")

    assert needs.find_postgres({"PATH": ""}, tmp_path) == str(newest)


def test_postgres_elsewhere_is_found_through_pg_config(tmp_path):
    elsewhere = put_postgres(tmp_path / "opt" / "bin", "initdb")
    pg_config = elsewhere / "pg_config"
    pg_config.write_text(f"#!/bin/sh\necho {elsewhere}\n")
    pg_config.chmod(0o755)

    assert needs.find_postgres({"PATH": str(elsewhere)}, tmp_path / "none") == str(elsewhere)


def test_missing_postgres_is_noticed(tmp_path):
    assert needs.find_postgres({"PATH": str(tmp_path)}, tmp_path) is None


def put_speaker(folder: Path, name: str, words: str) -> str:
    """Make a program that says some words."""
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{words}'\n")
    program.chmod(0o755)
    return str(program)


def test_model_checker_is_told_from_another_program_of_its_name(tmp_path):
    put_speaker(tmp_path, "spin", "spin 3.4.1 (for WebAssembly)")
    assert needs.find_spin({"PATH": str(tmp_path)}) is None

    spin = put_speaker(tmp_path, "spin", "Spin Version 6.5.2 -- 6 December 2019")
    assert needs.find_spin({"PATH": str(tmp_path)}) == spin


def test_compiler_counts_only_with_the_headers_of_the_c_library(tmp_path):
    put_speaker(tmp_path, "gcc", "")
    assert needs.find_c_compiler({"PATH": str(tmp_path)}) is None

    gcc = put_speaker(tmp_path, "gcc", "extern int printf(const char *, ...);")
    assert needs.find_c_compiler({"PATH": str(tmp_path)}) == gcc


def test_chromium_is_found_by_either_of_its_names(tmp_path):
    assert needs.find_chromium({"PATH": str(tmp_path)}) is None

    browser = put_speaker(tmp_path, "chromium-browser", "Chromium 150")
    assert needs.find_chromium({"PATH": str(tmp_path)}) == browser


def test_everything_that_the_tests_use_is_provided_before_them():
    names = [need.name for need in needs.SYSTEM_NEEDS]

    assert names == ["PostgreSQL", "PgBouncer", "Spin", "gcc", "libfaketime", "iproute2", "Chromium"]
    assert all(need.packages[0] in need.advice for need in needs.SYSTEM_NEEDS)


def test_what_is_there_is_not_installed(monkeypatch):
    monkeypatch.setattr(needs, "apt_install", lambda *_: pytest.fail("installed without need"))

    needs.provide(needs.Need("a thing", lambda: "here", ("thing",), "Install thing."))

    assert needs.find_postgres({"BIDE_TEST_PG_DSN": "x"}) == "x"


def test_what_is_missing_is_installed_and_looked_for_again(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(needs, "apt_install", lambda name, packages, advice: found.append(packages[0]))

    needs.provide(needs.Need("a thing", lambda: next(iter(found), None), ("thing",), "Install thing."))

    assert found == ["thing"]


def test_what_cannot_be_had_fails_with_the_name_of_what_to_install(monkeypatch):
    monkeypatch.setattr(needs, "as_administrator", lambda program: None)

    with pytest.raises(terminal.Problem, match=r"a thing is missing.*Install thing\."):
        needs.provide(needs.Need("a thing", lambda: None, ("thing",), "Install thing."))


def test_failed_apt_shows_what_it_said(tmp_path, monkeypatch):
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho no network\nexit 100\n")
    apt.chmod(0o755)
    monkeypatch.setattr(needs, "as_administrator", lambda program: [str(apt)])

    with pytest.raises(terminal.Problem, match=r"no network(.|\n)*Install thing\."):
        needs.provide(needs.Need("a thing", lambda: None, ("thing",), "Install thing."))


def test_nobody_asks_for_a_password(tmp_path, monkeypatch):
    for program in ("apt-get", "sudo"):
        (tmp_path / program).touch()
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    command = needs.as_administrator("apt-get")

    assert command is not None
    assert command[:2] == [str(tmp_path / "sudo"), "-n"]
    assert "RUNLEVEL=1" in command


# --- checks and commands ----------------------------------------------------------------------------------------------


def test_later_stage_is_not_started_after_a_failure_and_the_table_says_so(checkout):
    put_program(checkout, "good", code=0)
    put_program(checkout, "bad", code=3)
    stages = [
        [dev.Check("first", ("bad", "-k", "two words")), dev.Check("second", ("good",))],
        [dev.Check("third", ("good",))],
    ]

    results = dev.run_stages(checkout, stages)

    assert [result.verdict for result in results] == ["FAILED", "ok", "not run"]
    assert "first failed (exit code 3). Repeat it alone: .venv/bin/bad -k 'two words'" in dev.summary(results)


def test_every_check_of_the_repository_is_in_a_stage():
    commands = [check.command for stage in dev.STAGES for check in stage]

    assert [command[0] for command in commands] == ["ruff", "ruff", "mypy", "lint-imports", "python", "python"]
    assert [command[-2:] for command in commands[-2:]] == [("-m", "not slow"), ("-n", "2")]


def test_old_python_gets_one_sentence():
    assert (
        dev.refusal((3, 8, 18)) == "Bide needs Python 3.11 or newer and this is Python 3.8.18: try `python3.11 dev.py`."
    )
    assert dev.refusal((3, 11, 0)) == ""
    assert "WSL" in dev.refusal((3, 12, 0), "nt")


def test_old_python_can_read_the_file_that_refuses_it():
    files = python_files("tools", "dev.py")

    assert len(files) > 1
    for path in files:
        assert ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("arguments", [["tset"], ["fmt", "src"]])
def test_unknown_command_lists_the_known_ones(arguments):
    command = [sys.executable, "dev.py", *arguments]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "run, test, bench, fmt, lock, clean, help" in done.stderr


def test_help_is_what_no_command_shows():
    shown = [
        subprocess.run([sys.executable, "dev.py", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for words in ([], ["help"])
    ]

    assert shown[0] == shown[1]
    assert "python3 dev.py test" in shown[0]


def test_arrow_on_an_ascii_terminal_is_no_error(checkout):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    program = "import dev, sys; sys.exit(dev.main(['help']) or dev.say('→ fine'))"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )

    assert "? fine" in done.stdout
