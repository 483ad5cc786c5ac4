"""A release of linked tables from its folder alone: verified, and in a dossier."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import linked_cases
import shoal as library
from shoal.auditor.checks import Stated, consistency
from shoal.auditor.verify import verify
from shoal.data.certificate import Certificate
from shoal.errors import PromiseError
from shoal.reports.dossier import dossier


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A folder with the tables, their policy and a release in `out`."""
    folder = tmp_path_factory.mktemp("linked")
    (folder / "clinic").mkdir()
    for name, frame in linked_cases.world(40).items():
        frame.write_csv(folder / "clinic" / f"{name}.csv")
    (folder / "policy.json").write_text(json.dumps(linked_cases.policy()))
    library.publish(str(folder / "clinic"), str(folder / "policy.json"), output=str(folder / "out"))
    return folder


def checks_of(folder: Path, **more) -> dict[str, bool | None]:
    return {check.name: check.ok for check in verify(folder / "out", **more)}


def test_a_release_is_the_one_certified_and_measured_again_to_hold(published):
    found = checks_of(published, policy=published / "policy.json", original=published / "clinic")
    assert found["file"]
    assert found["figures"]
    assert found["promises"]
    assert found["policy"]
    assert checks_of(published)["promises"] is None


def test_the_certificate_describes_every_column_by_its_table_and_fits_itself(published):
    certificate = Certificate.load(published / "out" / "certificate.json")
    stated = {column["name"]: column for column in certificate["columns"]}
    assert {*certificate["together"]["attributes"]} == {
        name for name, column in stated.items() if column["role"] == "quasi"
    }
    assert stated["visits.disease"]["technique"] == "as-is"
    assert stated["patient"]["technique"] == "removed"
    assert 0 < stated["visits.cost"]["loss"] < 1
    assert consistency(Stated(certificate)).ok
    worse = [{**one, "loss": 1.0} for one in certificate["columns"] if one["role"] == "quasi"]
    assert not consistency(Stated(certificate.extended(columns=worse))).ok


@pytest.mark.parametrize("table", ["people", "visits", "drugs"])
def test_a_row_that_is_left_out_of_any_file_is_noticed(published, tmp_path, table):
    shutil.copytree(published / "out", tmp_path / "out")
    path = tmp_path / "out" / f"{table}.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert checks_of(tmp_path)["file"] is False


def test_a_certificate_that_promises_more_than_the_files_keep_is_noticed(published, tmp_path):
    shutil.copytree(published / "out", tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    stated = json.loads(path.read_text())
    stated["promises"][0]["measured"] = 39
    path.write_text(json.dumps(stated))
    assert checks_of(tmp_path, policy=published / "policy.json")["promises"] is False


def test_the_dossier_shows_the_tables_and_the_risk_before_and_after(published, tmp_path):
    page = tmp_path / "d.html"
    found = dossier(
        published / "out",
        context={"version": 1, "attributes": {"visits.cost": {"why": "needed"}}},
        policy=published / "policy.json",
        original=published / "clinic",
        output=page,
    )
    assert found.content["initial_risk"]["alone"] == 1.0
    assert found.content["residual_risk"]["max"] <= 1 / 3
    text = page.read_text("utf-8")
    assert 'class="entities"' in text
    assert "by random numbers that are new in this release" in text


def test_no_dossier_is_written_of_files_that_are_not_those_certified(published, tmp_path):
    shutil.copytree(published / "out", tmp_path / "out")
    (tmp_path / "out" / "drugs.csv").write_text("visit,drug\n")
    with pytest.raises(PromiseError, match="fails verify"):
        dossier(tmp_path / "out", context={"version": 1}, policy=published / "policy.json")
