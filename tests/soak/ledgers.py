"""Ledgers whose appends are killed, and whose files are damaged: whole, each increment published
once; and no flipped bit passes. Some put their releases into a table as well: the same rows."""

import json
import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from republish_cases import POLICY, wearers
from shoal.auditor.ledger.release_view import ledger_table, verify_ledger
from shoal.connectors import files
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.layout import TABLE
from shoal.policy import registry
from soak.processes import Command, flip_a_bit, killed, timed

LEAKS = "static-2"  # its releases are withheld
METHODS = tuple(
    name
    for name, known in registry.methods().items()
    if known.verb == "republish" and name != LEAKS
)
INCREMENTS, PEOPLE = 3, 60
PARTS = ("L", "L.private")


def prepared(folder: Path) -> None:
    attributes = POLICY["attributes"] | {"beat": {"role": "drop"}}  # it would show invented rows
    (folder / "p.json").write_text(json.dumps(POLICY | {"attributes": attributes}))
    for number in range(INCREMENTS):
        wearers(PEOPLE, number).write_csv(folder / f"{number}.csv")


def table_in(folder: Path) -> str:
    """The address of a table."""
    return f"sqlite:///{folder / 'out.db'}?table=releases"


def started(folder: Path, increment: int, method: str, into_table: bool) -> Command:
    order = ["republish", f"{increment}.csv", "-p", "p.json", "--ledger", "L", "-q"]
    output = ["-o", table_in(folder)] if into_table else []
    return Command(folder, *order, "--method", method, *output)


@cache
def seconds_of_an_append(method: str, into_table: bool) -> float:
    with TemporaryDirectory() as name:
        prepared(Path(name))
        timed(lambda: started(Path(name), 0, method, into_table))
        return timed(lambda: started(Path(name), 1, method, into_table))


def trial(rng: random.Random, folder: Path) -> str:
    method, into_table = rng.choice(METHODS), rng.random() < 0.5
    usual = seconds_of_an_append(method, into_table)
    prepared(folder)
    for number in range(INCREMENTS):
        status = killed(
            lambda number=number: started(folder, number, method, into_table),
            rng,
            usual,
            rng.randint(0, 2),
        )
        assert status == 0, (method, number, (folder / "stderr").read_text())
        assert Ledger.at(folder / "L").verify() == [], (method, number)
    audited = Command(folder, "audit", "--ledger", "L", "-q")
    assert audited.status() == 0, (method, audited.said)
    assert Ledger.at(folder / "L").releases() == list(range(1, INCREMENTS + 1))
    assert not [*folder.rglob(".*.part")]
    if into_table:
        table, ledger = table_in(folder), str(folder / "L")
        assert verify_ledger(table) == verify_ledger(ledger), method
        assert files.read(table).frame.equals(ledger_table(ledger)), method
    flips = 5
    for _ in range(flips):
        notice_a_flip(rng, folder)
    where = ", and the table with it" if into_table else ""
    return f"killed: whole{where}; {flips} flipped bits found"


def notice_a_flip(rng: random.Random, folder: Path) -> None:
    for part in PARTS:
        shutil.copytree(folder / part, folder / "before" / part)
    every = [path for part in PARTS for path in (folder / part).rglob("*") if path.is_file()]
    # no hash covers the address in the note about a table
    path = flip_a_bit(rng, [file for file in every if file.name != TABLE])
    assert Ledger.at(folder / "L").verify(), path.relative_to(folder)
    for part in PARTS:
        shutil.rmtree(folder / part)
        shutil.move(folder / "before" / part, folder / part)
