"""What killed runs left in a folder goes with the next draft there; what is at work, released or
another's name stays.
"""

import fcntl
import os
from pathlib import Path

import pytest

from shoal.connectors.outputs import draft_beside

ID = "0123456789abcdef"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with drafts of two outputs, a release, and files that only look alike."""
    (tmp_path / f".out.{ID}.part").mkdir()
    (tmp_path / f".out.{ID}.part" / "codes").write_text("personal")
    (tmp_path / f".one.csv.{ID}.part").write_text("personal")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_shoal.json").write_text("{}")
    (tmp_path / f".out.{ID}.part.bak").write_text("")
    (tmp_path / f".out.{ID[1:]}.part").write_text("")
    (tmp_path / f"out.{ID}.part").write_text("")
    (tmp_path / f".link.{ID}.part").symlink_to(tmp_path / "out")
    return tmp_path


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def test_the_drafts_of_every_output_in_the_folder_go_and_links_stay(place: Path) -> None:
    before = names(place)
    with draft_beside(place / "third.csv", "third.csv") as draft:
        swept = before - {f".out.{ID}.part", f".one.csv.{ID}.part"}
        assert names(place) == swept | {draft.name}
    assert names(place) == swept
    assert (place / "out" / "_shoal.json").exists()


def test_what_a_run_writes_stays(place: Path) -> None:
    lock = os.open(place / f".out.{ID}.part", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with draft_beside(place / "third.csv", "third.csv"):
        assert f".out.{ID}.part" in names(place)
        assert f".one.csv.{ID}.part" not in names(place)
    os.close(lock)
