"""Policies of linked tables: what contradicts itself, and what the data contradicts."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import linked_cases
import shoal
from shoal.data.linked import ANCHOR, PEOPLE, Keys, Known
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.linked import bound_linked
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem


def refused(change) -> list[str]:
    """What is said of the policy after a change."""
    content = copy.deepcopy(linked_cases.policy())
    change(content)
    with pytest.raises(InputError) as refusal:
        Policy.from_dict(content)
    return refusal.value.said


def of_visits(**changes):
    return lambda content: content["tables"]["visits"].update(changes)


def of_top(**changes):
    return lambda content: content.update(changes)


QUASI = {"drug": {"role": "quasi"}}
DATED = {"day": {"role": "quasi", "type": "date"}}
DROPPED = {"drug": {"role": "drop"}}
SOME = {"codes": {"role": "quasi", "type": "set", "separator": ";", "known": 1}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_visits(parent=None), "table 'visits': says not whose its rows are"),
        (of_visits(parent={"persons": "patient"}), "its parent 'persons' is not in the policy"),
        (of_visits(parent={"drugs": "visit"}), "hangs from itself by its parents"),
        (of_visits(key=None), "table 'visits': rows of 'drugs' point to it; name the column"),
        (of_visits(attributes={"patient": {"role": "plain"}}), "take it out of 'attributes'"),
        (of_visits(attributes={"at": {"role": "time"}}), "the role 'time' is of one table"),
        (of_visits(attributes={"a.b": {"role": "plain"}}), "has a point in its name"),
        (of_visits(rows={"known": "count"}), "has quasi-identifiers, and 'known: count' says"),
        (of_visits(rows={"known": 0}), "tables.visits.rows.known"),
        (
            lambda c: (
                c["tables"]["drugs"].update(rows={"known": 2}, attributes=QUASI)
                or c["tables"]["visits"].update(rows={"known": 1})
            ),
            "attackers know one number of rows of all tables together",
        ),
        (
            lambda c: (
                c["tables"]["drugs"].update(rows={"known": 1}, attributes=QUASI)
                or c["tables"]["visits"].update(rows={"known": 1})
            ),
            "'known' can be a number below people, or below a table with 'known: all'",
        ),
        (
            of_visits(rows={"known": "all", "count_known": True}),
            "'count_known' goes with a number of known rows right below people",
        ),
        (
            lambda c: (
                c.update(anchor={"first": "visits.day", "gaps": "exact"})
                or c["tables"]["visits"].update(rows={"known": 1}, attributes=DATED)
            ),
            "exact gaps between its dates need 'known: all'",
        ),
        (
            lambda c: (
                c.update(
                    anchor={"first": "visits.day", "gaps": "exact"},
                    promises=[{"model": "l-diversity", "attribute": "blood", "l": 2}],
                )
                or c["tables"]["visits"].update(attributes=DATED)
            ),
            "with exact gaps, a known date tells rows of a class apart",
        ),
        (
            lambda c: c["tables"]["drugs"].update(rows={"known": "none"}),
            "'known: none' says that nobody knows how many rows",
        ),
        (
            lambda c: (
                c.update(assume=["counts-unknown"])
                or c["tables"]["visits"].update(rows={"known": "none"}, attributes={})
            ),
            "table 'drugs': who knows its rows knows some of 'visits'",
        ),
        (of_top(keys="none", anchor={"first": "visits.cost"}), "would join rows with their person"),
        (
            lambda c: c["tables"].update(_bills={"parent": {"people": "patient"}}),
            "table '_bills': can't have this name; begin with a letter or a digit",
        ),
        (of_top(anchor={"first": "visits.cost"}), "is no quasi-identifier of type 'date'"),
        (of_top(missing="suppress"), "whole people would be suppressed"),
        (of_top(require_together=True), "is of one table"),
        (of_top(render={"order": "input"}), "the input's order tells whose row is whose"),
        (
            of_top(promises=[{"model": "k-anonymity", "k": 3, "attributes": ["age"]}]),
            "counts who is alike in all tables together",
        ),
        (
            of_top(promises=[{"model": "l-diversity", "attribute": "visits.illness", "l": 2}]),
            "attribute 'visits.illness' is not in the policy; did you mean 'visits.disease'",
        ),
        (
            of_top(
                promises=[
                    {"model": "t-closeness", "attributes": ["blood", "visits.disease"], "t": 0.2}
                ]
            ),
            "names columns of several tables",
        ),
        (
            of_top(
                keys="none",
                promises=[{"model": "l-diversity", "attribute": "visits.disease", "l": 2}],
            ),
            "can't be measured with 'keys: none'",
        ),
        (
            lambda c: (
                c.update(keys="none")
                or c["tables"]["visits"]["attributes"].update(
                    name={"role": "identifier", "pseudonym": "keyed"}
                )
            ),
            "attribute 'visits.name': with 'keys: none' a pseudonym would join rows again",
        ),
        (
            lambda c: c.update(keys="none") or c["tables"]["drugs"].update(attributes=DROPPED),
            "table 'drugs': with 'keys: none' nothing of it is published",
        ),
        (
            lambda c: c.update(keys="none") or c["tables"]["visits"]["attributes"].update(SOME),
            "attribute 'visits.codes': with 'keys: none' nobody can measure",
        ),
        (lambda c: c["attributes"]["patient"].update(role="drop"), "no single column of people"),
        (
            lambda c: c["attributes"].update(codes={"role": "sensitive", "type": "set"}),
            "a set has the role 'quasi' and a 'separator'",
        ),
        (
            lambda c: c["attributes"].update(born={"role": "sensitive", "type": "date"}),
            "a sensitive date is a category",
        ),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused_in_words(change, said):
    assert any(said in one for one in refused(change)), refused(change)


def test_all_findings_are_said_at_once():
    def change(content):
        content["tables"]["visits"]["attributes"]["patient"] = {"role": "plain"}
        content["tables"]["drugs"]["rows"] = {"known": "none"}
        content["missing"] = "suppress"

    assert len(refused(change)) == 3


@pytest.mark.parametrize("key", ["anchor", "keys", "assume"])
def test_keys_of_linked_tables_are_refused_of_one_table(key):
    given = {"anchor": {"first": "visits.day"}, "keys": "none", "assume": ["counts-unknown"]}
    content = {
        "version": 1,
        "attributes": {"age": {"role": "quasi", "type": "number"}},
        "promises": [{"model": "k-anonymity", "k": 2}],
        key: given[key],
    }
    with pytest.raises(InputError, match=f"policy, {key}: is of linked tables"):
        Policy.from_dict(content)


def test_what_nobody_knows_may_be_assumed_or_the_keys_left_out():
    content = linked_cases.policy()
    content["tables"]["drugs"]["rows"] = {"known": "none"}
    for more in ({"keys": "none"}, {"assume": ["counts-unknown"]}):
        assert Policy.from_dict({**content, **more}).model.is_linked


def test_a_policy_of_one_table_says_nothing_of_linked_ones_when_it_is_written():
    policy = Policy.from_dict(
        {
            "version": 1,
            "attributes": {"age": {"role": "quasi", "type": "number"}},
            "promises": [{"model": "k-anonymity", "k": 2}],
        }
    )
    content = policy.model.model_dump()
    assert not {"tables", "anchor", "keys", "assume"} & content.keys()
    assert not {"separator", "known"} & content["attributes"]["age"].keys()


def test_a_policy_of_linked_tables_survives_being_saved(tmp_path):
    policy = Policy.from_dict(linked_cases.policy(keys="keyed"))
    policy.save(tmp_path / "policy.yaml")
    assert Policy.load(tmp_path / "policy.yaml").model == policy.model


def test_nothing_is_audited_while_it_is_open_whose_rows_are_whose():
    content = linked_cases.policy()
    content["tables"]["drugs"] |= {"parent": None, "ask": "whose rows are these?"}
    with pytest.raises(InputError, match="table 'drugs': has an open question"):
        shoal.audit(linked_cases.published(linked_cases.world(9)), content)


def test_a_function_of_one_table_names_those_of_several():
    frame = linked_cases.world(9)["people"]
    with pytest.raises(InputError, match="is about several tables"):
        shoal.attack(frame, linked_cases.policy(), frame)


# What the data says of it.


def bound(world, policy=None, **more):
    asked = Policy.from_dict(policy or linked_cases.policy(**more))
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
    said = said_of(
        {
            "people": pl.concat([people, people.head(2)]),
            "visits": visits.with_columns(
                pl.when(pl.int_range(pl.len()) < 2)
                .then(pl.lit("p77"))
                .otherwise("patient")
                .alias("patient")
            ),
            "drugs": world["drugs"],
        }
    )
    assert any("column 'patient': names a person again (rows 10, 11)" in one for one in said)
    assert any(
        "2 rows belong to no row of 'people' by 'patient' (rows 1, 2)" in one for one in said
    )
    assert not any("p77" in one for one in said)


def test_a_row_about_two_people_is_found():
    world = linked_cases.world(9)
    policy = linked_cases.policy()
    policy["tables"]["drugs"]["attributes"]["who"] = {"role": "subject"}
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
    said = said_of({"people": world["people"].rename({"patient": "id"}), "wards": world["drugs"]})
    assert re.search("table 'visits': in the policy, not in the data", "\n".join(said))
    assert re.search("table 'wards': in the data, not in the policy", "\n".join(said))
    assert re.search("has no column 'patient'", "\n".join(said))


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
    policy = linked_cases.policy()
    policy["attributes"]["codes"] = {
        "role": "quasi",
        "type": "set",
        "separator": ";",
        "known": 2,
    }
    people = world["people"].with_columns(codes=pl.Series(["b; a", "", "a;a", None]))
    tables = bound({**world, "people": people}, policy)
    assert tables.rows["codes"].table.frame["codes"].to_list() == ["b", "a", "a"]
    assert tables.rows["codes"].counts.tolist() == [2, 0, 1, 0]
    assert tables.tree["codes"].separator == ";"
    assert tables.tree.known_rows == 2


def test_dates_count_from_each_persons_first_one():
    world = linked_cases.world(3)
    policy = linked_cases.policy(anchor={"first": "visits.day"})
    policy["tables"]["visits"]["attributes"]["day"] = {"role": "quasi", "type": "date"}
    visits = pl.DataFrame(
        {
            "visit": ["a", "b", "c"],
            "patient": ["p2", "p0", "p2"],
            "cost": 1,
            "disease": "flu",
            "day": ["2020-03-01", "2020-01-01", "2020-02-28"],
        }
    )
    drugs = world["drugs"].clear()
    world = {**world, "visits": visits, "drugs": drugs}
    tables = bound(world, policy)
    assert tables.rows["visits"].table.frame["day"].to_list() == ["0", "2", "0"]
    anchors = tables.rows[PEOPLE].table.frame[ANCHOR].to_list()
    assert anchors[1] == ""
    assert int(anchors[2]) - int(anchors[0]) == 58
    assert tables.tree.dates == {"visits": ("day",)}
    assert np.isclose(tables.people.matrix.unit[-1], 1)
    policy.pop("anchor")
    absolute = bound(world, policy)
    assert absolute.rows["visits"].table.frame["day"].to_list()[0] == anchors[0]


def test_what_is_no_date_is_found_without_being_shown():
    world = linked_cases.world(3)
    policy = linked_cases.policy(anchor={"first": "visits.day"})
    policy["tables"]["visits"]["attributes"]["day"] = {"role": "quasi", "type": "date"}
    visits = world["visits"].with_columns(day=pl.lit("yesterday"))
    said = said_of({**world, "visits": visits}, policy)
    assert any(f"'visits.day': {visits.height} cells are not dates" in one for one in said)
    assert not any("yesterday" in one for one in said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_top(anchor={"first": "visits.dya"}), "'visits.dya' is no quasi-identifier"),
        (
            lambda c: (
                of_top(anchor={"first": "visits.at"})(c)
                or c["tables"]["visits"]["attributes"].update(at=DATED["day"])
            ),
            "table 'visits': column 'at'",
        ),
        (
            lambda c: c["attributes"].update(patient={"role": "identifier"}),
            "no single column of people names the person",
        ),
        (of_visits(key=None), "rows of 'drugs' point to it; name the column"),
    ],
)
@pytest.mark.parametrize("verb", ["check", "publish"])
def test_what_is_refused_is_said_in_one_line(change, said, verb, shoal, tmp_path, monkeypatch):
    """Also where what is left of a refused policy is compared with the data."""
    monkeypatch.chdir(tmp_path)
    content = linked_cases.policy()
    content["tables"]["visits"]["attributes"]["day"] = DATED["day"]
    change(content)
    Path("policy.json").write_text(json.dumps(content))
    Path("in").mkdir()
    world = linked_cases.world(9)
    world["visits"] = world["visits"].with_columns(day=pl.lit("2020-01-01"))
    for name, frame in world.items():
        frame.write_csv(f"in/{name}.csv")
    words = {
        "check": ("policy", "check", "policy.json", "in"),
        "publish": ("publish", "in", "-p", "policy.json", "-o", "out", "-q"),
    }
    done = shoal(*words[verb])
    assert done.status == 2
    (line,) = done.err.splitlines()
    assert said in line
