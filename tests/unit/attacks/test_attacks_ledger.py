"""Attacks on ledgers: the newest release beside all earlier ones, and what is refused there."""

import json
import shutil

import polars as pl
import pytest

import naive_attacks as naive
import shoal
from republish_cases import append, grown, policy, wearers
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities
from shoal.errors import InputError
from unit.ledgers.test_m_invariance import change
from unit.ledgers.test_m_invariance import policy as invariant

QUASI = ("age", "height", "sex")
WITHOUT_PEOPLE = {"skewness", "homogeneity", "intersection"}


def rows_of(ledger, release):
    """(record, class, value) of every real row, by nothing of Shoal's audit."""
    frame = pl.read_csv(ledger / f"{release:04d}" / "data.csv", infer_schema=False)
    records = Identities.read(Ledger.at(ledger).step_of(release)).records.tolist()
    classes = frame.select(QUASI).rows()
    return list(zip(records, classes, frame["activity"].to_list(), strict=True))


def test_a_ledger_whose_releases_leak_is_measured_over_all_of_them(tmp_path):
    asked = policy("static-2")
    ledger = grown(tmp_path / "L", 3, 70, asked, allow_leaks=True)
    found = shoal.audit_ledger(ledger, attack=["intersection"]).attacks
    releases = [rows_of(ledger, number) for number in (1, 2, 3)]
    class_of = [{record: label for record, label, _ in rows} for rows in releases]
    newest = releases[-1]
    joint = [(r, tuple(known.get(r) for known in class_of), value) for r, _, value in newest]
    together = found["intersection"]
    values = together["linked"]["attributes"]["activity"]
    measured = [together["linked"]["alone"], together["linked"]["below_k"]]
    measured += [values["certain"], values["right"]]
    expected = naive.linked(joint, 4)
    assert [share["share"] for share in measured] == pytest.approx(expected, abs=6e-5)
    assert expected[1] > 0.5, "a ledger that leaks nothing shows nothing"
    assert together["in_earlier"]["share"] == pytest.approx(2 / 3, abs=1e-4)
    assert (found["release"], together["releases"], found["people"]) == (3, 3, 210)


def test_who_came_later_is_a_value_of_its_own_not_left_out(tmp_path):
    ledger = grown(tmp_path / "L", 2, 60, policy("static-2"), allow_leaks=True)
    found = shoal.audit_ledger(ledger, attack=["intersection"]).attacks["intersection"]
    newest, before = rows_of(ledger, 2), rows_of(ledger, 1)
    own = {record: [value] for record, _, value in newest}
    everyone = {value for *_, value in newest}
    # whoever was not there may have any value, as far as the earlier release goes
    more = [(r, f"new {r}", value) for r in own if r not in {x for x, *_ in before}
            for value in everyone]  # fmt: skip
    expected = naive.unlinked(newest, [before + more], own)
    values = found["unlinked"]["attributes"]["activity"]
    measured = values["certain"]["share"], values["right"]["share"]
    assert measured == pytest.approx(expected, abs=6e-5)


def test_releases_that_share_nobody_give_nothing_away_together(tmp_path):
    ledger = grown(tmp_path / "L", 3, 30)
    found = shoal.audit_ledger(ledger, attack=["all"]).attacks
    assert found["intersection"]["in_earlier"]["share"] == 0
    assert found["intersection"]["linked"]["below_k"]["share"] == 0
    assert found.keys() >= WITHOUT_PEOPLE
    assert set(found["skipped"]) == {
        "singling-out", "linkability", "inference", "minimality", "population", "membership"
    }  # fmt: skip
    assert "keeps no originals" in found["skipped"]["inference"]


def test_signatures_leave_at_least_two_values(tmp_path):
    asked = invariant()
    append(tmp_path / "L", change(wearers(200, 1), "insert"), asked)
    append(tmp_path / "L", change(wearers(60, 2), "insert"), asked)
    append(tmp_path / "L", change(wearers(200, 1)[:40], "delete"), asked)
    found = shoal.audit_ledger(tmp_path / "L", attack=["intersection", "homogeneity"]).attacks
    together = found["intersection"]
    assert together["unlinked"]["attributes"]["activity"]["certain"]["share"] == 0
    real = {record for record, *_ in rows_of(tmp_path / "L", 3) if record >= 0}
    assert found["people"] == len(real) > 200


def test_a_ledger_that_keeps_originals_is_attacked_as_a_table_is(tmp_path):
    ledger = grown(tmp_path / "L", 2, 60, policy("static-2"), allow_leaks=True)
    kept = shoal.audit_ledger(ledger, attack=["all"]).attacks
    assert set(kept["skipped"]) == {"population"}
    assert kept["membership"]["advantage"] is None
    assert "not published again" in kept["control"]["reason"]
    whole = pl.concat([wearers(60, 1), wearers(60, 2)])
    assert kept["linkability"]["baseline"]["share"] == pytest.approx(1 / whole.height, abs=1e-4)


def test_without_the_private_part_nobody_is_aligned(tmp_path):
    ledger = grown(tmp_path / "L", 2, 30)
    public = tmp_path / "public"
    shutil.copytree(ledger, public)
    with pytest.raises(InputError, match="need its private part"):
        shoal.audit_ledger(public, attack=["intersection"])


def test_an_attack_that_a_ledger_has_no_meaning_for_is_refused_by_name(tmp_path):
    ledger = grown(tmp_path / "L", 2, 30)
    with pytest.raises(InputError, match="'linkability': can't be run, the ledger keeps no origi"):
        shoal.audit_ledger(ledger, attack=["linkability"])
    with pytest.raises(InputError, match="did you mean 'intersection'"):
        shoal.audit_ledger(ledger, attack=["intersections"])


def test_the_command_prints_writes_and_draws_what_attacks_found(tmp_path, shoal):
    ledger = grown(tmp_path / "L", 2, 60, policy("static-2"), allow_leaks=True)
    output, page = tmp_path / "audit.json", tmp_path / "page.html"
    found = shoal("attack", "--ledger", ledger, "-o", output, "--report", page, status=1)
    assert "Attacks try; they don't prove." in found.err
    assert "whoever also has the earlier release" in found.err
    section = json.loads(output.read_text())["attacks"]
    assert section["intersection"]["linked"]["below_k"]["share"] > 0
    assert "What do earlier releases add?" in page.read_text()


@pytest.mark.parametrize("option", [("--control", "c.csv"), ("--folds", "2")])
def test_what_a_ledger_has_itself_is_not_given(tmp_path, shoal, option):
    ledger = grown(tmp_path / "L", 1, 30)
    found = shoal("attack", "--ledger", ledger, *option, status=2)
    assert f"{option[0]} cannot be used with --ledger" in found.err


def test_a_policy_whose_thresholds_nobody_would_judge_is_refused(tmp_path):
    asked = policy()
    strict = asked.model.model_dump(exclude_unset=True) | {"accept": {"alone": 0.1}}
    with pytest.raises(InputError, match="leave it out for 'republish'"):
        append(tmp_path / "L", wearers(30, 1), type(asked).from_dict(strict))
