"""What a report shows, and what it must not."""

import re
import time
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from page_text import Page, assert_needs_nothing_else
from sample_policies import PATIENTS, content_of
from shoal.auditor.audit import AuditResult
from shoal.auditor.measure import measure
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.table import bound_release
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.reports.charts import WIDTH, risks_chart, text_width
from shoal.reports.distributions import (
    MOST_DRAWN,
    NO_VALUE,
    OTHERS,
    Distribution,
    distribution_chart,
    distributions_of,
    drawn_of,
    round_edges,
    spread_over_intervals,
)
from shoal.reports.pages import Heading, measured_of
from shoal.reports.release import attackers, write_report
from shoal.samples import patients, survey
from shoal.tables.publish import Outcome, publish_file
from shoal.tables.request import PublishRequest

SECTIONS = ("promises", "classes", "risk", "limits", "loss", "before-after", "columns", "repeat")
SAMPLE_POLICY = yaml.safe_load(PATIENTS) | {"method": {"name": "mondrian"}}


class Release:
    """A published frame, its report, and what they were made from."""

    def __init__(self, folder: Path, frame: pl.DataFrame, content: dict) -> None:
        frame.write_csv(folder / "input.csv")
        self.policy = Policy.from_dict(content)
        self.outcome: Outcome = publish_file(
            str(folder / "input.csv"), self.policy, str(folder / "output.csv")
        )
        write_report(self.outcome, self.policy, folder / "report.html")
        self.html = (folder / "report.html").read_text("utf-8")
        self.page = Page(self.html)
        self.published = (folder / "output.csv").read_text()

    def distribution(self, name: str) -> Distribution:
        found = distributions_of(measured_of(self.outcome, self.policy), [name])
        return next(d for d in found if d.name == name)


AGE = {"role": "quasi", "type": "number", "domain": [0, 120]}
PEOPLE = {"age": AGE, "city": "quasi", "ill": "sensitive"}


def policy_of(attributes: dict = PEOPLE, k: int = 5, **more) -> dict:
    return content_of(attributes, k, **{"method": {"name": "mondrian"}} | more)


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Release:
    return Release(tmp_path_factory.mktemp("sample"), patients.generate(1000, 1), SAMPLE_POLICY)


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory) -> Release:
    folder = tmp_path_factory.mktemp("survey")
    return Release(folder, survey.generate(600, 7), yaml.safe_load(survey.POLICY))


def people(count: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 70, count),
            "city": rng.choice(["Oslo", "Bergen", "Tromso"], count),
            "ill": rng.choice(["flu", "cold"], count),
        }
    )


def of_first(count: int, **cells: object) -> list[pl.Expr]:
    """Columns in which the first rows have other cells."""
    is_first = pl.int_range(pl.len()) < count
    return [pl.when(is_first).then(pl.lit(c)).otherwise(n).alias(n) for n, c in cells.items()]


def audited(folder: Path, table: Table, problem: Problem, policy: Policy, truth=None) -> str:
    """What the page of an audit says."""
    measured = measure(table, problem, truth)
    result = AuditResult(measured.certificate, measured.held, problem, truth)
    write_report(result, policy, folder / "audit.html")
    return Page((folder / "audit.html").read_text("utf-8")).text


# The page itself


def test_what_open_columns_give_away_stands_first_and_beside_the_highest_risk(tmp_path):
    rows = people(200).with_columns(surname=pl.Series([f"N{i % 90}" for i in range(200)]))
    plain = {"surname": "plain", "job": "plain"}
    rows = rows.with_columns(job=pl.col("ill"))
    release = Release(tmp_path, rows, policy_of(PEOPLE | plain))
    text = release.page.text
    together = release.outcome.certificate["together"]
    count = len(release.outcome.certificate.grave)
    assert f"Every promise holds; {count} grave findings. Grave: 'surname' is not protected" in text
    alone = f"{together['alone_if_known']} of {together['people']} are alone"
    assert f"with ill, surname and job known too, {alone}" in text


def test_a_report_says_which_rows_lose_most(sample):
    said = re.search(
        r"the tenth that loses most loses ([\d.]+) % of the detail, the half that loses least"
        r" ([\d.]+) %. Most of what that tenth loses is detail of [\w, ]+. The class that loses"
        r" most, of [\d,]+ rows, loses ([\d.]+) %",
        sample.page.text,
    )
    tenth, half, worst = map(float, said.groups())
    loss = 100 * sample.outcome.certificate["utility"]["gcp"]
    assert half < loss < tenth <= worst


def test_it_has_every_section_and_needs_nothing_but_itself(sample):
    assert [i for i in sample.page.ids if i in SECTIONS] == list(SECTIONS)
    assert_needs_nothing_else(sample.html)


def test_every_chart_says_in_words_what_it_shows(sample):
    charts = re.findall(r"<svg [^>]*>", sample.html)
    assert len(charts) == 2 + 4
    for chart in charts:
        assert 'role="img"' in chart
        assert all(
            i in sample.page.ids for i in re.search(r'aria-labelledby="([^"]+)"', chart)[1].split()
        )


def test_the_figures_are_those_of_the_certificate(sample):
    certificate, text = sample.outcome.certificate, sample.page.text
    classes, risk, utility = certificate["classes"], certificate["risk"], certificate["utility"]
    assert "Every promise holds" in text
    assert "finds a class of at least 10 people who look alike" in text
    assert f"disease has at least {certificate['promises'][1]['measured']} values" in text
    assert f"1,000 records of {certificate['subjects']} people" in text
    assert f"Classes {classes['count']} Smallest, in people {classes['min']}" in text
    most, mean = (f"{100 * risk[f'prosecutor_{name}']:.1f} %" for name in ("max", "mean"))
    assert f"at most {most} on average {mean}" in text
    assert f"{100 * utility['gcp']:.1f} %" in text
    assert f"{utility['discernibility']:,}" in text
    for file in ("input", "output"):
        assert certificate[file]["sha256"] in text


def test_the_whole_certificate_is_in_it(sample):
    text = re.search(r"<summary>The certificate.*?<pre>(.*?)</pre>", sample.html, re.DOTALL)[1]
    assert unescape(text) == sample.outcome.certificate.to_json()


def test_promises_are_defined_in_words(sample):
    for promise in sample.policy.build_promises():
        assert promise.definition in sample.page.text


def test_its_policy_can_be_used_again(sample):
    text = re.search(r"policy.yaml</h3>\s*<pre>(.*?)</pre>", sample.html, re.DOTALL)[1]
    assert Policy.from_dict(yaml.safe_load(text)).model == sample.policy.model


def test_same_measures_give_the_same_bytes(sample, tmp_path):
    write_report(sample.outcome, sample.policy, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text("utf-8") == sample.html


def test_it_is_written_whole_or_not_at_all(sample, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("the one before")
    monkeypatch.setattr(
        "pathlib.Path.write_text", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        write_report(sample.outcome, sample.policy, tmp_path / "report.html")
    monkeypatch.undo()
    assert [f.name for f in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "the one before"


def test_a_folder_that_does_not_exist_is_named(sample, tmp_path):
    with pytest.raises(InputError, match="can't be written"):
        write_report(sample.outcome, sample.policy, tmp_path / "nowhere" / "report.html")


def test_names_and_labels_are_text_not_markup_and_not_mathematics(tmp_path):
    frame = people(60).rename({"age": "<b>age</b>&", "city": "$c_1$", "ill": "'i'"})
    frame = frame.with_columns(pl.col("$c_1$").replace("Oslo", "<i>$x^2$</i>"))
    roles = {"<b>age</b>&": AGE, "$c_1$": "quasi", "'i'": "sensitive"}
    content = policy_of(roles, missing="value")
    release = Release(tmp_path, frame, content)
    assert not {"b", "i"} & set(release.page.tags)
    assert "<b>age</b>&" in release.page.text
    assert "$c_1$" in release.page.text
    if OTHERS not in release.distribution("$c_1$").labels:
        assert "<i>$x^2$</i>" in release.page.text


def test_letters_that_can_not_be_printed_do_no_harm(tmp_path):
    frame = people(60).with_columns(pl.col("city").replace("Oslo", "Os\x01lo 東京 " + "x" * 80))
    release = Release(tmp_path, frame, policy_of())
    drawn = "".join(re.findall(r"<svg.*?</svg>", release.html, re.DOTALL))
    assert "\x01" not in drawn
    assert "x" * 40 not in drawn


# Tables of every sort


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ({"age": "drop"}, "does not apply"),  # the squared error
        ({"city": "drop", "ill": "plain"}, "published as it is"),
    ],
    ids=["only categories", "only numbers"],
)
def test_columns_of_one_sort(tmp_path, roles, says):
    assert says in Release(tmp_path, people(60), policy_of(PEOPLE | roles)).page.text


def test_one_class(tmp_path):
    release = Release(tmp_path, people(12), policy_of(k=12))
    assert "finds a class of at least 12 records that look alike" in release.page.text
    assert "Classes 1 Smallest, in records 12" in release.page.text


def test_a_single_published_number(tmp_path):
    frame = people(40).with_columns(age=pl.lit(33.5))
    release = Release(tmp_path, frame, policy_of())
    found = release.distribution("age")
    assert found.after.sum() == pytest.approx(40)
    assert found.before.tolist() == [40]


def test_suppressed_records_are_counted_with_the_reason(tmp_path):
    frame = people(60).with_columns(of_first(7, age=None))
    release = Release(tmp_path, frame, policy_of(missing="suppress"))
    assert "7 lack a quasi-identifier" in release.page.text
    assert "7 records hide all that an attacker could know" in release.page.text
    assert "7 of 60 records are suppressed" in release.page.text
    assert release.distribution("age").after.sum() == pytest.approx(53)


def test_missing_values_have_a_bar_of_their_own(tmp_path):
    frame = people(100).with_columns(of_first(30, age=None, city=None))
    release = Release(tmp_path, frame, policy_of())
    for name in ("age", "city"):
        found = release.distribution(name)
        assert found.labels[-1] == NO_VALUE
        assert found.before[-1] == 30
    assert NO_VALUE in release.page.text


def test_audit_report_without_the_original_has_no_before(sample, tmp_path):
    published = Table(sample.outcome.draft.frame)
    problem = bound_release(published, sample.policy)
    text = audited(tmp_path, published, problem, sample.policy)
    assert "Audit report" in text
    assert "Rows were counted, not people." in text
    assert "Original" not in text


def test_columns_that_should_have_been_removed_are_said_without_the_original(tmp_path):
    """The original itself, audited as if it were a release."""
    original, policy = Table(patients.generate(500, 1)), Policy.from_dict(SAMPLE_POLICY)
    text = audited(tmp_path, original, bound_release(original, policy), policy)
    assert "The policy removes 1 column that the release still holds." in text
    assert "Without the original, this audit could not check" in text


def test_a_release_without_any_class(sample, tmp_path):
    draft = sample.outcome.draft
    marks = dict.fromkeys(("age", "sex", "zip", "education"), pl.lit("*"))
    text = audited(tmp_path, Table(draft.frame.with_columns(**marks)), draft.asked, sample.policy)
    assert "1,000 records hide all that an attacker could know." in text
    assert "Classes 1 " in text


def test_a_broken_promise_is_said_first(sample, tmp_path):
    draft, stricter = sample.outcome.draft, sample.policy.with_k(25)
    problem = draft.asked.again(stricter)
    text = audited(tmp_path, Table(draft.frame), problem, stricter, draft.truth)
    assert "Not everything holds" in text
    assert "Not kept: k-anonymity asked for 25, found was 10." in text
    assert "✗ does not hold" in text


def test_sensitive_values_without_a_promise_are_named_as_such(sample):
    assert "Sensitive values of charge. No promise was asked for it" in sample.page.text
    assert "Good guesses about disease." in sample.page.text


@pytest.mark.parametrize(
    ("order", "said"),
    [("input", "in the order of the input"), ("content", "sorted by what they show")],
)
def test_what_the_order_of_the_rows_tells_is_said(tmp_path, order, said):
    content = policy_of(render={"order": order})
    assert f"The order of the rows. Rows {'stand' if order == 'input' else 'are'} {said}" in (
        Release(tmp_path, people(40), content).page.text
    )


@pytest.mark.long
def test_a_hundred_thousand_records_take_little_time(tmp_path):
    patients.generate(100_000, 1).write_csv(tmp_path / "input.csv")
    policy = Policy.from_dict(SAMPLE_POLICY)
    outcome = publish_file(str(tmp_path / "input.csv"), policy, str(tmp_path / "output.csv"))
    started = time.process_time()
    write_report(outcome, policy, tmp_path / "report.html")
    assert time.process_time() - started < 3


@pytest.mark.long
def test_the_adult_table(tmp_path, adult, data_folder):
    names = ("age workclass education marital-status occupation race sex native-country").split()
    folder = data_folder / "adult" / "hierarchies_arx"
    attributes = {
        name: {"role": "quasi", "hierarchy": str(folder / f"{name}.csv")} for name in names
    }
    content = policy_of({**attributes, "income": "sensitive"}, k=10)
    release = Release(tmp_path, adult.select([*names, "income"]), content)
    assert all(len(release.distribution(name).labels) >= 2 for name in names)


# What must not be told


def test_a_value_of_few_people_is_not_told(tmp_path):
    frame = people(200).with_columns(of_first(3, city="Longyearbyen"))
    release = Release(tmp_path, frame, policy_of())
    assert "Longyearbyen" not in release.published
    assert "Longyearbyen" not in release.html


def shown_if_published(release: Release, name: str, cell: str) -> Distribution:
    """The column's distribution, had every record shown this cell in it."""
    draft = release.outcome.draft
    frame = draft.frame.with_columns(pl.lit(cell).alias(name))
    published = measure(Table(frame), draft.asked, draft.truth).release
    measured = replace(measured_of(release.outcome, release.policy), release=published)
    found = distributions_of(measured, [name])
    return next(d for d in found if d.name == name)


def test_a_frequent_value_that_is_not_published_is_not_told(tmp_path):
    """It comes from the data alone, so whether it occurs is the data's secret."""
    release = Release(tmp_path, people(200), policy_of())
    assert set(release.distribution("city").labels) == {"Oslo", "Bergen", "Tromso"}
    found = shown_if_published(release, "city", "*")
    assert found.labels == (OTHERS,)
    assert found.before.tolist() == [200]


@pytest.mark.parametrize("order", ["alphabetical", "frequency"])
def test_an_order_that_the_data_tells_names_published_labels_only(tmp_path, order):
    ordinal = {"role": "quasi", "type": "ordinal", "order": order}
    release = Release(tmp_path, people(200), policy_of(PEOPLE | {"city": ordinal}))
    first, _, last = release.outcome.draft.asked.schema["city"].order
    found = shown_if_published(release, "city", f"[{first}, {last}]")
    assert found.labels == (first, last, OTHERS)
    assert found.after == pytest.approx([200 / 3] * 3)


def test_an_order_that_the_policy_tells_is_schema_where_enough_people_stand_behind_it(tmp_path):
    frame = people(200).with_columns(of_first(4, city="Narvik"))
    ordinal = {"role": "quasi", "type": "ordinal", "order": ["Bergen", "Narvik", "Oslo", "Tromso"]}
    release = Release(tmp_path, frame, policy_of(PEOPLE | {"city": ordinal}))
    found = shown_if_published(release, "city", "[Bergen, Tromso]")
    assert found.labels == ("Bergen", "Oslo", "Tromso", OTHERS)
    assert np.isnan(found.before[-1])


def test_codes_are_shown_at_the_level_that_is_published(tmp_path):
    rng = np.random.default_rng(0)
    codes = 13000 + rng.integers(0, 200, 300)
    frame = people(300).with_columns(city=pl.Series(codes).cast(pl.String))
    release = Release(
        tmp_path,
        frame,
        policy_of(PEOPLE | {"city": {"role": "quasi", "hierarchy": {"prefix": 5}}}, k=20),
    )
    shown = set(re.findall(r"\b13\d{3}\b", release.page.text))
    assert shown <= set(re.findall(r"\b13\d{3}\b", release.published))
    assert set(release.distribution("city").labels) & {"130**", "131**"}
    assert shown_if_published(release, "city", "13***").labels == ("13***",)


def test_the_extremes_of_suppressed_records_are_not_told(tmp_path):
    frame = people(80).with_columns(of_first(2, age=3, city=None)).with_columns(of_first(1, age=97))
    release = Release(tmp_path, frame, policy_of(missing="suppress"))
    found = release.distribution("age")
    assert found.edges[0] >= 20
    assert found.edges[-1] <= 70


def test_the_domain_that_only_the_data_tells_is_not_told(tmp_path):
    frame = people(80).with_columns(of_first(1, age=98765, city=None))
    number = {"role": "quasi", "type": "number"}
    release = Release(tmp_path, frame, policy_of(PEOPLE | {"age": number}, missing="suppress"))
    assert "98765" not in release.html.replace(",", "")


def test_every_figure_of_the_original_stands_for_k_people_and_is_a_multiple_of_k(sample):
    for name in ("age", "sex", "zip", "education"):
        before = sample.distribution(name).before
        known = before[~np.isnan(before)]
        assert len(known)
        assert (known >= 10).all()
        assert (known % 10 == 0).all()


def test_many_records_of_one_person_are_one_person(tmp_path):
    """Thirty visits at age 61 by one person are not thirty people at age 61."""
    frame = people(60).with_columns(who=pl.int_range(60), age=pl.lit(30) + pl.int_range(60) % 3)
    visits = pl.DataFrame(
        {"age": [61] * 30, "city": ["Oslo"] * 30, "ill": ["flu"] * 30, "who": [0] * 30}
    )
    both = pl.concat([visits.cast(frame.schema), frame])
    release = Release(tmp_path, both, policy_of(PEOPLE | {"who": "subject"}))
    found = release.distribution("age")
    at_61 = np.flatnonzero((found.edges[:-1] <= 61) & (found.edges[1:] > 61))
    assert np.isnan(found.before[at_61]).all()


def test_small_k_still_folds_values_of_fewer_than_five(tmp_path):
    frame = people(103).with_columns(age=pl.when(pl.int_range(103) < 100).then(30).otherwise(50))
    release = Release(tmp_path, frame, policy_of(PEOPLE | {"city": "drop"}, k=2))
    found = release.distribution("age")
    assert found.before[0] == 100
    assert np.isnan(found.before[1:]).all()
    assert "fewer than 5 people" in release.page.text


# How mass is spread


def test_spread_mass_is_all_of_it():
    rng = np.random.default_rng(1)
    lo = rng.uniform(0, 50, 40)
    hi = lo + rng.uniform(0, 30, 40) * (rng.random(40) > 0.3)
    weights = rng.integers(1, 9, 40).astype(float)
    edges = round_edges(float(lo.min()), float(hi.max()), whole=False)
    assert spread_over_intervals(lo, hi, weights, edges).sum() == pytest.approx(weights.sum())


def test_an_interval_is_spread_evenly_over_the_whole_numbers_it_holds():
    spread = spread_over_intervals(
        np.array([10.0]), np.array([20.0]), np.array([10.0]), np.array([10.0, 15.0, 20.0])
    )
    assert spread.tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("lo", "hi", "whole"),
    [
        (0, 0, True),
        (17, 90, True),
        (0, 99_999, True),
        (-5, 5, True),
        (0.5, 0.5, False),
        (0, 0, False),
        (-1e-3, 7e8, False),
    ],
)
def test_ends_of_intervals_cover_what_is_published_and_are_not_many(lo, hi, whole):
    edges = round_edges(lo, hi, whole)
    assert edges[0] <= lo
    assert edges[-1] > hi
    assert 1 <= len(edges) - 1 <= 26
    assert (np.diff(edges) > 0).all()


def test_all_of_the_release_is_in_the_bars(sample):
    for name in ("age", "sex", "zip", "education"):
        found = sample.distribution(name)
        assert found.after.sum() + found.hidden == pytest.approx(1000)


@pytest.mark.long
def test_a_report_of_300_columns_is_drawn_in_seconds_and_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"number{i}" for i in range(300)]
    frame = pl.DataFrame({name: rng.integers(0, 1000, 60) for name in names})
    attributes = {name: {"role": "quasi", "type": "number", "domain": [0, 1000]} for name in names}
    wide = Release(tmp_path, frame, policy_of(attributes))
    started = time.process_time()
    write_report(wide.outcome, wide.policy, tmp_path / "again.html")
    assert time.process_time() - started <= 5
    assert (tmp_path / "again.html").stat().st_size <= 1_500_000
    assert wide.html.count("<svg") == 1 + 1 + MOST_DRAWN  # sizes, losses, before and after
    assert "Drawn are the 24 quasi-identifiers that lost most, of 300" in wide.page.text
    assert all(name in wide.page.text for name in names)


def test_the_columns_that_lost_most_are_drawn_in_their_order():
    losses = {f"c{i}": (7 * i % 30) / 30 for i in range(30)}
    drawn = drawn_of(losses)
    assert min(drawn.values()) > max(losses[name] for name in losses.keys() - drawn)
    assert list(drawn) == [name for name in losses if name in drawn]
    assert len(drawn) == MOST_DRAWN
    assert drawn_of({"a": None, "b": 0.5}) == {"a": None, "b": 0.5}


# What it is of, and what a reader needs no appendix for


@pytest.fixture
def reported(folder, shoal):
    """Publishes patients with a report, under more options or with a context; the page."""
    assert shoal("sample", "patients", "-n", "300", "-o", "in.csv", "-q").status == 0
    words = "publish in.csv -p in.policy.yaml -o out.csv --method mondrian -q --replace".split()

    def run(*more: str, context: dict | None = None) -> str:
        if context is not None:
            policy = Policy.load("in.policy.yaml")
            outcome = publish_file("in.csv", policy, "out.csv", PublishRequest(replace=True))
            write_report(outcome, policy, Path("r.html"), Heading.of("out.csv", context))
            return Path("r.html").read_text("utf-8")
        shoal(*words, *more, "--report", "r.html", status=0)
        return Path("r.html").read_text("utf-8")

    return run


def test_a_chart_of_numbers_is_described_by_what_its_intervals_hold():
    edges, bars = np.array([9.0, 10.0, 15.0]), np.array([50.0, 40.0])
    found = Distribution("age", ("9", "10 to 14"), edges, bars, bars, records=100)
    assert distribution_chart(found).description.startswith(
        "9: original 50.0 %, release 50.0 %; 10 "
    )


@pytest.mark.parametrize("method", [None, "mondrian:cut=nearest"])
def test_the_command_in_a_report_makes_its_release(folder, shoal, method):
    shoal("sample", "patients", "-n", "300", "-o", "in.csv", "-q", status=0)
    close = {"model": "t-closeness", "attributes": ["disease"], "t": 0.4}
    policy = yaml.safe_load(Path("in.policy.yaml").read_text()) | {
        "promises": [{"model": "k-anonymity", "k": 5}, close]
    }
    Path("p.yaml").write_text(yaml.safe_dump(policy))
    more = ["--method", method] if method else []
    shoal(
        "publish", "in.csv", "-p", "p.yaml", "-o", "out.csv", *more, "--report", "r.html", status=0
    )
    page = Path("r.html").read_text("utf-8")
    command, printed = (re.findall(tag, page, re.DOTALL)[-1] for tag in (COMMAND, PRINTED))
    Path("policy.yaml").write_text(unescape(printed))
    words = command.replace("INPUT", "in.csv").replace("OUTPUT", "again.csv").split()
    shoal(*words[1:], status=0)
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()


COMMAND, PRINTED = r"<code>(shoal publish .*?)</code>", r"policy.yaml</h3>\s*<pre>(.*?)</pre>"


def test_a_report_names_its_file_its_day_its_title_and_its_owner(reported):
    given = {"version": 1, "title": "Waiting times", "controller": {"name": "Ward <5>"}}
    head = reported(context=given).partition("<div")[0].partition("<header>")[2]
    assert re.search(r"<h1>\s*Waiting times\s*</h1>", head)
    assert re.search(r"out\.csv, Ward &lt;5&gt;, 20\d\d-\d\d-\d\d\.", head)
    assert re.search(r"<h1>\s*Release report\s*</h1>", reported())


def test_a_report_says_who_releases_it_to_whom_and_why_or_that_nobody_says_so(reported):
    box = reported().partition('<div class="verdict')[2].partition("</div>")[0]
    assert "Not stated: who releases this, to whom and for what purpose." in box
    page = reported(context={"version": 1, "purpose": "Study.", "title": "x"})
    box = page.partition('<div class="verdict')[2].partition("</div>")[0]
    assert "Purpose: Study." in box
    assert "Not stated: who releases this and to whom." in box


def test_a_report_says_of_how_many_people_a_column_is_hidden_entirely(reported):
    page = unescape(reported())
    section = page.partition('<section id="columns">')[2].partition("</section>")[0]
    published = pl.read_csv("out.csv", infer_schema=False)
    (hidden,) = re.findall(r"Hidden entirely, at least once: ([^<]+)\.\s*</p>", section) or [""]
    for name in ("age", "sex", "zip", "education"):
        assert (name in hidden) == bool((published[name] == "*").any())
    assert ("No cell hides its value entirely." in section) != bool(hidden)


def test_a_report_says_that_no_attack_was_tried_and_by_which_rule_findings_stand(reported):
    none = "None was tried on this release: nothing is known of what they would find."
    page = reported()
    assert (none in page, "The worst rating comes first" in page) == (True, False)
    page = reported("--attack", "linkability")
    assert (none in page, "The worst rating comes first" in page) == (False, True)


def test_raw_names_of_measures_stand_in_the_appendix_alone(reported):
    page = reported("--attack", "all")
    front, appendix = page.split('<section id="repeat">')
    assert not re.search(r"<code>\w+</code>|\bgcp\b|discernibility|squared_error", front)
    assert "<code>gcp</code>" in appendix
    assert "<strong>much:</strong>" in front
    assert '<div class="verdict amber">' in front


def test_a_k_over_some_columns_stands_below_what_is_left_by_all(folder, shoal):
    pl.DataFrame({"sex": ["m", "m", "f", "f"], "job": ["a", "b", "a", "b"]}).write_csv("t.csv")
    sets = [{"model": "k-anonymity", "k": 2, "attributes": [name]} for name in ("sex", "job")]
    policy = content_of({"sex": "quasi", "job": "quasi"}, promises=sets)
    Path("p.yaml").write_text(yaml.safe_dump(policy))
    assert shoal("audit", "t.csv", "-p", "p.yaml", "-q", "--report", "r.html").status == 0
    page = Path("r.html").read_text("utf-8")
    by_all = page.index("By sex and job together: classes of at least 1 record, 4 of 4 alone.")
    assert by_all < page.index(
        "Whoever knows sex of a person, but nothing of job, finds a class of at least 2"
    )


def test_the_risk_by_the_weights_of_a_sample_has_a_name_of_its_own(surveyed):
    certificate = surveyed.outcome.certificate
    risk, own = certificate["risk"], certificate["individual_risk"]["own"]
    assert risk["journalist_max"] > 2 * own["max"]
    found = attackers(certificate)
    shown = {name: [figure for _, figure in figures] for name, _, figures in found}
    assert shown["Journalist"] == [risk["journalist_max"]]
    assert shown["Marketer"] == [risk["marketer"]]
    assert shown["Individual risk"] == [own["max"], own["mean"]]
    said = {name: text for name, text, _ in found}
    assert "this is an upper bound" in said["Marketer"]
    assert "such a list of the population" in said["Individual risk"]


def test_the_marketers_chance_is_called_a_bound_only_where_no_population_was_compared():
    risk = dict.fromkeys(("prosecutor_max", "prosecutor_mean", "journalist_max", "marketer"), 0.2)
    around = {"source": "weights", "journalist_max": 0.1, "marketer": 0.1}
    for attacks, is_bound in (({}, True), ({"population": around}, False)):
        said = {name: text for name, text, _ in attackers({"risk": risk, "attacks": attacks})}
        for name in ("Journalist", "Marketer"):
            assert ("this is an upper bound" in said[name]) == is_bound
            assert ("(weights)" in said[name]) != is_bound


def test_the_legend_of_the_risks_stays_in_the_chart_and_names_both_bounds(surveyed):
    chart = risks_chart(surveyed.outcome.certificate)
    names = [shape.name for shape in chart.shapes if shape.name]
    assert names[2:] == ["mean, at most 0.03", "each, at most 0.2"]
    placed = {text.words: text for text in chart.on_page()[1] if text.words in names}
    assert list(placed) == names
    assert max(text.x + text_width(name) for name, text in placed.items()) <= WIDTH


def test_a_promise_of_a_sample_is_reported_in_words_and_both_bounds_are_drawn(surveyed):
    promises = surveyed.page.text
    stated = surveyed.outcome.certificate["promises"][0]
    assert "global-risk (with the household, " in promises
    assert f"{stated['expected']:.6g} people expected to be re-identified" in promises
    assert f"{100 * stated['above']:.1f} % of people above the bound" in promises
    assert "mean, at most 0.03" in surveyed.html
    assert "each, at most 0.2" in surveyed.html
