"""What a user installs is what the repository holds."""

from __future__ import annotations

import subprocess
import sys
from zipfile import ZipFile

from tests.repo.source_files import ROOT


def test_wheel_holds_every_module_the_sql_the_pages_and_the_typing_marker(tmp_path):
    wanted = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "bide").rglob("*")
        if path.suffix in {".py", ".sql", ".html", ".css", ".js", ".svg"} or path.name == "py.typed"
    }

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("bide-*.whl")
    held = set(ZipFile(wheel).namelist())

    assert "bide/py.typed" in wanted
    assert wanted <= held
    assert not [name for name in held if name.startswith("tests/")]
