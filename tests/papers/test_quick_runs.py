"""`shoal reproduce NAME --quick`: every paper's small run comes to its end."""

import subprocess
import sys

import pytest

from shoal_papers.reproduce import papers

BOUND = 1200  # seconds; a run takes one or two minutes, also where its loops are compiled first


@pytest.mark.long
@pytest.mark.parametrize("name", papers())
def test_a_quick_run_writes_figures_and_judges_every_claim(name, tmp_path):
    command = [sys.executable, "-m", "shoal", "reproduce", name, "--quick", "-q"]
    ran = subprocess.run([*command, "--out", tmp_path], capture_output=True, timeout=BOUND)
    assert ran.returncode == 0, ran.stderr.decode()
    paper, folder = papers()[name], tmp_path / name
    assert {path.stem for path in folder.glob("*.svg")} == {f.name for f in paper.figures}
    assert all(claim.about in (folder / "verdicts.md").read_text() for claim in paper.claims)
