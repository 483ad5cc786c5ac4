"""The R package in r/shoal, installed from the clone: its own tests, its manual and its page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import blocks

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
NEEDED = "all(c('testthat', 'jsonlite') %in% rownames(installed.packages()))"


def r_says(code: str) -> str:
    return subprocess.run(
        ["Rscript", "-e", f"cat({code})"], capture_output=True, text=True, timeout=PATIENCE
    ).stdout


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("Rscript") is None or r_says(NEEDED) != "TRUE",
        reason="R is not here with testthat and jsonlite: Debian's r-base-core, r-cran-testthat, "
        "r-cran-jsonlite",
    ),
]


@pytest.fixture(scope="module")
def with_library(tmp_path_factory) -> dict[str, str]:
    """The environment in which R finds the package, and the package finds the command."""
    library = tmp_path_factory.mktemp("library")
    ran(["R", "CMD", "INSTALL", "-l", str(library), "r/shoal"], dict(os.environ), ROOT)
    tools = Path(sys.executable).parent
    return os.environ | {
        "R_LIBS": str(library),
        "SHOAL": str(tools / "shoal"),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }


def ran(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        timeout=PATIENCE,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_tests_of_the_package_pass_where_text_is_not_utf_8(with_library, tmp_path):
    # a copy, as testthat leaves a file beside tests that fail
    tests = shutil.copytree(ROOT / "r" / "shoal" / "tests", tmp_path / "tests")
    ran(["Rscript", "testthat.R"], with_library | {"LC_ALL": "C"}, tests)


def test_the_page_runs_as_it_stands(with_library, tmp_path):
    page = list(blocks(ROOT / "docs" / "r.md"))
    for block in page:
        if block.language == "console" and block.mark != "skip":
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    ran(["bash", "-c", line[2:]], with_library, tmp_path)
    script = tmp_path / "page.R"
    script.write_text("".join(block.text for block in page if block.language == "r"))
    printed = ran(["Rscript", str(script)], with_library, tmp_path)
    assert "global-risk" in printed


def test_manual_pages_name_every_function_and_argument(with_library):
    checks = "library(tools); print(undoc('shoal')); print(codoc('shoal'))"
    assert not ran(["Rscript", "-e", checks], with_library, ROOT).strip()
