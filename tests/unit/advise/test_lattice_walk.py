"""A walk through the levels of a global recoding: what it says is what a release there would."""

import json
from pathlib import Path

import pytest
import yaml

import shoal
from sample_policies import content_of
from shoal.advise.marginal import lattice_walk
from shoal.cli.main import status_of
from shoal.errors import InputError

POLICY = content_of(
    {
        "patient": "subject",
        "age": {"role": "quasi", "hierarchy": {"bins": {"width": 10, "levels": 3}}},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
    },
    4,
    other="drop",
    method={"name": "full-domain", "suppression": 0.05},
)
FRAME = shoal.sample("patients", 200, 3)


def test_the_first_look_is_what_publish_explains():
    stated = shoal.publish(FRAME, POLICY, explain=True).certificate["explanation"]
    found = lattice_walk(FRAME, POLICY).around(stated["node"]["levels"])
    assert found == {name: stated[name] for name in ("node", "neighbours")}


def test_a_step_leads_to_what_the_neighbour_says_and_back():
    walk = lattice_walk(FRAME, POLICY)
    here = {"age": 1, "sex": 0, "zip": 2}
    first = walk.around(here)
    assert len(first["neighbours"]) == 5  # sex can't be finer
    for neighbour in first["neighbours"]:
        there = walk.around(neighbour["levels"])
        kept = ("levels", "breaking", "is_safe", "loss")
        assert there["node"] == {name: neighbour[name] for name in kept}
        assert here in [back["levels"] for back in there["neighbours"]]


def test_the_command_says_what_the_walk_does_of_safe_and_unsafe_levels(folder, capsys):
    FRAME.write_csv("t.csv")
    Path("p.yaml").write_text(yaml.safe_dump(POLICY))
    walk, are_safe = lattice_walk(FRAME, POLICY), set()
    for zip_level in (0, 3):
        command = f"compare t.csv -p p.yaml --levels age:1 --levels zip:{zip_level} -q".split()
        assert status_of([*command, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == walk.around({"age": 1, "sex": 0, "zip": zip_level})
        are_safe.add(found["node"]["is_safe"])
        assert status_of(command) == 0
        assert f"age 1, sex 0, zip {zip_level}" in capsys.readouterr().out
    assert are_safe == {True, False}
    for wrong in ("zip", "zip:x", "ship:1", "zip:" + "1" * 5000):
        assert status_of(["compare", "t.csv", "-p", "p.yaml", "--levels", wrong, "-q"]) == 2
    capsys.readouterr()
    assert status_of("compare t.csv -p p.yaml --levels zip:1 --levels zip:2 -q".split()) == 2
    assert "names 'zip' twice" in capsys.readouterr().err


def test_levels_that_are_none_and_methods_without_any_are_refused():
    walk = lattice_walk(FRAME, POLICY)
    for levels in ({"age": 1}, {"age": 99, "sex": 0, "zip": 0}):
        with pytest.raises(InputError, match="levels"):
            walk.around(levels)
    with pytest.raises(InputError, match="full-domain"):
        lattice_walk(FRAME, {**POLICY, "method": {"name": "mondrian"}})
