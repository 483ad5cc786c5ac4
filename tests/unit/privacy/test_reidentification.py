"""Individual, household and global risk of a sample in its population."""

import json
from math import log
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_survey as naive
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes, Sample
from shoal.privacy.reidentification import (
    GlobalRisk,
    IndividualRisk,
    individual_risk,
    sample_report,
)
from shoal.reports.text import summary

DOCS = Path(__file__).parents[3] / "docs"
PEOPLE = [1, 2, 3, 19, 20, 21, 100, 10_000, 1_000_000]
SHARES = [1e-9, 1e-6, 0.001, 0.1, 0.4999999, 0.5, 0.7, 0.99, 1 - 1e-12, 1.0]


def risk(people, weight):
    return float(individual_risk(np.array([people]), np.array([float(weight)]))[0])


@pytest.mark.parametrize("people", PEOPLE)
def test_individual_risk_is_the_exact_series_to_ten_digits(people):
    for share in SHARES:
        weight = people / share
        exact = naive.exact_risk(people, people / weight)
        assert abs(risk(people, weight) / float(exact) - 1) < 1e-10, share


@given(st.floats(0, 6), st.floats(-9, 0))
def test_so_it_is_for_any_people_up_to_a_million_and_any_share_from_a_billionth(digits, power):
    people = round(10**digits)
    weight = people / 10**power
    exact = naive.exact_risk(people, people / weight)
    assert abs(risk(people, weight) / float(exact) - 1) < 1e-10


@pytest.mark.parametrize(("people", "p"), [(1, 0.1), (2, 0.1), (7, 0.3), (30, 0.5), (50, 0.9)])
def test_individual_risk_is_the_mean_of_one_by_all_who_fit(people, p):
    assert risk(people, people / p) == pytest.approx(naive.summed_risk(people, p), rel=1e-12)


def test_the_page_for_users_of_sdcmicro_compares_with_what_sdcmicro_computes():
    one, two, three = (risk(people, 10 * people) for people in (1, 2, 3))
    p, q = 0.1, 0.9
    assert p / q * log(1 / p) == pytest.approx(one)
    assert p / q - (p / q) ** 2 * log(1 / p) == pytest.approx(two)
    words = " ".join((DOCS / "survey.md").read_text("utf-8").split())
    assert f"f = 1, F = 10 gives {one:.4f}, f = 2, F = 20 gives {two:.4f}." in words
    assert f"f = 3, F = 30 gives {p / (3 - q):.4f}, not {three:.4f}." in words


@given(st.integers(1, 10**6))
def test_who_stands_for_nobody_else_hides_among_the_sample_alone(people):
    assert risk(people, people) == pytest.approx(1 / people, rel=1e-15)


WEIGHTS = st.lists(st.floats(1, 1e6), min_size=1, max_size=12)


@given(WEIGHTS, WEIGHTS)
def test_a_union_of_classes_raises_nobodys_risk(one, other):
    united = risk(len(one) + len(other), sum(one) + sum(other))
    assert united <= min(risk(len(one), sum(one)), risk(len(other), sum(other))) * (1 + 1e-12)


def classes_of(labels, weights, households=None, subjects=None):
    labels = np.array(labels, dtype=np.int32)
    homes = None if households is None else np.array(households, dtype=np.int32)
    sample = Sample(np.array(weights, dtype=np.float64), homes)
    count = int(labels.max()) + 1
    return Classes(labels, count, subjects, sample=sample)


def test_the_records_of_a_person_count_once():
    people = np.array([0, 0, 1], dtype=np.int32)
    once = GlobalRisk(0.9).report(classes_of([0, 0], [10, 30]))
    assert GlobalRisk(0.9).report(classes_of([0, 0, 0], [10, 10, 30], subjects=people)) == once


@settings(max_examples=200)
@given(seed=st.integers(0, 1 << 30))
def test_global_and_household_risk_of_random_surveys_equal_those_of_a_plain_script(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    labels = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
    weights, homes = 1 + rng.exponential(30, n), np.sort(rng.integers(0, n, n))
    classes = classes_of(labels, weights, np.unique(homes, return_inverse=True)[1])
    own, carried = naive.risks(labels.tolist(), weights.tolist(), homes.tolist())
    alone = GlobalRisk(0.03).report(classes)
    together = GlobalRisk(0.03, households=True).report(classes)
    assert alone["measured"] == pytest.approx(np.mean(own), rel=1e-10)
    assert together["measured"] == pytest.approx(np.mean(carried), rel=1e-10)
    assert together["expected"] == pytest.approx(np.sum(carried), rel=1e-10)
    assert together["above"] == np.mean(np.array(carried) > 0.03)
    assert IndividualRisk(0.1).report(classes)["measured"] == pytest.approx(max(own), rel=1e-10)


def test_enough_people_in_every_class_keep_the_global_risk_whoever_they_are():
    rng = np.random.default_rng(3)
    for households in (False, True):
        promise = GlobalRisk(0.05, households=households)
        everybody = classes_of([0] * 600, 2 + rng.exponential(9, 600), np.arange(600) // 3)
        enough = promise.enough_among(everybody)
        smallest = classes_of(
            np.arange(600) // enough, everybody.sample.weights, np.arange(600) // 3
        )
        full = smallest.labels < smallest.count - 1  # the last class has the rest
        assert promise.holds(smallest.only(full, None)).any()


@given(st.integers(0, 10**6), st.booleans())
def test_a_certificate_counts_everybody_by_their_risk(seed, lives_alone):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    weights, homes = 1 + rng.exponential(10.0 ** rng.integers(0, 12), n), rng.integers(0, n, n)
    labels = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
    stated = sample_report(classes_of(labels, weights, None if lives_alone else homes))
    own, carried = naive.risks(labels.tolist(), weights.tolist(), homes.tolist())
    edges = stated["edges"]
    assert edges[-1] == 1
    assert ("household" in stated) is not lives_alone
    for key, risks in {"own": own, "household": carried}.items():
        if key in stated:
            assert stated[key]["mean"] == pytest.approx(np.mean(risks), rel=1e-10)
            assert stated[key]["max"] == pytest.approx(max(risks), rel=1e-10)
            assert sum(stated[key]["people"]) == n
            for number, edge in enumerate(edges[1:-1], 1):
                below = sum(stated[key]["people"][:number])
                assert sum(r < edge * (1 - 1e-9) for r in risks) <= below
                assert below <= sum(r < edge * (1 + 1e-9) for r in risks)


FRAME = pl.DataFrame(
    {"age": [20, 20, 31, 31, 44, 45], "home": [*"aabbcd"], "w": [9.5, 12, 30, 41, 2, 300]}
)
POLICY = content_of(
    {"age": {"role": "quasi", "type": "number"}, "home": "household", "w": "weight"},
    promises=[{"model": "global-risk", "at_most": 0.3, "households": True}],
    method={"name": "risk"},
)


def test_a_sample_is_published_without_weights_and_measured_with_them():
    release = shoal.publish(FRAME, POLICY | {"render": {"order": "input"}})
    assert release.data.columns == ["age"]
    (promise,) = release.certificate["promises"]
    carried = naive.risks(release.data["age"].to_list(), FRAME["w"].to_list(), [*"aabbcd"])[1]
    assert promise["measured"] == pytest.approx(np.mean(carried), rel=1e-10)
    assert promise["holds"]
    assert "global-risk with households: asked 0.3," in summary(release.certificate)
    assert "by the weights" not in summary(release.certificate)


def test_under_k_alone_the_risk_by_the_weights_is_reported_too():
    of_k = POLICY | {"promises": [{"model": "k-anonymity", "k": 2}], "method": {"name": "mondrian"}}
    release = shoal.publish(FRAME, of_k)
    found = release.certificate["individual_risk"]
    said = summary(release.certificate)
    assert f"each person: {found['own']['mean']:.6g} on average" in said
    assert f"with the household: {found['household']['mean']:.6g} on average" in said


def test_without_the_original_it_is_not_measured_and_not_said_to_hold():
    release = shoal.publish(FRAME, POLICY)
    audited = shoal.audit(release.data, POLICY)
    (promise,) = audited["promises"]
    assert (promise["measured"], promise["holds"]) == (None, None)
    assert not audited.holds
    assert shoal.audit(release.data, POLICY, original=FRAME)["promises"][0]["holds"] is None


def test_an_audit_with_the_rows_of_the_original_measures_the_published_file(shoal, tmp_path):
    FRAME.write_csv(tmp_path / "in.csv")
    policy, original = tmp_path / "p.json", tmp_path / "in.csv"
    policy.write_text(json.dumps(POLICY | {"render": {"order": "input"}}))
    released = tmp_path / "out.csv", "-p", policy
    shoal("publish", original, "-p", policy, "-o", released[0], status=0)
    assert shoal("audit", *released, "--original", original).status == 0
    alone = shoal("audit", *released, status=1)
    assert "not measured: it needs the weights of the original" in alone.err
    assert shoal("verify", *released, "--original", original).status == 0
    assert shoal("verify", *released).status == 0


def test_a_file_in_the_originals_order_is_measured_once_the_policy_says_so(shoal, tmp_path):
    said, page = audited_rows(shoal, tmp_path, FRAME.reverse())
    assert "sorted by what they show" not in said + page.replace("not sorted by what they show", "")
    assert said.count("'render: {order: input}' in the policy") == 2
    assert "Rows are not sorted by what they show." in page
    said, _ = audited_rows(shoal, tmp_path, FRAME.reverse(), render={"order": "input"})
    assert "not measured" not in said
    assert "give --" not in said


def test_a_sorted_file_needs_the_trace(shoal, tmp_path):
    said, page = audited_rows(shoal, tmp_path, FRAME)
    assert "rows are sorted by what they show, so nobody knows whose is whose" in said
    assert "give --trace\n" in said
    assert "order: input" not in said
    assert "Rows are sorted by what they show" in page


def audited_rows(shoal, folder, frame, **changed):
    """What an audit says of a file that shows all of the frame as it is, and its report."""
    table, released = folder / "in.csv", folder / "out.csv"
    policy, report = folder / "p.json", folder / "a.html"
    frame.write_csv(table)
    frame.select("age").write_csv(released)
    policy.write_text(json.dumps(POLICY | changed))
    done = shoal("audit", released, "-p", policy, "--original", table, "--report", report)
    return done.err, report.read_text()


def test_the_attack_on_the_population_takes_the_weights():
    certificate = shoal.publish(FRAME, POLICY, attack=["population"]).certificate
    found = certificate["attacks"]["population"]
    shown = shoal.publish(FRAME, POLICY | {"render": {"order": "input"}}).data
    own = naive.risks(shown["age"].to_list(), FRAME["w"].to_list())[0]
    assert found["source"] == "weights"
    assert found["marketer"]["share"] == pytest.approx(np.mean(own), abs=5e-5)
    assert certificate["risk"]["journalist_max"] == pytest.approx(max(own), abs=5e-5)


def test_report_and_dossier_draw_the_risks_with_those_of_households(shoal, folder):
    FRAME.write_csv("in.csv")
    Path("p.json").write_text(json.dumps(POLICY))
    Path("release.yaml").write_text("version: 1")
    publish = "publish in.csv -p p.json -o out.csv --report report.html --trace trace.jsonl"
    assert shoal(*publish.split()).status == 0
    shoal(*"dossier out.csv --context release.yaml -o dossier.html".split(), status=0)
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    stated = certificate["individual_risk"]
    for page in ("report.html", "dossier.html"):
        text = Path(page).read_text()
        assert f"6 people; each person: {stated['own']['mean']:.3g} on average" in text
        assert f"with household: {stated['household']['mean']:.3g} on average" in text
        assert "mean, at most 0.3</text>" in text
    read = "-p p.json --original in.csv --trace trace.jsonl".split()
    assert shoal("verify", "out.csv", *read).status == 0
    stated["household"]["people"][-2] += 1
    Path("forged.json").write_text(json.dumps(certificate))
    found = shoal("verify", "out.csv", "forged.json", *read).out
    assert "individual_risk, household, people" in found
