"""A release of linked tables from its folder alone: verified, and in a dossier."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import linked_cases
import shoal as library
from sample_policies import content_of
from shoal.auditor.checks import Stated, consistency
from shoal.auditor.verify import verify
from shoal.data.certificate import Certificate
from shoal.errors import InputError, PromiseError
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


@pytest.mark.parametrize(
    ("known", "method"), [("all", "bundles"), (2, None), (2, "bundles"), (2, "items")]
)
def test_a_release_verifies_with_its_policy_whoever_chose_the_method(tmp_path, known, method):
    said = linked_cases.policy()
    said["tables"]["visits"]["rows"] = {"known": known}
    said |= {} if method is None else {"method": {"name": method}}
    library.publish(linked_cases.world(30), said, output=str(tmp_path / "out"))
    found = checks_of(tmp_path, policy=said)
    assert found["policy"]
    assert found["promises"]


def test_another_method_than_the_usual_one_has_to_be_named(tmp_path):
    said = linked_cases.policy()
    library.publish(
        linked_cases.world(30), {**said, "method": {"name": "bundles"}}, output=tmp_path / "out"
    )
    said["tables"]["visits"]["rows"] = {"known": 2}
    named = next(c for c in verify(tmp_path / "out", policy=said) if c.name == "policy")
    assert named.ok is False
    assert named.text.endswith("such as --method bundles")


@pytest.fixture(scope="module")
def dated(tmp_path_factory) -> Path:
    """A release with exact gaps, whose k is that of a known date, not of a class."""
    folder = tmp_path_factory.mktemp("dated")
    days = [[15, 37], [8, 34], [23, 38], [30, 37], [4, 38], [0, 30]]
    names = [f"p{i}" for i, own in enumerate(days) for _ in own]
    dates = [str(linked_cases.DAY + timedelta(day)) for own in days for day in own]
    (folder / "clinic").mkdir()
    pl.DataFrame({"patient": names[::2]}).write_csv(folder / "clinic" / "people.csv")
    visits = pl.DataFrame({"patient": names, "day": dates})
    visits.write_csv(folder / "clinic" / "visits.csv")
    policy = content_of(
        {"patient": "subject"},
        tables={
            "visits": {
                "parent": {"people": "patient"},
                "attributes": {"day": {"role": "quasi", "type": "date"}},
            }
        },
        anchor={"first": "visits.day", "gaps": "exact"},
        assume=["one-date-known"],
    )
    (folder / "policy.json").write_text(json.dumps(policy))
    library.publish(folder / "clinic", policy, output=folder / "out")
    return folder


def test_a_known_date_may_leave_fewer_people_than_the_smallest_class(dated):
    stated = Certificate.load(dated / "out" / "certificate.json")
    assert stated["promises"][0]["measured"] == 2 < stated["classes"]["min"]
    policy, original = dated / "policy.json", dated / "clinic"
    found = verify(dated / "out", policy=policy, original=original)
    assert [check.text for check in found if check.ok is False] == []
    assert next(check.ok for check in found if check.name == "promises")


def test_what_a_known_date_tells_is_not_measured_without_the_original(dated):
    found = verify(dated / "out", policy=dated / "policy.json")
    assert [check.text for check in found if check.ok is False] == []
    promises = next(check for check in found if check.name == "promises")
    assert promises.ok is None
    assert "name it with --original" in promises.text


@pytest.mark.parametrize("measured", [1, 4])
def test_no_k_is_believed_that_known_dates_could_not_leave(dated, tmp_path, measured):
    shutil.copytree(dated / "out", tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    stated = json.loads(path.read_text())
    stated["promises"][0]["measured"] = measured
    path.write_text(json.dumps(stated))
    assert checks_of(tmp_path, policy=dated / "policy.json")["promises"] is False


def test_a_database_is_verified_as_a_whole(published, tmp_path):
    policy, place = published / "policy.json", tmp_path / "out.sqlite"
    library.publish(published / "clinic", policy, output=place)
    for name in (place, f"sqlite:///{place}"):
        found = {check.name: check.ok for check in verify(name, policy=policy)}
        assert found["file"]
        assert found["promises"]
        assert found["policy"]
        assert dossier(name, context={"version": 1}, policy=policy).content
    with pytest.raises(InputError, match="name the database without 'table'"):
        verify(f"sqlite:///{place}?table=people", policy=policy)


def test_the_original_tables_are_compared_with_those_certified(published, tmp_path):
    policy = published / "policy.json"
    found = verify(published / "out", policy=policy, original=published / "clinic")
    assert next(check.ok for check in found if check.name == "input")
    left = next(check.text for check in found if check.name == "not measured again")
    assert "comparison with the original" not in left
    shutil.copytree(published / "clinic", tmp_path / "clinic")
    linked_cases.world(40, seed=1)["drugs"].write_csv(tmp_path / "clinic" / "drugs.csv")
    other = verify(published / "out", policy=policy, original=tmp_path / "clinic")
    assert next(check.ok for check in other if check.name == "input") is False


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
