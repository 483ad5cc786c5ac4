"""The summary of a stream whose classes were measured release by release."""

from pathlib import Path

import shoal
from shoal.cli.main import status_of


def _summary(folder: Path, capsys, *options: str) -> str:
    purchases = shoal.sample("purchases", n=3000, seed=7)
    purchases.write_csv(folder / "purchases.csv")
    assert status_of(["sample", "purchases", "-n", "10", "-o", str(folder / "s.csv"), "-q"]) == 0
    capsys.readouterr()
    arguments = ["stream", str(folder / "purchases.csv"), "-p", str(folder / "s.policy.yaml")]
    assert status_of([*arguments, "-o", str(folder / "out.csv"), *options]) == 0
    return capsys.readouterr().err


def test_promises_checked_in_each_release_are_not_said_to_have_measured_nothing(tmp_path, capsys):
    shown = _summary(tmp_path, capsys, "--measure", "release")

    assert "l-diversity over category: asked 3, checked in each release: holds" in shown
    assert "nothing (no class)" not in shown


def test_classes_measured_release_by_release_are_not_said_to_be_none(tmp_path, capsys):
    shown = _summary(tmp_path, capsys, "--measure", "release")

    assert "classes of at least 10 people, measured release by release, 3000 records" in shown


def test_the_report_is_among_what_was_written(tmp_path, capsys):
    page = str(tmp_path / "report.html")
    out = str(tmp_path / "out.csv")

    shown = _summary(tmp_path, capsys, "--report", page)

    assert f"wrote {out}, {out}.certificate.json and {page}" in shown
