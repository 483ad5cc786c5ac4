"""Several tables on the page: one list of columns, links that are asked once, and looks at all."""

from collections import Counter
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linked_cases
from linked_cases import DAY
from sample_policies import content_of
from shoal.advise.propose_linked import read_table
from shoal.auditor.verdict import fails_beside
from shoal.errors import InputError
from shoal.linked.publish import publish_linked
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem
from shoal.web.checked import of_release, released_below
from shoal.web.desk import SeveralLooks
from shoal.web.edits import edited
from shoal.web.policy_text import read, written
from shoal.web.several import (
    column_names,
    entities,
    flat,
    folded,
    linking_columns,
    open_links,
    people_among,
)
from shoal.web.sign_off import in_tables, judged_together, keep, overlaps

COLUMNS = ["patient", "age", "blood", "visits.cost", "visits.disease", "drugs.drug"]


def policy() -> dict:
    return linked_cases.policy()


def without_drugs() -> dict:
    """The policy where nobody knows even how many drugs there are."""
    return edit("known", policy() | {"assume": ["counts-unknown"]}, table="drugs", known="none")


def edit(kind: str, given: dict | None = None, **fields: str) -> dict:
    content, _ = edited(
        kind, {name: [value] for name, value in fields.items()}, given or policy(), COLUMNS
    )
    return content


@pytest.fixture
def clinic(tmp_path):
    """A folder of the three tables."""
    for name, frame in linked_cases.world(30).items():
        frame.write_csv(tmp_path / f"{name}.csv")
    return tmp_path


def look(name: str, clinic, asked: dict | None = None, **more):
    about = {"table": str(clinic), "policy": asked or policy(), "base": str(clinic)}
    return SeveralLooks().answer(name, deepcopy(about | more))


# The policy


def test_all_columns_stand_in_one_list_and_go_back_to_their_tables():
    assert [*flat(policy())["attributes"]] == COLUMNS
    assert folded(flat(policy())) == policy()
    assert folded(policy()) == policy()


names = st.text("abcdefgh ", min_size=1, max_size=6).map(str.strip).filter(bool)
roles = st.sampled_from(["quasi", "sensitive", "plain", "drop"]).map(lambda role: {"role": role})
columns = st.dictionaries(names, roles, max_size=4)
tables = st.dictionaries(
    names, columns.map(lambda own: {"rows": {"known": "all"}, "attributes": own}), max_size=3
)


@given(columns, tables)
def test_any_policy_is_the_same_once_it_is_unfolded_written_read_and_folded(people, below):
    content = {"version": 1, "attributes": people, "tables": below, "seed": 7}
    content = content if below else {k: v for k, v in content.items() if k != "tables"}
    assert folded(flat(content)) == content
    assert read(written(content)) == content


def test_a_change_of_one_column_changes_one_line_of_the_policy():
    before = written(policy()).splitlines()
    after = written(edit("role", column="5", role="plain")).splitlines()
    assert [line for line in after if line not in before] == ["      disease: {role: plain}"]


def test_a_column_that_others_could_know_makes_the_rows_of_its_table_known():
    form = {"column": ["6"], "role": ["quasi"]}
    changed, said = edited("role", form, policy(), COLUMNS)
    assert said.endswith("others could know it; all rows of drugs are known then")
    assert changed["tables"]["drugs"]["rows"]["known"] == "all"
    Policy.from_dict(changed)


def test_known_rows_are_set_table_by_table_and_nothing_else_is_accepted():
    assert edit("known", table="drugs", known="all")["tables"]["drugs"]["rows"] == {"known": "all"}
    some = edit("known", without_drugs(), table="visits", known="2")
    assert some["tables"]["visits"]["rows"]["known"] == 2
    Policy.from_dict(some)
    for table, known in (("bills", "all"), ("drugs", "some"), ("drugs", "0"), ("drugs", "4")):
        with pytest.raises(InputError):
            edit("known", table=table, known=known)


def test_attackers_know_one_number_of_rows_of_all_tables_together():
    """A second table beside visits takes the number that is said of the first."""
    content = without_drugs()
    content["tables"]["bills"] = deepcopy(content["tables"]["visits"]) | {"key": "bill"}
    some = edit(
        "known", edit("known", content, table="bills", known="3"), table="visits", known="2"
    )
    assert [some["tables"][name]["rows"]["known"] for name in ("visits", "bills")] == [2, 2]
    Policy.from_dict(some)
    only = edit("known", some, table="visits", known="all")
    assert [only["tables"][name]["rows"]["known"] for name in ("visits", "bills")] == ["all", 2]


def test_known_rows_of_a_table_and_of_the_one_it_hangs_from_fit_together():
    """A number below another table needs all rows of that, so neither leads to a wrong policy."""
    below = edit("known", table="drugs", known="2")
    Policy.from_dict(below)
    for known in ("3", "count"):
        with pytest.raises(InputError, match=r"since any rows of drugs are known; first change"):
            edit("known", below, table="visits", known=known)
    above = edit("known", without_drugs(), table="visits", known="2")
    with pytest.raises(InputError, match=r"since not all rows of visits are known; first change"):
        edit("known", above, table="drugs", known="2")


def test_what_cannot_be_known_of_rows_is_refused_with_the_reason():
    """A column that others could know makes rows known; keys tell how many there are."""
    for known in ("count", "none"):
        with pytest.raises(InputError, match=r"since others could know visits\.cost; first say"):
            edit("known", table="visits", known=known)
    with pytest.raises(InputError, match="since what is known of drugs tells of all of these"):
        edit("known", table="visits", known="2")
    some = edit("known", policy() | {"keys": "none"}, table="drugs", known="none")
    some = edit("known", some, table="visits", known="2")
    with pytest.raises(InputError, match="since not all rows of visits are known; first"):
        edit("known", some, table="drugs", known="count")
    with pytest.raises(InputError, match="since keys say how many rows"):
        edit("known", table="drugs", known="none")
    Policy.from_dict(edit("known", policy() | {"keys": "none"}, table="drugs", known="none"))


def test_a_table_whose_rows_are_nobodys_is_asked_about_until_it_has_a_link():
    content = policy()
    del content["tables"]["visits"]["parent"], content["tables"]["visits"]["key"]
    content["tables"]["visits"] |= {"ask": "whose rows are these?"}
    content["tables"]["visits"]["attributes"]["patient"] = {"role": "identifier"}
    assert open_links(content) == ["visits"]
    linked = edit("parent", content, link="visits\tpatient\tpeople\tpatient")
    assert open_links(linked) == []
    assert linked["tables"]["visits"]["parent"] == {"people": "patient"}
    assert "patient" not in linked["tables"]["visits"]["attributes"]
    below = edit("parent", linked, link="drugs\tvisit\tvisits\tvisit")
    assert below["tables"]["visits"]["key"] == "visit"
    Policy.from_dict(below)
    with pytest.raises(InputError):
        edit("parent", linked, link="visits\tpatient")


def test_no_edit_of_tables_changes_the_policy_it_was_given():
    before, link = policy(), "visits\tpatient\tpeople\tpatient"
    edit("parent", before, link=link)
    edit("known", before, table="drugs", known="all")
    edit("role", before, column="5", role="drop")
    assert before == policy()


def test_nothing_but_what_other_tables_point_to_is_the_person():
    for other in ("rows", "2", "1-2"):
        with pytest.raises(InputError):
            edit("person", person=other)


def test_to_name_the_person_again_leaves_what_points_to_it_as_it_is():
    assert edit("person", person="1") == policy()


def test_the_table_of_people_is_the_only_one_that_the_policy_does_not_name():
    assert people_among(["patients", "visits", "drugs"], policy()) == "patients"
    assert people_among(["patients", "visits"], policy()) is None
    assert people_among(["a", "b", "visits", "drugs"], policy()) is None
    assert column_names({"visits": ["day"], "patients": ["age"]}, "patients") == [
        "age",
        "visits.day",
    ]
    assert linking_columns(policy()) == {"visits.patient", "visits.visit", "drugs.visit"}


# Looks


def test_the_tables_are_opened_and_a_policy_is_proposed_for_all(clinic):
    found = SeveralLooks().answer("open", {"table": str(clinic), "read": {}})
    assert found["tables"]["visits"] == ["visit", "patient", "cost", "disease"]
    assert found["rows"] == sum(frame.height for frame in linked_cases.world(30).values())
    proposed = SeveralLooks().answer("propose", {"table": str(clinic), "read": {}})
    assert proposed["people"] == "people"
    assert proposed["content"]["tables"]["drugs"]["parent"] == {"visits": "visit"}
    assert "visits.cost" in proposed["reasons"]


def test_each_table_is_read_once_until_its_file_changes(clinic, monkeypatch):
    from shoal.web import desk

    read, looks = [], SeveralLooks()

    def counted(place, options):
        read.append(Path(place.path).name)
        return read_table(place, options)

    monkeypatch.setattr(desk, "read_table", counted)
    about = {"table": str(clinic), "read": {}}
    for name in ("show_beginning", "open", "propose"):
        looks.answer(name, dict(about))
    looks.answer("profile", {"table": str(clinic), "policy": policy(), "base": str(clinic)})
    assert sorted(read) == ["drugs.csv", "people.csv", "visits.csv"]
    with (clinic / "drugs.csv").open("a") as file:
        file.write("v0,iron\n")
    looks.answer("open", dict(about))
    assert read[3:] == ["drugs.csv"]


def test_a_table_whose_name_is_refused_still_says_whose_its_rows_are(clinic):
    (clinic / "drugs.csv").rename(clinic / "drugs (2031).csv")
    content = policy()
    content["tables"]["drugs (2031)"] = content["tables"].pop("drugs")
    found = look("profile", clinic, content)["tables"]
    (drawn,) = (one for one in entities(found, "people") if one.name == "drugs (2031)")
    assert drawn.parent == "visits"
    assert drawn.lines[1] == "by visit"


def test_rows_of_people_are_counted_along_their_links(clinic):
    tables = linked_cases.world(30)
    visits = tables["visits"].group_by("patient").len()["len"]
    found = look("profile", clinic)
    (own,) = (one for one in found["tables"] if one["name"] == "drugs")
    assert own == {
        "name": "drugs",
        "parent": "visits",
        "link": "visit",
        "rows": tables["drugs"].height,
        "least": visits.min(),  # a drug for each visit
        "most": visits.max(),
    }
    assert [candidate["columns"] for candidate in found["candidates"]] == [["patient"]]
    assert found["candidates"][0]["people"] == 30
    assert {column["name"] for column in found["columns"]} >= {"age", "visits.cost", "drugs.drug"}
    drawn = entities(found["tables"], "patients")
    assert [one.name for one in drawn if one.is_people] == ["patients"]
    (lowest,) = (one for one in drawn if one.name == "drugs")
    assert lowest.parent == "visits"
    assert lowest.lines[0].startswith(f"{own['rows']} rows, {own['least']} to {own['most']} of")


def test_a_table_that_is_not_linked_yet_is_counted_with_what_it_may_belong_to(clinic):
    content = policy()
    content["tables"]["drugs"].pop("parent")
    content["tables"]["drugs"] |= {"ask": "whose?"}
    found = look("profile", clinic, content)
    (own,) = (one for one in found["tables"] if one["name"] == "drugs")
    assert own["parent"] is None
    assert [one["parent"] for one in found["tables"] if one["name"] == "visits"] == ["people"]
    said = [one["message"] for one in look("check", clinic, content)["findings"]]
    assert all("open question" in one for one in said if "drugs" in one)
    links = [(one["table"], one["column"], one["to_table"]) for one in found["links"]]
    assert ("drugs", "visit", "visits") in links


def test_the_check_names_columns_by_their_tables_and_finds_broken_links(clinic):
    content = policy()
    content["tables"]["visits"]["attributes"]["disease"] = {
        "role": "quasi",
        "hierarchy": {"tree": {"cold": ["flu"]}},
    }
    found = look("check", clinic, content)
    gaps = [one for one in found["findings"] if one["fault"] == "MISFIT"]
    assert {one["attribute"] for one in gaps} == {"visits.disease"}
    assert {one["column"] for one in found["remarks"]} >= {"drugs.drug"}
    drugs = clinic / "drugs.csv"
    drugs.write_text(drugs.read_text() + "v999,iron\n")
    broken = look("check", clinic)["findings"]
    assert any("belongs to no row of 'visits'" in one["message"] for one in broken)


def test_who_is_alone_is_counted_by_all_rows(clinic):
    found = look("risk", clinic)
    assert found["people"] == 30
    assert found["quasi"] == ["age", "visits.cost"]
    assert {one["table"] for one in found["exposed"]} == {"people", "visits", "drugs"}


def test_the_steps_of_a_column_count_people_however_deep_its_table_is(clinic):
    content = policy()
    content["tables"]["drugs"]["rows"] = {"known": "all"}
    content["tables"]["drugs"]["attributes"]["drug"] = {
        "role": "quasi",
        "hierarchy": {"tree": {"any": ["aspirin", "insulin", "iron"]}},
    }
    tables = linked_cases.world(30)
    owners = tables["drugs"].join(tables["visits"], on="visit")
    people = owners.group_by("drug").agg(pl.col("patient").n_unique())["patient"]
    levels = look("show_steps", clinic, content, attribute="drugs.drug")["levels"]
    assert levels[0]["people"] == [people.min(), people.max()]
    assert levels[1]["people"] == [30, 30]


def test_no_count_holds_a_cell(clinic):
    for name in ("profile", "risk", "check"):
        said = str(look(name, clinic))
        assert not any(cell in said for cell in ("insulin", "gout", "p17", "v17"))


# Beside other releases


def kept_draft(folder: Path, name: str, **attributes: dict):
    """A release of the tables in which some columns of people have other roles."""
    content = policy()
    content["attributes"] |= attributes
    return kept_of(folder / name, linked_cases.world(30), content)


def test_people_of_a_draft_are_known_again_by_the_row_that_became_theirs(tmp_path):
    _, own = kept_draft(tmp_path, "draft")
    ages = dict(linked_cases.world(30)["people"].select("patient", "age").iter_rows())
    shown = pl.read_csv(tmp_path / "draft" / "out" / "people.csv")["age"].cast(pl.String)
    for person, cell in zip(own.people, shown, strict=True):
        ends = [int(end) for end in cell.strip("[]").split(", ")]
        assert ends[0] <= ages[own.subjects[person]] <= ends[-1]
    assert {*own.subjects} == {*ages}
    assert min(Counter(own.labels.tolist()).values()) >= 3


def test_two_drafts_of_other_columns_are_not_safe_together(tmp_path):
    first, _ = kept_draft(tmp_path, "first", age={"role": "drop"})
    second, _ = kept_draft(tmp_path, "second")
    others = overlaps(second, {"first": first})
    assert [(other.shared, other.people) for other in others] == [(30, 30)]
    assert not judged_together(second, others)["holds"]
    assert judged_together(first, overlaps(first, {"again": first}))["holds"]


def kept_of(place: Path, tables: dict, content: dict):
    """Who is in which class of a draft of tables by a policy: the file, and what it keeps."""
    place.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_csv(place / f"{name}.csv")
    files = {name: place / f"{name}.csv" for name in tables}
    policy, trace = Policy.from_dict(content), place / "trace"
    found = publish_linked(files, policy, str(place / "out"), trace=str(trace))
    assert found.certificate.holds
    own = in_tables(place / "out", LinkedProblem(policy), files, trace, found.certificate)
    keep(place / "people.npz", b"key of the project, of 32 bytes.", own)
    return place / "people.npz", own


def drafts_together(folder: Path, people: dict, kinds: list[str], *asked: dict):
    """Drafts of people with a visit each by two policies, judged together."""
    visits = {"patient": people["patient"], "kind": kinds}
    tables = {"people": pl.DataFrame(people), "visits": pl.DataFrame(visits)}
    one, other = (
        kept_of(folder / str(number), tables, content)[0] for number, content in enumerate(asked)
    )
    return judged_together(other, overlaps(other, {"first": one}))


def of_visits(roles: dict, *promises: dict, kind: dict, known, **more) -> dict:
    visits = {
        "parent": {"people": "patient"},
        "rows": {"known": known},
        "attributes": {"kind": {"role": "quasi"} | kind},
    }
    return content_of(
        {"patient": "subject"} | roles, 4, *promises, tables={"visits": visits}, **more
    )


def test_drafts_whose_classes_share_one_sensitive_value_are_not_safe_together(tmp_path):
    people = {
        "patient": [f"p{i}" for i in range(16)],
        "sex": ["f"] * 8 + ["m"] * 8,
        "job": (["x"] * 4 + ["y"] * 4) * 2,
        "blood": [blood for blood in ("A", "B", "0", "AB") for _ in range(4)],
    }
    diverse = {"model": "l-diversity", "attribute": "blood", "l": 2}
    drafts = [
        of_visits(
            {kept: "quasi", "blood": "sensitive"}, diverse, kind={}, known="all", other="drop"
        )
        for kept in ("sex", "job")
    ]
    found = drafts_together(tmp_path, people, ["a"] * 16, *drafts)
    (blood,) = found["attributes"]
    assert (found["least"], blood["certain"], found["holds"]) == (4, 16, False)


def test_rows_of_which_some_are_known_are_compared_between_drafts(tmp_path):
    """Whoever knows of the one visit of kind a finds six people in each draft, one in both."""
    kinds = ["a"] + ["b"] * 5 + ["c"] * 5 + ["d"] * 29
    people = {"patient": [f"p{i}" for i in range(40)], "sex": ["f"] * 40}
    more = {"known": 1, "method": {"name": "items", "size": 40}}
    drafts = [
        of_visits({"sex": "quasi"}, kind={"hierarchy": {"tree": tree}}, **more)
        for tree in ({"u": ["a", "b"], "v": ["c", "d"]}, {"u": ["a", "c"], "v": ["b", "d"]})
    ]
    found = drafts_together(tmp_path, people, kinds, *drafts)
    assert (found["least"], found["holds"]) == (1, False)


def test_drafts_whose_rows_share_one_sensitive_value_are_not_said_to_hold_together(tmp_path):
    """Each class shows two diseases; whoever is in both releases has the one that both show."""
    people = {
        "patient": [f"p{i}" for i in range(16)],
        "sex": ["f"] * 8 + ["m"] * 8,
        "job": (["x"] * 4 + ["y"] * 4) * 2,
    }
    promises = [
        {"model": "l-diversity", "attribute": "visits.kind", "l": 2},
        {"model": "holder-share", "attribute": "visits.kind", "share": 0.5},
    ]
    diseases = [disease for disease in ("flu", "cold", "gout", "none") for _ in range(4)]
    for number, asked in enumerate((promises, promises[:1], promises[1:], [])):
        drafts = [
            of_visits(
                {kept: "quasi"}, *asked, kind={"role": "sensitive"}, known="count", other="drop"
            )
            for kept in ("sex", "job")
        ]
        found = drafts_together(tmp_path / str(number), people, diseases, *drafts)
        assert (found["least"], found["below_k"]) == (4, 0)
        assert found["holds"] is (not asked)
        assert ("visits.kind" in fails_beside(found)) is bool(asked)


def test_drafts_with_exact_gaps_are_not_said_to_hold_together(tmp_path):
    """Whoever knows the date of p0's second visit finds seven people in each draft, one in both."""
    names, gaps = [f"p{i}" for i in range(20)], [60] + [10 + i % 3 for i in range(1, 20)]
    days = [
        DAY + timedelta(i % 4 + gap) for i, end in enumerate([*gaps, *[60] * 6]) for gap in (0, end)
    ]
    content = of_visits({"sex": "quasi"}, kind={}, known="all", assume=["one-date-known"])
    content["anchor"] = {"first": "visits.day", "gaps": "exact"}
    content["tables"]["visits"]["attributes"] = {"day": {"role": "quasi", "type": "date"}}
    drafts = []
    for others in ("x", "y"):
        people = [*names, *(f"{others}{i}" for i in range(6))]
        visits = {"patient": [name for name in people for _ in (0, 1)], "day": days}
        tables = {
            "people": pl.DataFrame({"patient": people, "sex": ["f"] * 26}),
            "visits": pl.DataFrame(visits),
        }
        drafts.append(kept_of(tmp_path / others, tables, content)[0])
    found = judged_together(drafts[1], overlaps(drafts[1], {"first": drafts[0]}))
    assert (found["below_k"], found["holds"]) == (0, False)
    assert fails_beside(found).endswith("what a known date tells by all of them is not judged")


# Check


def test_check_offers_the_release_of_a_project_and_not_its_drafts(tmp_path):
    draft, release = "p/runs/0001", "p/releases/2026-01-01"
    for name in (
        f"{draft}/certificate.json",
        f"{draft}/people.npz",
        f"{draft}/data/people.csv",
        f"{release}/data/certificate.json",
        f"{release}/data/people.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    data = Path(release, "data")
    assert released_below(tmp_path) == [str(data)]
    assert of_release(release, tmp_path) == of_release(str(data), tmp_path) == str(tmp_path / data)
