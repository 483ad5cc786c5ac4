"""Linked tables on pages: the picture of how they hang together, and each table in sentences."""

import csv
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import linked_cases
import shoal
from shoal.auditor.dossier.context import read_context
from shoal.auditor.dossier.dossier import DEFAULT, unanswered
from shoal.auditor.linked.audit import audit_linked
from shoal.data.certificate import Certificate
from shoal.policy.problem import LinkedProblem
from shoal.reports.attacks import page_content, rows_of, which_tried
from shoal.reports.distributions import Distribution
from shoal.reports.in_short import in_short, is_of_rows_alike
from shoal.reports.linked import (
    Entity,
    entities_of,
    entity_picture,
    linked_distributions,
    linked_lines,
    paid_lines,
    table_findings,
    write_linked_report,
)

SAFE = {"tried": 40, "people": 40, "below": 0, "least": 5}


def certificate(below: int = 0, matching: dict | None = None, **found: object) -> Certificate:
    def table(name, parent, known, came, shown):
        rows = {"in": came, "published": shown, "withheld": came - shown}
        return {"name": name, "parent": parent, "known": known, "rows": rows}

    exposed = [("people", "all", 0), ("visits", "2", below), ("visits", "all", None)]
    return Certificate(
        {
            "together": {"asked": 5},
            "tables": [
                table("people", None, "all", 40, 40),
                table("visits", "people", "all", 90, 81),
                table("drugs", "visits", "count", 100, 99),
            ],
            "linked": {
                "exposed": [{"table": t, "known": k, "below": b} for t, k, b in exposed],
                "matching": matching,
                **found,
            },
        }
    )


def test_every_table_stands_below_the_one_that_its_rows_belong_to():
    shuffled = [
        Entity("drugs", "visits", ["9 rows"]),
        Entity("patients", None, ["3 people"], is_people=True),
        Entity("visits", "patients", ["5 rows"]),
    ]
    picture = entity_picture(shuffled)
    names = re.findall(r'class="strong" x="(\d+)" y="(\d+)">(\w+)<', picture)
    assert [name for _, _, name in names] == ["patients", "visits", "drugs"]
    edges = [int(x) for x, _, _ in names]
    assert edges == sorted(set(edges))
    assert picture.count('<path d="M') == 3  # the two links, and a person's shoulders


def test_the_picture_says_in_words_what_it_shows_and_escapes_names():
    picture = entity_picture([Entity("<b>", None, ["3 people"], is_people=True)])
    assert 'aria-label="&lt;b&gt;: 3 people"' in picture
    assert "<b>" not in picture


def test_a_table_that_nobody_has_linked_is_drawn_apart():
    picture = entity_picture(
        [Entity("patients", None, [], is_people=True), Entity("bills", None, [])]
    )
    assert 'class="loose"' in picture
    assert picture.count("<path") == 1


def test_each_table_says_who_is_betrayed_by_it():
    people, visits, drugs = table_findings(certificate(below=7))
    assert people.lines == ["Known people's own cells: everybody hides among at least 5."]
    assert visits.lines == [
        "Known any 2 rows of visits: 7 people hide among fewer than 5.",
        "Known all rows of visits: not judged, too many choices of rows.",
    ]
    assert drugs.lines == []


def _known(**known) -> dict:
    content = linked_cases.policy(3, assume=["counts-unknown"])
    for name, rows in known.items():
        content["tables"][name]["rows"] = {"known": rows}
    return content


WHOLE = "age, all rows of visits (cost) and the number of rows of drugs, and no more"
KNOWN_OF_A_PERSON = {
    "all": (_known(), WHOLE),
    "one row": (_known(visits=1, drugs="none"), "age and any 1 row of visits (cost), and no more"),
    "without keys": (_known() | {"keys": "none"}, "age and the number of rows of visits, and no"),
}


@pytest.mark.parametrize("case", KNOWN_OF_A_PERSON)
def test_who_is_hidden_is_said_of_what_the_policy_says_is_known(case, tmp_path):
    content, known = KNOWN_OF_A_PERSON[case]
    done = shoal.publish(linked_cases.world(60), content, output=tmp_path / "out")
    said = {line.about: line.says for line in in_short(done.certificate)}["Protected"]
    assert f"Whoever knows of a person {known}" in said
    lines = [line for one in table_findings(done.certificate) for line in one.lines]
    few = [line for line in lines if "fewer than 3" in line]
    assert all(line.endswith("promises nothing against whoever knows that.") for line in few)
    assert bool(few) == (case == "one row")


@pytest.mark.parametrize(("judges", "dates"), [("publish", "only one"), ("audit", "none")])
def test_of_exact_gaps_it_says_how_many_dates_may_be_known(judges, dates, tmp_path):
    content = linked_cases.policy(
        3, anchor={"first": "visits.day", "gaps": "exact"}, assume=["one-date-known"]
    )
    content["tables"]["visits"]["attributes"]["day"] = {"role": "quasi", "type": "date"}
    frames, rng = linked_cases.world(60), np.random.default_rng(0)
    days = [linked_cases._day(int(one)) for one in rng.integers(0, 300, frames["visits"].height)]
    frames["visits"] = frames["visits"].with_columns(day=pl.Series(days))
    found = shoal.publish(frames, content, output=tmp_path / "out").certificate
    if judges == "audit":
        policy = shoal.Policy.from_dict(content)
        found = audit_linked(tmp_path / "out", policy, frames).certificate
    said = {line.about: line.says for line in in_short(found)}["Protected"]
    assert f"the number of rows of drugs, of all their dates {dates}, and no more" in said
    # a known row of visits has a date, which these figures do not count
    lines = [line for one in table_findings(found) for line in one.lines]
    assert "Known all rows of visits, dates aside: everybody hides among at least 3." in lines
    assert "Known the number of rows of visits: everybody hides among at least 3." in lines
    (classes,) = (line for line in linked_lines(found) if " classes of " in line)
    assert "alike in all that is known of all tables, but for dates, 60 people" in classes
    assert "Known any 1 row of visits, dates aside: everybody hides among at least 3." in {
        *linked_lines(found)
    }


@pytest.mark.parametrize(
    ("content", "alike"),
    [
        (_known(), "all that is known of all tables"),
        (
            _known(visits=1, drugs="none"),
            "all that is known of all tables, but for tables of which any 1 row is known",
        ),
    ],
)
def test_people_are_said_to_be_alike_in_no_more_than_is_known(content, alike, tmp_path):
    policy, report = shoal.Policy.from_dict(content), tmp_path / "report.html"
    found = shoal.publish(linked_cases.world(60), policy, output=tmp_path / "out").certificate
    assert any(f" people alike in {alike}, 60 people, " in line for line in linked_lines(found))
    write_linked_report(found, policy.model, report)
    text = " ".join(report.read_text("utf-8").split())
    assert f"everybody in a class shows the same in {alike}." in text
    assert not re.search("(row by row|not everybody)", text)


@pytest.mark.parametrize("policy", [linked_cases.policy(3), _known(drugs="none")])
def test_of_rows_that_nobody_can_join_no_figure_says_that_people_hide_by_them(policy, tmp_path):
    done = shoal.publish(linked_cases.world(60), policy | {"keys": "none"}, output=tmp_path / "out")
    _, *others = table_findings(done.certificate)
    for one in others:
        (line,) = one.lines
        assert line.startswith(f"Known rows of {one.name}: nobody can tell whose they are")
    terminal = [line for line in linked_lines(done.certificate) if line.startswith("Known ")]
    assert [line for line in terminal if "among" in line] == [
        "Known people's own cells: everybody hides among at least 3."
    ]
    assert len(terminal) == 1 + len(others)


def test_who_pays_is_said_of_each_table_as_far_as_it_is_known():
    visits, drugs = paid_lines(certificate())  # audited by who does not know whose row is whose
    assert visits.startswith("9 of 90 rows of visits are withheld")
    assert (
        drugs == "1 of 100 rows of drugs is withheld: too few people in its class have such a row."
    )
    people = {"visits": {"losing": 7, "without": 2}, "drugs": {"losing": 1, "without": 0}}
    most, visits, drugs = paid_lines(
        certificate(paid={"tenth": 0.5, "half": 0.125, "people": people})
    )
    assert "lose 50.0 % of their detail" in most
    assert most.endswith("the half who lose least, 12.5 %.")
    assert visits.endswith("People who lose such rows: 7; of these, without any left: 2.")
    assert drugs.endswith("People who lose such rows: 1; of these, without any left: 0.")


def test_people_are_drawn_under_the_name_that_their_owner_gave_them():
    names = [(one.name, one.parent) for one in entities_of(certificate(), "patients")]
    assert names == [("patients", None), ("visits", "patients"), ("drugs", "visits")]


def test_matching_people_with_all_their_rows_is_an_attack_like_any_other():
    assert rows_of(certificate()) == []
    (row,) = rows_of(certificate(matching=SAFE))
    assert row.word == "none"
    (row,) = rows_of(certificate(matching=SAFE | {"below": 12, "least": 1}))
    assert row.word == "much"
    assert "fewer than 5" in row.says
    assert row.says.endswith("tried for 40 of 40 people")


def test_a_dossier_lacks_what_no_attack_tries_on_linked_tables_for_one_reason():
    context = read_context({"version": 1})
    for matching in (None, SAFE):
        own = certificate(matching=matching)
        lacks = {
            field.rpartition(".")[2]: lack
            for field, lack in unanswered(own, context, DEFAULT).items()
            if field.startswith("certificate.attacks")
        }
        none = "no attack tries this on linked tables"
        assert lacks.pop("singling-out") == lacks.pop("inference") == none
        assert [*lacks] == ([] if matching else ["linkability"])
        rows = [row["sentence"] for part in page_content(own) for row in part["rows"]]
        assert sum(none in said for said in rows) == 5
        assert sum("not asked for" in said for said in rows) == (not matching)


def test_linkability_that_matching_answers_is_not_said_to_be_untried():
    tried, untried = which_tried(certificate(matching=SAFE)).split("not tried on linked tables:")
    assert "linkability" in tried
    assert "linkability" not in untried
    assert "inference" in untried


def test_a_promise_of_rows_is_measured_among_rows_that_look_alike():
    def is_so(model: str, column: str) -> bool:
        return is_of_rows_alike(certificate(), {"model": model, "attributes": [column]})

    assert is_so("l-diversity", "drugs.drug")
    assert not is_so("l-diversity", "blood")
    assert not is_so("holder-share", "drugs.drug")  # which counts people, with and without


# Before and after


def spread(cells: list[str], edges: list[float]) -> list[float]:
    """Cells of whole numbers by interval, each spread evenly over the numbers that it covers."""
    found = [0.0] * (len(edges) - 1)
    for cell in cells:
        ends = [int(end) for end in cell.strip("[]").split(", ")]
        values = range(ends[0], ends[-1] + 1)
        for at, (low, high) in enumerate(pairwise(edges)):
            found[at] += sum(low <= value < high for value in values) / len(values)
    return found


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Frames, their policy and the folder of their release, of which some visits are withheld."""
    folder, frames = tmp_path_factory.mktemp("released") / "out", linked_cases.world(120)
    policy = shoal.Policy.from_dict(linked_cases.policy(6))
    return frames, policy, folder, shoal.publish(frames, policy, output=folder)


def test_bars_are_shares_of_the_rows_that_a_table_had_so_withheld_rows_are_lost(released):
    frames, policy, folder, done = released
    drawn = {one.name: one for one in linked_distributions(done.audit, LinkedProblem(policy))}
    assert [*drawn] == ["age", "visits.cost"]
    for name, frame, column in (("age", "people", "age"), ("visits.cost", "visits", "cost")):
        before, after = drawn[name].percent
        own = frames[frame]
        with (folder / f"{frame}.csv").open(encoding="utf-8") as file:
            shown = [row[column] for row in csv.DictReader(file)]
        edges = drawn[name].edges.tolist()
        expected = [100 * one / own.height for one in spread(shown, edges)]
        assert after.tolist() == pytest.approx(expected)
        assert after.sum() == pytest.approx(100 * len(shown) / own.height)
        for share, (low, high) in zip(before, pairwise(edges), strict=True):
            inside = own.filter((own[column] >= low) & (own[column] < high))
            people = inside["patient"].n_unique()
            rounded = 100 * 6 * round(inside.height / 6) / own.height
            assert np.isnan(share) or share == pytest.approx(rounded)
            assert np.isnan(share) or people >= 6
            assert not np.isnan(share) or people < 6 or name != "age"
    assert drawn["visits.cost"].percent[1].sum() < 98


def test_what_is_kept_of_a_distribution_is_drawn_again(released):
    _, policy, _, done = released
    for one in linked_distributions(done.audit, LinkedProblem(policy)):
        again = Distribution.of(one.report())
        assert again.report() == one.report()
        assert np.allclose(again.percent[0], one.percent[0], atol=1e-4, equal_nan=True)


def test_without_the_original_only_the_release_is_drawn(released):
    _, policy, folder, _ = released
    drawn = linked_distributions(audit_linked(folder, policy), LinkedProblem(policy))
    assert [one.before for one in drawn] == [None, None]
    assert [one.after.sum() / one.records for one in drawn] == [pytest.approx(1)] * 2


def test_days_of_the_calendar_are_drawn_as_dates(tmp_path):
    frames, content = linked_cases.world(60), linked_cases.policy(4)
    content["tables"]["visits"]["attributes"]["day"] = {"role": "quasi", "type": "date"}
    dates = frames["visits"]["cost"].map_elements(linked_cases._day, return_dtype=str)
    frames["visits"] = frames["visits"].with_columns(dates.alias("day"))
    for anchor in ({}, {"anchor": {"first": "visits.day"}}):
        policy = shoal.Policy.from_dict(content | anchor)
        done = shoal.publish(frames, policy, output=tmp_path / f"out{len(anchor)}")
        drawn = {one.name: one for one in linked_distributions(done.audit, LinkedProblem(policy))}
        absolute = drawn["anchor.day" if anchor else "visits.day"]
        assert all(re.match(r"20\d\d-\d\d-\d\d", label) for label in absolute.labels)
        assert absolute.edges is None
        assert not anchor or drawn["visits.day"].edges[0] <= 0  # days from a person's first


def test_columns_of_rows_that_nobody_can_join_are_not_drawn(tmp_path):
    policy = shoal.Policy.from_dict(linked_cases.policy(4, keys="none"))
    done = shoal.publish(linked_cases.world(40), policy, output=tmp_path / "out")
    drawn = linked_distributions(done.audit, LinkedProblem(policy))
    assert [one.name for one in drawn] == ["age"]
