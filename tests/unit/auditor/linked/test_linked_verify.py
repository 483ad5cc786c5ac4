"""A release of linked tables from its folder alone: verified, and in a dossier."""

import json
import shutil
import sqlite3
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import linked_cases
import shoal as library
from certified_cases import failed
from sample_policies import content_of
from shoal.auditor.checks import Check, Stated, consistency
from shoal.auditor.verify import verify
from shoal.data.certificate import Certificate
from shoal.errors import InputError, PromiseError
from shoal.reports.dossier import dossier
from shoal.reports.limits import row_order


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


def checks_of(folder: Path, **more) -> dict[str, Check]:
    return {check.name: check for check in verify(folder / "out", **more)}


@pytest.fixture
def copied(published, tmp_path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(published, tmp_path / "copy"))


@contextmanager
def forged(folder: Path):
    """What the certificate states, to be changed in place."""
    path = folder / "out" / "certificate.json"
    stated = json.loads(path.read_text())
    yield stated
    path.write_text(json.dumps(stated))


def stating(folder: Path, k: int) -> None:
    """Changes the k that the certificate states."""
    with forged(folder) as stated:
        stated["promises"][0]["measured"] = k


def test_a_release_is_the_one_certified_and_measured_again_to_hold(published):
    found = checks_of(published, policy=published / "policy.json", original=published / "clinic")
    assert all(found[name].ok for name in ("file", "figures", "promises", "policy", "input"))
    assert "comparison with the original" not in found["not measured again"].text
    left = found["not measured again"].text
    for measured in ("people", "losses", "columns", "numbers of records", "Shoal's"):
        assert measured not in left
    assert left.startswith("findings, figures of all tables together (in part); ")
    assert checks_of(published)["promises"].ok is None


@pytest.mark.parametrize(("part", "key"), [("linked", "bundle_loss"), ("utility", "gcp")])
def test_losses_that_the_files_deny_are_found(copied, part, key):
    with forged(copied) as stated:
        stated[part][key] = 0.0
    found = checks_of(copied, policy=copied / "policy.json", original=copied / "clinic")
    named = key if part == "linked" else part
    assert found["promises"].text == f"measured again, not as stated: '{named}' differs"


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
    if known == 2:  # else the number of all drugs would tell of other visits
        said["tables"]["drugs"]["rows"] = {"known": "none"}
        said["assume"] = ["counts-unknown"]
    named = said if method is None else said | {"method": {"name": method}}
    library.publish(linked_cases.world(30), named, output=str(tmp_path / "out"))
    found = checks_of(tmp_path, policy=named)
    assert found["policy"].ok
    assert found["promises"].ok
    if (known, method) == (2, "bundles"):  # another one than the usual one has to be named
        unnamed = checks_of(tmp_path, policy=said)["policy"]
        assert unnamed.ok is False
        assert unnamed.text.endswith("such as method='bundles'")


def exact_gaps(folder: Path, days: list[list[int]]) -> Path:
    """A release with exact gaps, of people with visits on these days, in `out`."""
    names = [f"p{i}" for i, own in enumerate(days) for _ in own]
    dates = [str(linked_cases.DAY + timedelta(day)) for own in days for day in own]
    (folder / "clinic").mkdir()
    people = pl.DataFrame({"patient": names}).unique(maintain_order=True)
    people.write_csv(folder / "clinic" / "people.csv")
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


@pytest.fixture(scope="module")
def dated(tmp_path_factory) -> Path:
    """A release with exact gaps, whose k is that of a known date, not of a class."""
    days = [[15, 37], [8, 34], [23, 38], [30, 37], [4, 38], [0, 30]]
    return exact_gaps(tmp_path_factory.mktemp("dated"), days)


@pytest.mark.parametrize(
    "days", [[[0, 10], [0, 10], [1, 14]], [[0, 10], [0, 10], [0, 11]]], ids=["range", "one day"]
)
def test_days_wider_than_all_anchors_lose_all_and_no_more(tmp_path, days):
    folder = exact_gaps(tmp_path, days)
    stated = Certificate.load(folder / "out" / "certificate.json")
    (loss,) = [one["loss"] for one in stated["columns"] if one["name"] == "anchor.day"]
    assert loss == 1
    assert stated["linked"]["paid"]["tenth"] <= 1
    found = checks_of(folder, policy=folder / "policy.json", original=folder / "clinic")
    assert failed(found) == []
    library.publish(folder / "clinic", folder / "policy.json", output=folder / "out", replace=True)


def test_a_known_date_may_leave_fewer_people_than_the_smallest_class(dated):
    stated = Certificate.load(dated / "out" / "certificate.json")
    assert stated["promises"][0]["measured"] == 2 < stated["classes"]["min"]
    policy = dated / "policy.json"
    found = checks_of(dated, policy=policy, original=dated / "clinic")
    assert failed(found) == []
    assert found["promises"].ok
    alone = checks_of(dated, policy=policy)
    assert failed(alone) == []
    assert alone["promises"].ok is None
    assert "name it with original=" in alone["promises"].text


@pytest.mark.parametrize("measured", [1, 4])
def test_no_k_is_believed_that_known_dates_could_not_leave(dated, tmp_path, measured):
    folder = Path(shutil.copytree(dated, tmp_path / "copy"))
    stating(folder, measured)
    assert "promises" in failed(checks_of(folder, policy=dated / "policy.json"))


def audited(folder: Path, as_frames: bool = False, **more) -> Path:
    """The certificate of an audit of `out`, in a file."""
    out = folder / "out"
    given = {name: str(out / f"{name}.csv") for name in ("people", "visits", "drugs")}
    if as_frames:
        given = {name: pl.read_csv(path, infer_schema=False) for name, path in given.items()}
    source = out if "original" in more else given
    certificate = library.audit(source, folder / "policy.json", **more)
    (folder / "audit.json").write_text(certificate.to_json())
    return folder / "audit.json"


@pytest.mark.parametrize("audit", [[], ["original"]])
@pytest.mark.parametrize("given", [[], ["policy"], ["policy", "original"]])
def test_the_certificate_of_an_audit_verifies(copied, audit, given):
    paths = {"policy": copied / "policy.json", "original": copied / "clinic"}
    certificate = audited(copied, **{name: paths[name] for name in audit})
    found = checks_of(copied, certificate=certificate, **{name: paths[name] for name in given})
    assert not failed(found), found
    assert found["file"].ok
    assert found["promises"].ok is (True if given else None)


def test_what_is_forged_of_an_audit_of_files_alone_is_found(copied):
    certificate = audited(copied)
    stated = json.loads(certificate.read_text())
    for at, key, value in (
        ("records", "in", 900),
        ("utility", "gcp", 0.0),
        ("output", "format", "x"),
    ):
        certificate.write_text(json.dumps(stated | {at: stated[at] | {key: value}}))
        found = checks_of(copied, certificate=certificate, policy=copied / "policy.json")
        named = key if at == "output" else at
        assert found["promises"].text == f"measured again, not as stated: '{named}' differs"


def test_the_certificate_of_an_audit_of_frames_says_that_it_names_no_files(copied):
    certificate = audited(copied, as_frames=True)
    found = checks_of(copied, certificate=certificate, policy=copied / "policy.json")
    assert failed(found) == ["file"]
    assert found["file"].text == "the certificate names none; certify the files with an audit"


def test_a_database_is_verified_as_a_whole(published, tmp_path):
    policy, place = published / "policy.json", tmp_path / "out.sqlite"
    library.publish(published / "clinic", policy, output=place)
    for name in (place, f"sqlite:///{place}"):
        found = {check.name: check.ok for check in verify(name, policy=policy)}
        assert all(found[check] for check in ("file", "promises", "policy"))
        assert dossier(name, context={"version": 1}, policy=policy).content
    with pytest.raises(InputError, match="name the database without 'table'"):
        verify(f"sqlite:///{place}?table=people", policy=policy)
    with closing(sqlite3.connect(place)) as file, file:
        file.execute("DELETE FROM people WHERE shoal_row = 3")
    found = {check.name: check for check in verify(place, policy=policy)}
    assert failed(found) == ["file", "output"]
    assert "rows were added or taken away" in found["output"].text


def test_another_original_and_a_k_that_the_files_do_not_keep_are_noticed(copied):
    linked_cases.world(40, seed=1)["drugs"].write_csv(copied / "clinic" / "drugs.csv")
    given = {"policy": copied / "policy.json", "original": copied / "clinic"}
    assert "input" in failed(checks_of(copied, **given))
    stating(copied, 39)
    assert "promises" in failed(checks_of(copied, policy=given["policy"]))


@pytest.mark.parametrize("table", ["people", "visits", "drugs"])
def test_a_row_that_is_left_out_of_any_file_is_noticed_and_gets_no_dossier(copied, table):
    path = copied / "out" / f"{table}.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert "file" in failed(checks_of(copied))
    with pytest.raises(PromiseError, match="fails verify"):
        dossier(copied / "out", context={"version": 1}, policy=copied / "policy.json")


def test_the_certificate_and_the_dossier_say_that_no_other_release_was_looked_at(published):
    stated = published / "out" / "certificate.json"
    (not_covered,) = json.loads(stated.read_text())["linked"]["not_covered"]
    assert not_covered.startswith("what other releases of the same people tell")
    context = {"version": 1, "other_releases": [str(stated)]}
    found = dossier(published / "out", context=context, policy=published / "policy.json")
    (text,) = [point["text"] for point in found.open if point["kind"] == "fails"]
    assert text.endswith("no audit of linked tables does that; say in 'not_judged' why both go out")


def test_no_row_is_said_to_stand_by_what_it_shows(published):
    """Rows stand by keys that are drawn."""
    certificate = Certificate.load(published / "out" / "certificate.json")
    assert certificate["output"]["dialect"]["order"] is None
    assert row_order(certificate) == "drawn by chance, so it says nothing of its own"
    assert row_order(certificate.extended(verb="audit", output=None)) == ""


def test_without_a_policy_it_says_what_was_compared_and_what_the_certificate_states(published):
    found = checks_of(published)
    assert found["promises"].text == "stated, not measured here: 1 of 1 held"
    assert found["measured again"].ok is None
    assert "compared by their hashes" in found["measured again"].text
    assert "all else needs the policy" in found["measured again"].text
    assert found["input"].text.startswith("needs the original")
    found = checks_of(published, original=published / "clinic")
    assert found["input"].text.startswith("needs the policy, too")


@pytest.mark.parametrize(
    "changed",
    [{"faults": {"orphans": 3}}, {"promises": [{"holds": False}]}],
    ids=["faults", "promises"],
)
def test_without_a_policy_what_the_certificate_itself_denies_is_found(copied, changed):
    with forged(copied) as stated:
        if "promises" in changed:
            changed = {"promises": [{**stated["promises"][0], "holds": False, "measured": 1}]}
        stated |= changed
    assert "promises" in failed(checks_of(copied))


FORGED = {
    "tables.1.rows.withheld": (0, "'withheld' of table 'visits'"),
    "tables.1.rows.in": (1, "'in' of table 'visits'"),
    "tables.1.rows.published": (1, "'published' of table 'visits'"),
    "tables.1.known": ("count", "'known' of table 'visits'"),
    "tables.2.parent": ("people", "'parent' of table 'drugs'"),
    "tables.0.columns": (["sex"], "'columns' of table 'people'"),
    "output.dialect": ({"mark": "-"}, "'dialect'"),
    "linked.matching": ({"below": 0}, "'matching'"),
}


@pytest.mark.parametrize("place", FORGED)
def test_what_is_forged_of_a_table_is_found(copied, place):
    other, named = FORGED[place]
    *above, last = (int(key) if key.isdigit() else key for key in place.split("."))
    with forged(copied) as part:
        for key in above:
            part = part[key]
        assert part[last] != other
        part[last] = part[last] | other if last == "dialect" else other
    found = checks_of(copied, policy=copied / "policy.json", original=copied / "clinic")
    assert found["promises"].text == f"measured again, not as stated: {named} differs"
    alone = checks_of(copied, policy=copied / "policy.json")
    needs_original = last in ("withheld", "in", "matching")
    assert alone["promises"].ok is needs_original
    if needs_original:
        left = alone["not measured again"].text
        assert ("each table (in part)" if above[0] == "tables" else "together (in part)") in left


@pytest.mark.parametrize(("more", "is_true"), [(0, True), (1, False)])
def test_who_was_matched_before_a_release_is_measured_again(copied, more, is_true):
    """As the page states it, which matches people before it releases anything."""
    asked = {"policy": copied / "policy.json", "original": copied / "clinic"}
    matching = dict(library.audit(str(copied / "out"), **asked)["linked"]["matching"])
    matching["least"] += more
    with forged(copied) as stated:
        stated["linked"]["matching"] = matching
    assert checks_of(copied, **asked)["promises"].ok is is_true


def test_nothing_that_is_said_of_linked_tables_may_be_left_out(copied):
    path = copied / "out" / "certificate.json"
    stated = json.loads(path.read_text())
    for key in stated["linked"].keys() - {"keys", "audited", "exposed"}:  # else it is none
        less = {name: one for name, one in stated["linked"].items() if name != key}
        path.write_text(json.dumps({**stated, "linked": less}))
        found = checks_of(copied, policy=copied / "policy.json")
        assert f"'{key}' is missing" in found["promises"].text


@pytest.mark.parametrize("given", [[], ["policy"], ["policy", "original"]])
def test_faults_that_the_certificate_itself_states_are_never_passed_over(copied, given):
    with forged(copied) as stated:
        stated["faults"] |= {"uncovered": 99, "changed": 5}
    places = {"policy": copied / "policy.json", "original": copied / "clinic"}
    found = checks_of(copied, **{name: places[name] for name in given})
    assert failed(found) == ["promises"]
    assert found["promises"].text.startswith("the certificate states faults: 99 ")


@pytest.mark.parametrize("command", ["verify", "dossier"])
def test_a_trace_is_refused_where_nothing_of_linked_tables_is_checked_by_it(
    published, tmp_path, shoal, command
):
    (tmp_path / "c.yaml").write_text("version: 1")
    given = {"verify": [], "dossier": ["--context", tmp_path / "c.yaml", "-o", tmp_path / "d.html"]}
    done = shoal(command, published / "out", "--trace", tmp_path / "no", *given[command], status=2)
    assert "trace: is not used for linked tables" in done.err
    assert done.err.count("leave it out") == 1


@pytest.mark.parametrize("kind", ["datapackage", "croissant"])
def test_metadata_of_linked_tables_are_refused_and_nothing_is_written(published, shoal, kind):
    before = sorted(published.rglob("*"))
    done = shoal("dossier", published / "out", "--metadata", kind, status=2)
    assert "--metadata: describes one table, not linked ones; leave it out" in done.err
    assert sorted(published.rglob("*")) == before


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
    assert "who lost most: the tenth of people who lose most lose" in text
