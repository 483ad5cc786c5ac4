"""Real owners fuse the same people again: both releases together keep k, or there is no second."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter

import polars as pl
import pytest

from party_processes import World, bank_world

K = 4
QUASI = ("age", "education", "job", "salary", "sex")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Two owners after their first fusion; the second owner tags people, for the test."""
    world = bank_world(tmp_path_factory.mktemp("begun"), n=120, helper="recipient")
    del world.content["helper"]
    tag = pl.read_csv(world.folder / "insurer.table.csv", infer_schema=False)
    tag.with_columns(tag=pl.col("customer")).write_csv(world.folder / "insurer.table.csv")
    world.content["parties"][1]["attributes"]["tag"] = {"role": "plain"}
    world.content |= {
        "promises": [{"model": "k-anonymity", "k": K}],
        "method": {"name": "party-mondrian"},
        "before": "start",
    }
    assert run(world) == {"bank": 0, "insurer": 0}
    shutil.copy(world.folder / "bank.csv", world.folder / "first.csv")
    world.content["before"] = ledgers(world)["bank"]
    return world


@pytest.fixture
def world(begun, tmp_path):
    """The same, in a folder of its own."""
    shutil.copytree(begun.folder, tmp_path / "world")
    content = json.loads(json.dumps(begun.content))
    return World(tmp_path / "world", content)


def run(world, dies: str | None = None) -> dict[str, int]:
    """A fusion with fresh journals."""
    for name in world.names:
        shutil.rmtree(world.folder / f"{name}.journal", ignore_errors=True)
        (world.folder / f"{name}.error").unlink(missing_ok=True)
    for name in world.names:
        if name != dies:
            world.start(name, patience=10)
    if dies is not None:
        world.die_again_and_again(dies, 12)
    return world.statuses()


def ledgers(world) -> dict[str, str]:
    """The hash of each owner's ledger."""
    heads = {n: (world.folder / f"{n}.ledger").read_text().split("\n")[0] for n in world.names}
    return {name: json.loads(head)["hash"] for name, head in heads.items()}


def classes(path) -> dict[str, tuple]:
    """The published class of every person."""
    table = pl.read_csv(path, infer_schema=False)
    quasi = [name for name in QUASI if name in table.columns]
    return dict(zip(table["tag"], table.select(quasi).rows(), strict=True))


def test_two_releases_together_keep_k_for_all_whom_they_name(world):
    """Some left, some came; a party is killed on the way, and goes on with the old ledger."""
    bank = pl.read_csv(world.folder / "bank.table.csv", infer_schema=False).sort("customer")
    bank[12:].write_csv(world.folder / "bank.table.csv")
    assert run(world, dies="bank") == {"bank": 0, "insurer": 0}
    first, second = (classes(world.folder / name) for name in ("first.csv", "bank.csv"))
    known = Counter((first.get(tag), second.get(tag)) for tag in first.keys() | second.keys())
    assert min(known.values()) >= K
    assert len(set(ledgers(world).values())) == 1
    assert ledgers(world)["bank"] != world.content["before"]
    told = json.loads((world.folder / "bank.csv.certificate.json").read_text())["fusion"]["ledger"]
    assert told["before"] == world.content["before"]
    assert told["now"] == ledgers(world)["bank"]
    assert (told["fusions"], told["withheld"] > 0) == (2, True)


def test_without_the_ledger_it_would_not_keep_k(world):
    """What the ledger is for: the same two fusions, the second of them unaware of the first."""
    bank = pl.read_csv(world.folder / "bank.table.csv", infer_schema=False).sort("customer")
    bank[12:].write_csv(world.folder / "bank.table.csv")
    del world.content["before"]
    assert run(world) == {"bank": 0, "insurer": 0}
    first, second = (classes(world.folder / name) for name in ("first.csv", "bank.csv"))
    known = Counter((first.get(tag), second.get(tag)) for tag in first.keys() | second.keys())
    assert min(known.values()) < K


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.unlink(), "who lost it can't take part"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "is damaged"),
    ],
)
def test_who_lost_the_ledger_cannot_take_part(world, damage, told):
    damage(world.folder / "insurer.ledger")
    assert run(world)["insurer"] == 2
    assert told in world.message("insurer")
    assert ledgers_kept(world)


def test_an_owner_whose_ledger_says_something_else_is_found(world):
    path = world.folder / "insurer.ledger"
    head, *lines = path.read_text().splitlines()
    atoms = [json.loads(line) for line in lines]
    atoms[0][0], atoms[-1][0] = atoms[-1][0], atoms[0][0]
    people = "".join(json.dumps(atom) + "\n" for atom in atoms)
    about = json.loads(head) | {"sha256": hashlib.sha256(people.encode()).hexdigest()}
    path.write_text(json.dumps(about) + "\n" + people)
    if atoms[0][0] == atoms[-1][0]:
        pytest.skip("both are of one atom")
    assert set(run(world).values()) == {4}
    assert "another ledger of earlier fusions" in world.message("bank")


def test_a_ledger_is_not_begun_twice(world):
    world.content["before"] = "start"
    assert run(world)["bank"] == 2
    assert "holds fusions already" in world.message("bank")


def ledgers_kept(world) -> bool:
    """Whether the other owner's ledger is as it was."""
    return json.loads((world.folder / "bank.ledger").read_text().split("\n")[0])["fusions"] == 1
