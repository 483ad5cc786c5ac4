"""The invented clinic: seeded, whole, and as revealing as such tables are."""

import json
from pathlib import Path

import polars as pl

from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem
from shoal.samples import sample


def test_the_same_seed_gives_the_same_tables_and_another_gives_others():
    one, again, other = sample("clinic", 300, 1), sample("clinic", 300, 1), sample("clinic", 300, 2)
    assert list(one) == ["people", "visits", "drugs"]
    assert all(one[name].equals(again[name]) for name in one)
    assert not one["visits"].equals(other["visits"])


def test_it_is_written_as_a_folder_that_its_own_policy_fits(folder, shoal):
    assert shoal("sample", "clinic", "-n", 300, "-o", "clinic", "-q").status == 0
    names = {path.name for path in Path("clinic").iterdir()}
    assert names == {"people.csv", "visits.csv", "drugs.csv"}
    problem = LinkedProblem(Policy.load("clinic.policy.yaml"))
    tables = bound_linked(read_linked("clinic", problem).tables, problem)
    assert tables.people.count == 300
    written = pl.read_csv("clinic/visits.csv")
    assert tables.rows["visits"].count == written.height
    assert written["day"].is_not_null().all()
    assert shoal("sample", "clinic", "-n", 300, "-o", "clinic", "-q").status == 2


def test_all_visits_of_a_person_say_more_than_the_person_does(folder, shoal):
    shoal("sample", "clinic", "-n", 2000, "-o", "clinic", "-q")
    found = json.loads(
        shoal("profile", "clinic", "-p", "clinic.policy.yaml", "--k", 2, "--json").out
    )
    below = {(row["table"], row["known"]): row["below"] for row in found["exposed"]}
    assert found["people"] == 2000
    assert below["people", "all"] < below["visits", "all"]
