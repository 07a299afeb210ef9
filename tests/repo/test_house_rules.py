"""The rules of this repository that a machine can keep, so that no reviewer has to.

Each rule is a function from source to offences. It is run on the whole tree, and on a planted offence: a rule that
finds nothing there would hold for everything.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repo.source_files import ROOT, docstrings_of, functions_of, place, python_files, repository_texts, tree_of

LONGEST_FILE = 500
LONGEST_BODY = 60

CODE = ["src", "tools", "dev.py"]
NOT_DATA = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
PINS = re.compile(r"constraints.*\.txt$|requirements.*\.txt$|lock(\.|$)|-lock\.")
ADDRESS = re.compile(r"https?://|--(?:extra-)?index-url|--find-links|\bfile:/", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:root|work|home/\w+|Users/\w+)/\w")
STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE)\s"  # as our own style writes it
    r"|select\s.+\sfrom\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s)",
    re.DOTALL,
)
CLOCKS = {"time", "asyncio", "anyio", "trio", "gevent"}
SLEEP = re.compile(r"\b(?:time|asyncio|anyio|trio)\.sleep\((?!\s*0\s*\))")
# A word of the function's name: `check_ledger` and `assertEqual` check something, `checkpoint` does not.
CHECKING = re.compile(
    r"(?:^|[._])(?:raise|warn|fail|assert|check|verify|expect|prove|must|refuse|compare)s?(?:_|[A-Z]|$)"
)


def long_bodies(path: Path, tree: ast.Module) -> list[str]:
    """Functions whose body, without signature and docstring, is longer than one thought."""
    return [
        f"{place(path, function)} {function.name} has {length} lines"
        for function in functions_of(tree)
        if (length := body_length(function)) > LONGEST_BODY
    ]


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def code_from_data(path: Path, tree: ast.Module) -> list[str]:
    """Ways to turn stored bytes or text into running code."""
    return [
        place(path, node) for node in ast.walk(tree) if imports_any(node, NOT_DATA) or calls_any(node, {"eval", "exec"})
    ]


def imports_any(node: ast.AST, modules: set[str]) -> bool:
    """Whether a node imports one of some top-level modules."""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] in modules for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in modules


def calls_any(node: ast.AST, names: set[str]) -> bool:
    """Whether a node calls one of some functions by its bare name, or through `builtins`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("builtins.") in names


def imports_by_name(path: Path, tree: ast.Module) -> list[str]:
    """Imports of a module whose name is only known at run time; one that the file itself spells out is fixed."""
    names = {"__import__", "import_module", "importlib.import_module"}
    fixed = {ast.unparse(target) for node in tree.body if is_text(node) for target in targets_of(node)}
    calls = [node for node in ast.walk(tree) if calls_any(node, names) and isinstance(node, ast.Call)]
    return [
        place(path, call)
        for call in calls
        if not all(is_text(name) or ast.unparse(name) in fixed for name in call.args)
    ]


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string literal, or gives one a name."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def targets_of(node: ast.AST) -> list[ast.expr]:
    """The names that an assignment gives."""
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def sql_in_python(path: Path, tree: ast.Module) -> list[str]:
    """Statements in string literals; prose in docstrings may speak of them."""
    prose = docstrings_of(tree)
    return [
        f"{place(path, node)} {node.value.strip()[:40]!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose
        if STATEMENT.match(node.value)
    ]


def sleeps(path: Path, tree: ast.Module) -> list[str]:
    """Calls that wait for time to pass, also in the text of programs that a test starts. `sleep(0)` only yields."""
    names = {f"{module}.sleep" for module in CLOCKS} | bare_sleeps(tree)
    calls = [node for node in ast.walk(tree) if calls_any(node, names) and not ast.unparse(node).endswith("(0)")]
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and SLEEP.search(str(node.value))]
    return [place(path, node) for node in [*calls, *texts]]


def bare_sleeps(tree: ast.Module) -> set[str]:
    """The names under which a file imports the sleep of a clock; `bide.sleep` is another thing, a durable wait."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in CLOCKS]
    return {alias.asname or alias.name for node in imports for alias in node.names if alias.name == "sleep"}


def toothless_tests(path: Path, tree: ast.Module) -> list[str]:
    """Test functions that neither assert, nor expect an error, nor call something that says it checks."""
    tests = (function for function in functions_of(tree) if function.name.startswith("test"))
    return [f"{place(path, test)} {test.name}" for test in tests if not any(map(can_fail, ast.walk(test)))]


def can_fail(node: ast.AST) -> bool:
    """Whether a node decides about a test; `assert True` does not."""
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return isinstance(node, ast.Call) and bool(CHECKING.search(ast.unparse(node.func)))


RULES: dict[str, tuple[Callable[[Path, ast.Module], list[str]], list[str], str]] = {
    # what it forbids: the rule, where it holds, and an offence that it must find
    "long function bodies": (long_bodies, CODE, "def f():\n    '''Doc.'''\n" + "    x = 1\n" * (LONGEST_BODY + 1)),
    "pickle and marshal": (code_from_data, CODE, "from pickle import loads"),
    "eval and exec": (code_from_data, CODE, "x = eval('1')"),
    "imports by name in the codec": (imports_by_name, ["src/bide/codec"], "import_module(name)"),
    "SQL in Python": (sql_in_python, ["src"], "def f(x):\n    '''Doc.'''\n    return f'SELECT {x} FROM t'"),
    "lower-case SQL in Python": (sql_in_python, ["src"], "x = '''\n  delete from t\n'''"),
    "sleeping tests": (sleeps, ["tests"], "import time\ntime.nap(0.1)".replace("nap", "sleep")),
    "sleeping tests, by a bare name": (sleeps, ["tests"], "from asyncio import sleep as nap\nnap(1)"),
    "sleeping programs of tests": (sleeps, ["tests"], "x = 'import time; time.nap(9)'".replace("nap", "sleep")),
    "tests that cannot fail": (toothless_tests, ["tests"], "def test_x():\n    checkpoint()\n    assert True"),
}


@pytest.mark.parametrize("forbidden", RULES)
def test_repository_is_free_of(forbidden):
    rule, places, _ = RULES[forbidden]

    offences = [offence for path in python_files(*places) for offence in rule(path, tree_of(path))]

    assert not offences, f"{forbidden}:\n" + "\n".join(offences)


@pytest.mark.parametrize("forbidden", RULES)
def test_rule_finds_a_planted_offence(forbidden):
    rule, _, offence = RULES[forbidden]

    assert rule(ROOT / "planted.py", ast.parse(offence))


@pytest.mark.parametrize(
    ("rule", "innocent"),
    [
        (sleeps, "import asyncio\nasyncio.sleep(0)"),
        (sleeps, "from bide import sleep\nsleep('2h')"),
        (sql_in_python, "x = 'Select a node from the list'"),
        (sql_in_python, "'''SELECT x FROM t'''"),
        (sql_in_python, "x = 'PRAGMA user_version'"),
        (imports_by_name, "CHAT: Final = 'chat'\nimport_module(CHAT)\nimport_module('mail')"),
        (code_from_data, "'''We never eval(x) or pickle.'''"),
        (toothless_tests, "def test_x():\n    with pytest.raises(ValueError):\n        f()"),
        (toothless_tests, "def test_x():\n    check_ledger(1)"),
    ],
)
def test_rule_spares_the_innocent(rule, innocent):
    assert rule(ROOT / "planted.py", ast.parse(innocent)) == []


def test_no_source_file_is_longer_than_one_reading():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*CODE)}

    too_long = {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST_FILE}

    assert not too_long


def test_pinned_versions_come_without_an_address():
    pinned = {path: text for path, text in repository_texts() if PINS.search(path.name)}

    assert ROOT / "constraints.txt" in pinned
    assert not [path.name for path, text in pinned.items() if ADDRESS.search(text)]


def test_no_file_names_a_place_that_only_one_machine_has():
    found = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()[:80]}"
        for path, text in repository_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("see " + "/wo" + "rk/x.py", True),
        ("'/ho" + "me/ada/x'", True),
        ("https://x.org/work/y", False),
        ("a/work/b", False),
    ],
)
def test_machine_path_is_told_from_an_address(text, forbidden):
    assert bool(MACHINE_PATH.search(text)) is forbidden


def test_core_imports_only_the_standard_library_and_its_one_dependency():
    program = (
        "import json, sys; before = set(sys.modules); import bide; "
        "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout

    foreign = set(json.loads(printed)) - sys.stdlib_module_names - {"bide", "ormsgpack"}

    assert not foreign


def test_changelog_has_a_place_for_the_next_change():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.search(r"^## \[?Unreleased\b", changelog, re.MULTILINE | re.IGNORECASE)
