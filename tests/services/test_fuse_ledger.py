"""Real owners fuse the same people again: both releases together keep k, or there is no second."""

import hashlib
import json
import shutil
from collections import Counter

import polars as pl
import pytest
import yaml

from party_processes import World, bank_world
from shoal.errors import InputError
from shoal.fusion.fuse import fuse_file
from shoal.fusion.ledger import PastFusions
from shoal.policy.agreement import Agreement
from shoal.samples import bank

K = 4
QUASI = ("age", "education", "job", "salary", "sex")
pytestmark = pytest.mark.usefixtures("forked_parties")


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
    return World(tmp_path / "world", json.loads(json.dumps(begun.content)))


def run(world, dies: str | None = None) -> dict[str, int]:
    """A fusion with fresh journals."""
    for name in world.names:
        shutil.rmtree(world.folder / f"{name}.journal", ignore_errors=True)
        (world.folder / f"{name}.error").unlink(missing_ok=True)
    if dies is None:
        return world.run(patience=10)
    world.die_again_and_again(dies, 12, patience=10)
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
    assert least_known_after_another(world, dies="bank") >= K
    assert len(set(ledgers(world).values())) == 1
    assert ledgers(world)["bank"] != world.content["before"]
    shown = json.loads((world.folder / "bank.csv.certificate.json").read_text())["fusion"]["ledger"]
    assert shown["before"] == world.content["before"]
    assert shown["now"] == ledgers(world)["bank"]
    assert (shown["fusions"], shown["withheld"] > 0) == (2, True)


def test_without_the_ledger_it_would_not_keep_k(world):
    """What the ledger is for: the same two fusions, the second of them unaware of the first."""
    del world.content["before"]
    assert least_known_after_another(world) < K


def least_known_after_another(world, dies: str | None = None) -> int:
    """How many people at least are alike in both releases, after a second of some and others."""
    table = pl.read_csv(world.folder / "bank.table.csv", infer_schema=False).sort("customer")
    table[12:].write_csv(world.folder / "bank.table.csv")
    assert run(world, dies) == {"bank": 0, "insurer": 0}
    first, second = (classes(world.folder / name) for name in ("first.csv", "bank.csv"))
    known = Counter((first.get(tag), second.get(tag)) for tag in first.keys() | second.keys())
    return min(known.values())


@pytest.mark.parametrize(
    ("damage", "shown"),
    [
        (lambda path: path.unlink(), "who lost it can't take part"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "is damaged"),
    ],
)
def test_who_lost_the_ledger_cannot_take_part(world, damage, shown):
    damage(world.folder / "insurer.ledger")
    assert run(world)["insurer"] == 2
    assert shown in world.message("insurer")
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


def test_no_release_is_there_that_a_ledger_could_not_take(world):
    shutil.rmtree(world.folder / "bank.journal", ignore_errors=True)
    shutil.rmtree(world.folder / "insurer.journal", ignore_errors=True)
    (world.folder / "bank.csv").unlink()
    world.start("bank", patience=10, lie="no room")
    world.start("insurer", patience=10)
    assert world.statuses() == {"bank": 2, "insurer": 0}
    assert not (world.folder / "bank.csv").exists()


def test_a_ledger_is_not_begun_twice(world):
    world.content["before"] = "start"
    assert run(world)["bank"] == 2
    assert "holds fusions already" in world.message("bank")


def test_shoal_fuse_moves_all_ledgers_on_with_the_release_or_none(tmp_path):
    """One owner, who needs one process; the second fusion is refused under the first agreement."""
    bank.generate_parts(90, 5)["bank"].write_csv(tmp_path / "bank.csv")
    content = yaml.safe_load(bank.parties(dict.fromkeys(bank.OWNERS, "bank.csv")))
    content |= {
        "parties": content["parties"][:1],
        "promises": [{"model": "k-anonymity", "k": K}],
        "method": {"name": "party-mondrian"},
        "before": "start",
    }
    first = Agreement.from_dict(content, tmp_path)
    shown = fuse_file(first, str(tmp_path / "first.csv"))["fusion"]["ledger"]
    kept = (tmp_path / "bank.ledger").read_bytes()
    assert PastFusions.unpack(kept, "").hash == shown["now"]
    with pytest.raises(InputError, match="holds fusions already"):
        fuse_file(first, str(tmp_path / "again.csv"))
    other = first.with_changes(before="0" * 64)
    with pytest.raises(InputError, match="not the one that the agreement continues"):
        fuse_file(other, str(tmp_path / "again.csv"))
    assert (tmp_path / "bank.ledger").read_bytes() == kept
    second = first.with_changes(before=shown["now"])
    fuse_file(second, str(tmp_path / "second.csv"))
    assert PastFusions.unpack((tmp_path / "bank.ledger").read_bytes(), "").fusions == 2
    files = {path.name for path in tmp_path.iterdir()}
    releases = {
        name + end for name in ("first", "second") for end in (".csv", ".csv.certificate.json")
    }
    assert files == {"bank.csv", "bank.ledger"} | releases


def ledgers_kept(world) -> bool:
    """Whether the other owner's ledger is as it was."""
    return json.loads((world.folder / "bank.ledger").read_text().split("\n")[0])["fusions"] == 1
