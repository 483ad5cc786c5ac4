"""Ledgers whose appends are killed, and whose files are damaged: whole, each increment published
once; and no flipped bit passes."""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from republish_cases import POLICY, wearers
from shoal.state.ledger import Ledger
from soak.processes import Command, flip_a_bit, killed, timed

METHODS = ("crp", "k-pprp", "static-1", "sticky")
INCREMENTS, PEOPLE = 3, 60
PARTS = ("L", "L.private")


def prepared(folder: Path) -> None:
    (folder / "p.json").write_text(json.dumps(POLICY))
    for number in range(INCREMENTS):
        wearers(PEOPLE, number).write_csv(folder / f"{number}.csv")


def started(folder: Path, increment: int, method: str) -> Command:
    order = ["republish", f"{increment}.csv", "-p", "p.json", "--ledger", "L", "-q"]
    return Command(folder, *order, "--method", method)


@cache
def seconds_of_an_append(method: str) -> float:
    with TemporaryDirectory() as name:
        prepared(Path(name))
        timed(lambda: started(Path(name), 0, method))
        return timed(lambda: started(Path(name), 1, method))


def trial(rng: random.Random, folder: Path) -> str:
    method = rng.choice(METHODS)
    usual = seconds_of_an_append(method)
    prepared(folder)
    for number in range(INCREMENTS):
        status = killed(
            lambda number=number: started(folder, number, method), rng, usual, rng.randint(0, 2)
        )
        assert status == 0, (method, number, (folder / "stderr").read_text())
        assert Ledger.at(folder / "L").verify() == [], (method, number)
    audited = Command(folder, "audit", "--ledger", "L", "-q")
    assert audited.status() == 0, (method, audited.said)
    assert Ledger.at(folder / "L").releases() == list(range(1, INCREMENTS + 1))
    assert not [*folder.rglob(".*.part")]
    flips = 5
    for _ in range(flips):
        notice_a_flip(rng, folder)
    return f"killed: whole; {flips} flipped bits found"


def notice_a_flip(rng: random.Random, folder: Path) -> None:
    for part in PARTS:
        shutil.copytree(folder / part, folder / "before" / part)
    path = flip_a_bit(rng, [folder / part for part in PARTS])
    assert Ledger.at(folder / "L").verify(), path.relative_to(folder)
    for part in PARTS:
        shutil.rmtree(folder / part)
        shutil.move(folder / "before" / part, folder / part)
