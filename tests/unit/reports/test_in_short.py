"""The five lines: what a board member reads before any measure is named."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from sample_policies import content_of
from shoal.auditor.ledger.history import LedgerAudit
from shoal.connectors.ledger import Ledger
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import have_several_rows
from shoal.reports.in_short import in_short, ledger_in_short, published_table
from shoal.reports.limits import linked_rows

MEASURES = re.compile(r"\b(gcp|discernibility|penalty|prosecutor|quasi|generalized|equivalence)\b")


def policy(**more) -> dict:
    return content_of(
        {
            "name": "identifier",
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "job": "quasi",
            "ill": "sensitive",
            "debt": "sensitive",
            "note": "plain",
        },
        2,
        {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"},
        method={"name": "mondrian"},
        **more,
    )


@pytest.fixture
def certificate() -> Certificate:
    """Ages 20, 30 | 40, 60: spans of 10 and 20 in 100: 15 % of age is lost, nothing of job."""
    frame = pl.DataFrame(
        {
            "name": list("abcd"),
            "age": [20, 30, 40, 60],
            "job": ["x", "x", "y", "y"],
            "ill": ["flu", "hiv", "flu", "hiv"],
            "debt": list("wxyz"),
            "note": list("pqrs"),
        }
    )
    return shoal.publish(frame, policy()).certificate


def test_the_lines_of_a_small_release(certificate):
    assert {line.about: line.says for line in in_short(certificate)} == {
        "Published": ("4 records, each taken to be a person, in 5 columns. Removed: name."),
        "Protected": (
            "Whoever knows age and job of a person, but nothing of ill, debt and note, finds a"
            " class of at least 2 records that look alike, and so picks the right one at most 50.0"
            " % of the time. Among them, ill has at least 2 values."
        ),
        "Lost": (
            "7.5 % of the detail of age and job, on average; most of age (15.0 %). As in the"
            " original: ill, debt and note."
        ),
        "Not promised": (
            "Whoever knows somebody's ill may find them by it."
            " No promise was asked for debt, so it may be learned about a person. Published as in"
            " the table, and not protected: note. Whoever knows more or has another release of the"
            " same people may recognise somebody."
            " If everybody in a class shares a value, anyone who finds the class learns it."
        ),
        "Open": (
            "Whether every record is a person of its own: the policy names no column for that."
            " 100 % of the ends of ranges are one person's age. A hierarchy of 'bins' hides them."
            " No promise covers 'debt', which is sensitive: k people who look alike may all have"
            " the same value; promise l-diversity or t-closeness of it."
            " Whether an attacker could know more than the policy says is its author's judgement."
        ),
    }


def test_what_does_not_hold_and_what_was_not_checked_is_said(certificate):
    broken = [dict(promise) for promise in certificate["promises"]]
    broken[0] |= {"holds": False, "asked": 5}
    lines = dict(in_short(certificate.extended(promises=broken, faults={"not_removed": 1})))
    assert lines["Protected"].startswith("Not kept: k-anonymity asked for 5, found was 2.")
    assert "The policy removes 1 column that the release still holds." in lines["Open"]
    assert "The cells were not compared with an original." in lines["Open"]


@pytest.mark.parametrize(
    ("shown", "withheld", "said"),
    [
        (5, 0, "5 are shown here and stay hidden by all of them, too."),
        (0, 7, "0 are shown here and stay hidden by all of them, too, and 7 are withheld."),
    ],
)
def test_people_of_other_releases_are_hidden_or_withheld(certificate, shown, withheld, said):
    beside = {"holds": True, "people": shown, "withheld": withheld}
    line = dict(in_short(certificate.extended(beside=beside)))["Protected"]
    assert line.endswith(f"values. Of the people in other releases that were named, {said}")


def test_sets_that_hold_alone_are_named_together(certificate):
    together = {"attributes": ["age", "job"], "asked": 2, "min": 1, "below": 1}
    together |= {"alone": 1, "people": 4}
    lines = dict(in_short(certificate.extended(together=together)))
    expected = "Whoever knows age and job together may be left with fewer than 2."
    assert lines["Not promised"].startswith(expected)


def test_a_certificate_of_the_first_schema_has_five_lines_too(certificate):
    old = Certificate({**certificate, "schema": "shoal.certificate/1"})
    lines = dict(in_short(old))
    assert lines["Published"] == "4 records of 4 people."
    assert lines["Protected"].startswith("Whoever knows all that an attacker could know of a")


AGES = [20, 30, 40, 60]


def people(first: str, ages=AGES) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "who": [f"{first}{i}" for i in range(len(ages))],
            "age": [str(age) for age in ages],
            "ill": ["flu", "hiv"] * (len(ages) // 2),
        }
    )


def grown_policy(**more) -> dict:
    return content_of(
        {
            "who": "subject",
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "ill": "sensitive",
        },
        2,
        {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"},
        **more,
    )


def test_the_lines_of_a_ledger_are_about_its_whole_table(tmp_path):
    """20 to 30, 40 to 60, then 70 to 71 and 80 to 81: of 100, (2 * 30 + 2 * 2) / 8 = 8 is lost."""
    ledger = tmp_path / "L"
    content = grown_policy(method={"name": "static-1"})
    shoal.republish(people("a"), content, ledger)
    shoal.republish(people("b", [70, 71, 80, 81]), content, ledger)
    found = shoal.audit_ledger(ledger)
    assert {line.about: line.says for line in ledger_in_short(found)} == {
        "Published": "8 records of 8 people, in 2 columns. Removed: who. Published in 2 releases.",
        "Protected": (
            "Whoever knows age of a person, but nothing of ill, finds a class of at least 2 people"
            " who look alike, and so picks the right one at most 50.0 % of the time. Among them,"
            " ill has at least 2 values. Every check of the releases against one another holds."
        ),
        "Lost": "8.0 % of the detail of age, on average. As in the original: ill.",
        "Not promised": (
            "Whoever knows somebody's ill may find them by it."
            " Whoever knows more or has another release of the same people may recognise somebody."
            " If everybody in a class shares a value, anyone who finds the class learns it."
        ),
        "Open": "The cells were not compared with an original.",
    }
    shutil.rmtree(Ledger.at(ledger).private)
    lines = dict(ledger_in_short(shoal.audit_ledger(ledger)))
    assert "The private part was missing" in lines["Open"]


def test_a_ledger_whose_releases_reveal_more_together_says_so(tmp_path):
    """static-2 publishes the whole table anew, and comparing tells who came."""
    ledger, rng = tmp_path / "L", np.random.default_rng(1)
    content = grown_policy(method={"name": "static-2"})
    for first in "abc":
        ages = rng.integers(0, 100, 20).tolist()
        shoal.republish(people(first, ages), content, ledger, allow_leaks=True)
    found = shoal.audit_ledger(ledger)
    assert not found.holds
    lines = dict(ledger_in_short(found))
    assert lines["Published"].startswith("60 records of 60 people")
    assert "Not kept: the releases together reveal more" in lines["Protected"]


@pytest.mark.parametrize(("model", "worst"), [("individual-risk", 0.2), ("l-diversity", 0.1)])
def test_of_two_releases_the_one_with_least_left_of_a_promise_counts(certificate, model, worst):
    promise = {**certificate["promises"][0], "model": model, "holds": True}
    releases = [
        SimpleNamespace(
            certificate=certificate.extended(covers=covers, promises=[{**promise, "measured": m}])
        )
        for covers, m in (("table", 0.2), ("increment", 0.1))
    ]
    assert published_table(releases)["promises"][0]["measured"] == worst


def test_nothing_is_claimed_of_a_damaged_ledger(tmp_path):
    assert ledger_in_short(LedgerAudit([], ["release 0001: changed"])) == []


def test_a_stream_says_what_was_not_published_and_how_it_was_measured(certificate):
    records = certificate["records"] | {"held": 2, "dropped": 0, "rejected": 1, "waiting": 3}
    promises = [dict(promise) for promise in certificate["promises"]]
    promises[1]["measured"] = None
    stream = certificate.extended(
        records=records, measured="release by release", promises=promises, together=None
    )
    lines = dict(in_short(stream))
    assert lines["Lost"].endswith("Not published: 2 held to the end and 1 set aside as bad.")
    assert "3 records still wait for a later release." in lines["Open"]
    assert "Classes were measured as they appeared" in lines["Open"]
    assert "ill has at least 2 values" in lines["Protected"]


def lines_of(page: str) -> list[str]:
    assert page.index('<dl class="short">') < page.index("<h2>")
    return re.findall(r"<dt>(.*?)</dt>", page)


def test_the_reports_of_streams_and_ledgers_begin_with_them(folder, request):
    run = request.getfixturevalue("shoal")
    people("a", AGES * 5).write_csv("in.csv")
    for name, method in (("s", "fads"), ("l", "static-1")):
        settings = {"name": method, "delta": 8} if method == "fads" else {"name": method}
        Path(f"{name}.yaml").write_text(yaml.safe_dump(grown_policy(method=settings)))
    stream = ("stream", "in.csv", "-p", "s.yaml", "-o", "out.csv", "--report", "s.html", "-q")
    assert run(*stream).status == 0
    assert run("republish", "in.csv", "-p", "l.yaml", "--ledger", "L", "-q").status == 0
    assert run("audit", "--ledger", "L", "--report", "l.html", "-q").status == 0
    about = ["Published", "Protected", "Lost", "Not promised", "Open"]
    for page in ("s.html", "l.html"):
        text = Path(page).read_text()
        assert lines_of(text) == about
        assert not MEASURES.search(text[text.index("<body>") : text.index("<h2>")])


def test_invented_records_are_counted(tmp_path):
    """Of four pairs one loses a person whose value somebody has to show."""
    ledger, content = tmp_path / "L", grown_policy(method={"name": "m-invariance"})
    content["attributes"]["change"] = {"role": "operation"}
    first = people("a", [20, 30, 40, 60] * 3)
    shoal.republish(first.with_columns(change=pl.lit("insert")), content, ledger)
    gone = first.filter(ill="flu").head(1).with_columns(change=pl.lit("delete"))
    done = shoal.republish(gone, content, ledger)
    assert done.certificate["counterfeits"]["records"] == 1
    assert linked_rows(done.certificate) == "everybody has one row; 1 row is invented"
    assert not have_several_rows(done.certificate)
    for found in (in_short(done.certificate), ledger_in_short(shoal.audit_ledger(ledger))):
        said = dict(found)["Published"]
        assert said.startswith("12 records of 11 people")
        assert said.count("Invented, so that classes are full: 1 of the records.") == 1
