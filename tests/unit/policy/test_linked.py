"""Policies of linked tables: what contradicts itself, and what the data contradicts."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import linked_cases
import sample_policies
import shoal
from shoal.data.linked import ANCHOR, PEOPLE, Keys, Known
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.linked import bound_linked
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem


def content_of(visits=None, drugs=None, people=None, tables=None, **top) -> dict:
    """The policy after changes of its tables, of the attributes of people, and of its keys."""
    content = linked_cases.policy(**top)
    content["attributes"] |= people or {}
    for name, changes in (("visits", visits), ("drugs", drugs), *(tables or {}).items()):
        content["tables"].setdefault(name, {}).update(changes or {})
    return content


def refused(content) -> list[str]:
    with pytest.raises(InputError) as refusal:
        Policy.from_dict(content)
    return refusal.value.said


def diverse(attribute):
    return [{"model": "l-diversity", "attribute": attribute, "l": 2}]


QUASI = {"drug": {"role": "quasi"}}
DATED = {"day": {"role": "quasi", "type": "date"}}
COST = linked_cases.policy()["tables"]["visits"]["attributes"]
BY_DAY = {"first": "visits.day", "gaps": "exact"}
BY_COST = {"first": "visits.cost"}
SOME = {"codes": {"role": "quasi", "type": "set", "separator": ";", "known": 1}}
WHOLE = {"codes": SOME["codes"] | {"known": "all"}}
UNKNOWN = ["counts-unknown"]
KEYED = {"name": {"role": "identifier", "pseudonym": "keyed"}}
ALIKE = {"model": "k-anonymity", "k": 3, "attributes": ["age"]}
CLOSE = {"model": "t-closeness", "attributes": ["blood", "visits.disease"], "t": 0.2}


def role_of(name, role="plain", **more):
    return {name: {"role": role, **more}}


def column(name, role="plain"):
    return {"attributes": role_of(name, role)}


def known(rows, attributes=None):
    more = {} if attributes is None else {"attributes": attributes}
    return {"rows": {"known": rows}, **more}


CONTRADICTIONS = {
    "table 'visits': says not whose its rows are": {"visits": {"parent": None}},
    "its parent 'persons' is not in the policy": {"visits": {"parent": {"persons": "patient"}}},
    "hangs from itself by its parents": {"visits": {"parent": {"drugs": "visit"}}},
    "table 'visits': rows of 'drugs' point to it; name the column": {"visits": {"key": None}},
    "take it out of 'attributes'": {"visits": column("patient")},
    "the role 'time' is of one table": {"visits": column("at", "time")},
    "has a point in its name": {"visits": column("a.b")},
    "has quasi-identifiers, and 'known: count' says": {"visits": known("count")},
    "tables.visits.rows.known": {"visits": known(0)},
    "attackers know one number of rows of all tables together": {
        "visits": known(1),
        "drugs": known(2, QUASI),
    },
    "'known' can be a number below people, or below a table with 'known: all'": {
        "visits": known(1),
        "drugs": known(1, QUASI),
    },
    "table 'drugs': 'known: count' tells of all rows of 'visits', of which attackers know"
    " 1; say 'known: none' here": {"visits": known(1)},
    "table 'drugs': 'known: all' tells of all rows of 'visits'": {
        "visits": known(1),
        "drugs": known("all", QUASI),
    },
    "table 'visits.codes': 'known: all' tells of all rows of 'visits'": {
        "visits": known(1, COST | WHOLE),
        "drugs": known("none"),
        "assume": UNKNOWN,
    },
    "'count_known' goes with a number of known rows right below people": {
        "visits": {"rows": {"known": "all", "count_known": True}}
    },
    "exact gaps between its dates need 'known: all'": {"visits": known(1, DATED), "anchor": BY_DAY},
    "with exact gaps, a known date tells rows of a class apart": {
        "visits": {"attributes": DATED},
        "anchor": BY_DAY,
        "promises": diverse("blood"),
    },
    "'known: none' says that nobody knows how many rows": {"drugs": known("none")},
    "table 'drugs': who knows its rows knows some of 'visits'": {
        "visits": known("none", {}),
        "assume": ["counts-unknown"],
    },
    "would join rows with their person": {"keys": "none", "anchor": BY_COST},
    "table '_bills': can't have this name; begin with a letter or a digit": {
        "tables": {"_bills": {"parent": {"people": "patient"}}}
    },
    "is no quasi-identifier of type 'date'": {"anchor": BY_COST},
    "whole people would be suppressed": {"missing": "suppress"},
    "is of one table": {"require_together": True},
    "the input's order tells whose row is whose": {"render": {"order": "input"}},
    "counts who is alike in all tables together": {"promises": [ALIKE]},
    "attribute 'visits.illness' is not in the policy; did you mean 'visits.disease'": {
        "promises": diverse("visits.illness")
    },
    "names columns of several tables": {"promises": [CLOSE]},
    "can't be measured with 'keys: none'": {"keys": "none", "promises": diverse("visits.disease")},
    "attribute 'visits.name': with 'keys: none' a pseudonym would join rows again": {
        "keys": "none",
        "visits": {"attributes": KEYED},
    },
    "table 'drugs': with 'keys: none' nothing of it is published": {
        "keys": "none",
        "drugs": column("drug", "drop"),
    },
    "attribute 'visits.codes': with 'keys: none' nobody can measure": {
        "keys": "none",
        "visits": {"attributes": SOME},
    },
    "no single column of people": {"people": role_of("patient", "drop")},
    "a set has the role 'quasi' and a 'separator'": {
        "people": role_of("codes", "sensitive", type="set")
    },
    "a sensitive date is a category": {"people": role_of("born", "sensitive", type="date")},
}


@pytest.mark.parametrize(("said", "changes"), CONTRADICTIONS.items(), ids=CONTRADICTIONS)
def test_a_policy_that_contradicts_itself_is_refused_in_words(changes, said):
    found = refused(content_of(**changes))
    assert any(said in one for one in found), found


def test_all_findings_are_said_at_once():
    visits = {"attributes": COST | role_of("patient")}
    assert len(refused(content_of(visits, known("none"), missing="suppress"))) == 3


ONE = sample_policies.content_of({"age": {"role": "quasi", "type": "number"}}, 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [("anchor", {"first": "visits.day"}), ("keys", "none"), ("assume", ["counts-unknown"])],
)
def test_keys_of_linked_tables_are_refused_of_one_table(key, value):
    with pytest.raises(InputError, match=f"policy, {key}: is of linked tables"):
        Policy.from_dict(ONE | {key: value})


def test_what_nobody_knows_may_be_assumed_or_the_keys_left_out():
    for more in ({"keys": "none"}, {"assume": ["counts-unknown"]}):
        assert Policy.from_dict(content_of(drugs=known("none"), **more)).model.is_linked


def test_a_policy_of_one_table_says_nothing_of_linked_ones_when_it_is_written():
    content = Policy.from_dict(ONE).model.model_dump()
    assert not {"tables", "anchor", "keys", "assume"} & content.keys()
    assert not {"separator", "known"} & content["attributes"]["age"].keys()


def test_a_policy_of_linked_tables_survives_being_saved(tmp_path):
    policy = Policy.from_dict(linked_cases.policy(keys="keyed"))
    policy.save(tmp_path / "policy.yaml")
    assert Policy.load(tmp_path / "policy.yaml").model == policy.model


def test_nothing_is_audited_while_it_is_open_whose_rows_are_whose():
    content = content_of(drugs={"parent": None, "ask": "whose rows are these?"})
    with pytest.raises(InputError, match="table 'drugs': has an open question"):
        shoal.audit(linked_cases.published(linked_cases.world(9)), content)


def test_a_function_of_one_table_names_those_of_several():
    frame = linked_cases.world(9)["people"]
    with pytest.raises(InputError, match="is about several tables"):
        shoal.attack(frame, linked_cases.policy(), frame)


def bound(world, policy=None):
    asked = Policy.from_dict(policy or linked_cases.policy())
    tables = {name: Table(frame) for name, frame in world.items()}
    return bound_linked(tables, LinkedProblem(asked))


def said_of(world, policy=None) -> list[str]:
    with pytest.raises(InputError) as refused:
        bound(world, policy)
    return refused.value.said


def test_rows_stand_by_parent_and_lead_back_to_the_file():
    world = linked_cases.world(30, seed=2)
    shuffled = {**world, "visits": world["visits"].sample(fraction=1, shuffle=True, seed=1)}
    tables = bound(shuffled)
    names = shuffled["people"]["patient"]
    for person in range(30):
        rows = tables.rows["visits"]
        mine = rows.source[rows.starts[person] : rows.starts[person + 1]]
        assert set(shuffled["visits"]["patient"].gather(mine)) <= {names[person]}
        assert list(mine) == sorted(mine)
    drugs = tables.rows["drugs"]
    owner = dict(shuffled["visits"].select("visit", "patient").iter_rows())
    people = names.gather(tables.person_of("drugs")).to_list()
    assert people == [owner[v] for v in shuffled["drugs"]["visit"].gather(drugs.source)]
    assert sum(drugs.counts) == drugs.count == shuffled["drugs"].height
    assert tables.tree["drugs"].known is Known.COUNT
    assert tables.tree.keys is Keys.RELEASE
    assert tables.rows["visits"].matrix.codes.shape == (shuffled["visits"].height, 1)
    assert tables.rows["drugs"].matrix.codes.shape == (shuffled["drugs"].height, 0)


def test_orphans_repeated_keys_and_rows_of_nobody_are_found_at_once():
    world = linked_cases.world(9)
    people, visits = world["people"], world["visits"]
    owners = pl.Series(["p77", "p77", *visits["patient"][2:]])
    world |= {"people": pl.concat([people, people.head(2)])}
    said = "\n".join(said_of(world | {"visits": visits.with_columns(patient=owners)}))
    assert "column 'patient': names a person again (rows 10, 11)" in said
    assert "2 rows belong to no row of 'people' by 'patient' (rows 1, 2)" in said
    assert "p77" not in said


def test_a_row_about_two_people_is_found():
    world = linked_cases.world(9)
    policy = content_of(drugs={"attributes": role_of("drug") | role_of("who", "subject")})
    owner = dict(world["visits"].select("visit", "patient").iter_rows())
    drugs = world["drugs"].with_columns(who=pl.col("visit").replace_strict(owner))
    right = {**world, "drugs": drugs}
    assert bound(right, policy).people.count
    first = drugs["who"].to_list()
    first[4] = next(name for name in world["people"]["patient"] if name != first[4])
    (said,) = said_of({**world, "drugs": drugs.with_columns(pl.Series("who", first))}, policy)
    assert "1 row belongs to one person by 'visit' and to another by 'who' (row 5)" in said


def test_tables_and_links_that_lack_are_found_at_once():
    world = linked_cases.world(9)
    people = world["people"].rename({"patient": "id"})
    said = "\n".join(said_of({"people": people, "drugs": world["drugs"]}))
    assert "table 'visits': in the policy, not in the data" in said
    assert "has no column 'patient'" in said


def test_findings_about_cells_name_their_table():
    world = linked_cases.world(9)
    visits = world["visits"].with_columns(cost=pl.lit(2_000))
    (said,) = said_of({**world, "visits": visits})
    assert said.startswith("table 'visits': attribute 'cost'")


def test_people_without_rows_count_none_and_empty_tables_are_tables():
    world = linked_cases.world(9)
    tables = bound({**world, "visits": world["visits"].clear(), "drugs": world["drugs"].clear()})
    assert tables.rows["visits"].counts.tolist() == [0] * 9
    assert tables.rows["drugs"].count == 0


def test_a_set_is_a_table_of_its_elements_each_once():
    world = linked_cases.world(4)
    codes = {"role": "quasi", "type": "set", "separator": ";", "known": 2}
    people = world["people"].with_columns(codes=pl.Series(["b; a", "", "a;a", None]))
    tables = bound({**world, "people": people}, content_of(people={"codes": codes}))
    assert tables.rows["codes"].table.frame["codes"].to_list() == ["b", "a", "a"]
    assert tables.rows["codes"].counts.tolist() == [2, 0, 1, 0]
    assert tables.tree["codes"].separator == ";"
    assert tables.tree.known_rows == 2


def test_dates_count_from_each_persons_first_one():
    world = linked_cases.world(3)
    visits = {"visit": ["a", "b", "c"], "patient": ["p2", "p0", "p2"], "cost": 1, "disease": "flu"}
    visits["day"] = ["2020-03-01", "2020-01-01", "2020-02-28"]
    world |= {"visits": pl.DataFrame(visits), "drugs": world["drugs"].clear()}
    dated = {"attributes": COST | DATED}
    tables = bound(world, content_of(dated, anchor={"first": "visits.day"}))
    assert tables.rows["visits"].table.frame["day"].to_list() == ["0", "2", "0"]
    anchors = tables.rows[PEOPLE].table.frame[ANCHOR].to_list()
    assert anchors[1] == ""
    assert int(anchors[2]) - int(anchors[0]) == 58
    assert tables.tree.dates == {"visits": ("day",)}
    assert np.isclose(tables.people.matrix.unit[-1], 1)
    absolute = bound(world, content_of(dated))
    assert absolute.rows["visits"].table.frame["day"].to_list()[0] == anchors[0]


def test_what_is_no_date_is_found_without_being_shown():
    world = linked_cases.world(3)
    policy = content_of({"attributes": COST | DATED}, anchor={"first": "visits.day"})
    visits = world["visits"].with_columns(day=pl.lit("yesterday"))
    said = said_of({**world, "visits": visits}, policy)
    assert any(f"'visits.day': {visits.height} cells are not dates" in one for one in said)
    assert not any("yesterday" in one for one in said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"anchor": {"first": "visits.dya"}}, "'visits.dya' is no quasi-identifier"),
        (
            {"anchor": {"first": "visits.at"}, "visits": {"attributes": {"at": DATED["day"]}}},
            "table 'visits': column 'at'",
        ),
        (
            {"people": {"patient": {"role": "identifier"}}},
            "no single column of people names the person",
        ),
        ({"visits": {"key": None}}, "rows of 'drugs' point to it; name the column"),
    ],
)
@pytest.mark.parametrize(
    "words", ["policy check policy.json in", "publish in -p policy.json -o out -q"]
)
def test_what_is_refused_is_said_in_one_line(changes, said, words, shoal, folder):
    """Also where what is left of a refused policy is compared with the data."""
    visits = changes.get("visits", {})
    visits = visits | {"attributes": COST | DATED | visits.get("attributes", {})}
    Path("policy.json").write_text(json.dumps(content_of(**changes | {"visits": visits})))
    Path("in").mkdir()
    world = linked_cases.world(9)
    world["visits"] = world["visits"].with_columns(day=pl.lit("2020-01-01"))
    for name, frame in world.items():
        frame.write_csv(f"in/{name}.csv")
    (line,) = shoal(*words.split(), status=2).err.splitlines()
    assert said in line
