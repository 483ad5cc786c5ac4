"""A table walks down through a verb: how often it climbs back up must not grow.

`PYTHONPATH=src:tests python tests/architecture/test_walks.py` lists the climbs of every walk.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

import republish_cases
from party_processes import bank_world
from sample_policies import PATIENTS
from shoal.fusion.party import take_part
from shoal.fusion.request import PartyRequest
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.tables.publish import publish_file
from walks import Step, Walk, climbs, floors

N = 120


def publish(folder: Path) -> list[Step]:
    """A table of patients, published to a file."""
    patients.generate(N, 7).write_csv(folder / "in.csv")
    asked = Policy.from_dict(yaml.safe_load(PATIENTS))
    paths = str(folder / "in.csv"), asked, str(folder / "out.csv")
    return Walk(N).through(lambda: publish_file(*paths))


def republish(folder: Path) -> list[Step]:
    """The second increment of a growing table."""
    ledger, asked = folder / "ledger", republish_cases.policy()
    republish_cases.append(ledger, republish_cases.wearers(N, 1), asked)
    republish_cases.wearers(N, 2).write_csv(folder / "next.csv")
    return Walk(N).through(lambda: republish_file(str(folder / "next.csv"), asked, ledger))


def party(folder: Path) -> list[Step]:
    """The table of a fusion's only owner, who has nobody to talk to."""
    world = bank_world(folder, N)
    world.content["parties"] = [p for p in world.content["parties"] if p["name"] == "bank"]
    world.content["promises"] = [{"model": "k-anonymity", "k": 4}]
    out, journal = str(folder / "out.csv"), folder / "journal"
    agreed = str(world.agreement)
    return Walk(N // 2).through(
        lambda: take_part(PartyRequest("bank", agreed, out, folder, journal, ledger=folder))
    )


WALKS = {"publish": (publish, 14), "republish": (republish, 21), "party": (party, 9)}
"""By name, with the most climbs that a walk may have; lower one when you have lowered its walk."""


@pytest.mark.parametrize("name", WALKS)
def test_a_table_climbs_back_up_no_more_than_it_did(name, tmp_path):
    walk, most = WALKS[name]
    steps = walk(tmp_path)
    assert len(steps) > 50, "hardly anything was recorded"
    found = climbs(steps)
    assert len(found) <= most, "\n".join(f"{b} (behind {a.place})" for a, b in found)


def test_floors_are_those_of_the_contracts():
    known = floors()
    order = [
        "data",
        "privacy",
        "policy",
        "auditor",
        "recoding",
        "tables",
        "advise",
        "reports",
        "cli",
    ]
    assert sorted(order, key=known.__getitem__) == order
    assert len({known[package] for package in order}) == len(order)
    assert known["ledgers"] == known["fusion"]


if __name__ == "__main__":
    for name, (walk, _) in WALKS.items():
        with TemporaryDirectory() as folder:
            steps = walk(Path(folder))
        print(f"{name}: {len(climbs(steps))} climbs in {len(steps)} steps")
        for before, after in climbs(steps):
            print(f"  {before.floor} -> {after.floor}  {after}  (behind {before.place})")
