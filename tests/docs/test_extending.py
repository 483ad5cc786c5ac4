"""The newcomer's exercise: the package of docs/extending.md is built, installed and used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Block, blocks, commands
from test_docs import DOCS, ROOT, matched

PAGE = DOCS / "extending.md"
PIP = "-m pip install --quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder with the page's package and files, and the environment of who installed them."""
    folder = tmp_path_factory.mktemp("stranger")
    shutil.copytree(DOCS / "shoal-examples", folder / "shoal-examples")
    for block in blocks(PAGE):
        if block.mark == "file":
            path = folder / block.argument
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    site = folder / "site"
    there = [str(site), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(part for part in there if part)}
    installed = subprocess.run(
        [sys.executable, *PIP.split(), "--target", str(site), "./shoal-examples"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert installed.returncode == 0, installed.stderr
    return folder, environment


def run_in_page() -> list[Block]:
    return [block for block in blocks(PAGE) if block.language == "console"]


@pytest.mark.long
def test_every_command_of_the_page_does_what_it_shows(stranger):
    folder, environment = stranger
    shell = {
        "pip install": "true pip install",  # the fixture has done it, without an index
        "pytest": f"{sys.executable} -m pytest -p no:cacheprovider --rootdir shoal-examples",
        "shoal": f"{sys.executable} -m shoal",
    }
    for block in run_in_page():
        for command in commands(block):
            text = command.text
            for name, instead in shell.items():
                if text.startswith(f"{name} "):
                    text = instead + text.removeprefix(name)
                    break
            done = subprocess.run(
                ["bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True
            )
            printed = done.stderr + done.stdout
            assert done.returncode == 0, f"`{command.text}`\n{printed}"
            matched(command.shown, printed, f"line {block.line}: `{command.text}`")


def test_the_plug_ins_see_no_part_of_shoal_but_its_door(stranger):
    folder, _ = stranger
    for path in (folder / "shoal-examples").rglob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith(("import shoal", "from shoal")):
                assert line.startswith(("from shoal.extend import", "from shoal_examples.")), line
