"""`shoal sweep`: what the dead left goes; what is written, released or another's name stays."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from shoal.connectors.sweeping import Swept, sweep_output

ID = "0123456789abcdef"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with drafts of two outputs, a release, and files that only look alike."""
    monkeypatch.chdir(tmp_path)
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


def test_the_drafts_of_one_output_go(place: Path, shoal) -> None:
    before = names(place)
    done = shoal("sweep", "out/")
    assert (done.status, done.err) == (0, "deleted 1 draft\n")
    assert names(place) == before - {f".out.{ID}.part"}
    assert (place / "out" / "_shoal.json").exists()


def test_the_drafts_of_every_output_in_a_folder_go_and_links_stay(place: Path) -> None:
    before = names(place)
    assert sweep_output(place) == Swept(2, 1)
    assert names(place) == before - {f".out.{ID}.part", f".one.csv.{ID}.part"}
    assert (place / "out" / "_shoal.json").exists()


def test_what_a_run_writes_stays(place: Path, shoal) -> None:
    lock = os.open(f".out.{ID}.part", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done = shoal("sweep", "out", "one.csv")
    os.close(lock)
    assert done.err == "deleted 1 draft; 1 kept: at work, or another's\n"
    assert f".out.{ID}.part" in names(place)
    assert f".one.csv.{ID}.part" not in names(place)


def test_an_output_in_no_folder_is_refused(place: Path, shoal) -> None:
    done = shoal("sweep", "nowhere/out/")
    assert (done.status, "is not in a folder that can be read" in done.err) == (2, True)
