"""Fusions whose parties are killed 1 to 6 times, at any instant from the start to the end.

The one outcome is the table of a fusion that nothing disturbs. Parties that are killed, or that
fail for a reason that may pass, are started again, as `shoal fuse` and people do.
"""

import random
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from party_processes import World, bank_world

VETO = "three owners, one with a veto"
WORLDS = {
    "three owners": {},
    VETO: {},
    "three owners, MPyC": {"maximum": "mpyc"},
    "two owners and a helper, MPyC": {"maximum": "mpyc", "helper": "recipient"},
    "keyed ids, MPyC": {"maximum": "mpyc", "helper": "recipient", "keyed": True},
}
MOST_KILLS, MOST_RETRIES = 6, 3
LONGEST = 120.0  # seconds


def made(folder: Path, kind: str) -> World:
    world = bank_world(folder, n=40, **WORLDS[kind])
    if kind == VETO:
        office = next(party for party in world.content["parties"] if party["name"] == "office")
        office["attributes"]["district"] = {"role": "plain"}
        world.content["promises"] = [{"model": "k-anonymity", "k": 4}]
        world.content["sensitive"] = {"attribute": "district", "l": 3, "veto": "seen"}
    for promise in world.content["promises"]:
        promise["k"] = 8 if "attributes" in promise else 4
    return world


def owners(world: World) -> list[str]:
    return [party["name"] for party in world.content["parties"]]


@cache
def undisturbed(kind: str) -> tuple[float, bytes]:
    """How long a fusion takes, and its table."""
    with TemporaryDirectory() as name:
        world = made(Path(name), kind)
        begun = time.monotonic()
        for party in world.names:
            world.start(party)
        assert set(world.statuses(LONGEST).values()) == {0}, kind
        return time.monotonic() - begun, world.release("bank")


def trial(rng: random.Random, folder: Path) -> str:
    kind = rng.choice(list(WORLDS))
    usual, expected = undisturbed(kind)
    world = made(folder, kind)
    kills = sorted(rng.uniform(0, usual) for _ in range(rng.randint(1, MOST_KILLS)))
    victims = [(at, rng.choice(world.names), rng.uniform(0, 0.3)) for at in kills]
    try:
        retries = watched(world, victims)
    finally:
        world.kill()
    tables = {world.release(owner) for owner in owners(world)}
    assert tables == {expected}, (kind, victims, "another table")
    return "the same table" if not retries else "the same table, after a party failed and resumed"


def watched(world: World, victims: list[tuple[float, str, float]]) -> int:
    """Runs a fusion to its end and kills these parties meanwhile; how many failed by themselves.

    victims: for each kill the seconds from the start, the party, and the seconds until it is
    started again.
    """
    begun, retries, waiting = time.monotonic(), dict.fromkeys(world.names, 0), dict[str, float]()
    for name in world.names:
        world.start(name, patience=LONGEST / 4)
    while True:
        now = time.monotonic() - begun
        assert now < LONGEST, (victims, "did not end", statuses(world))
        while victims and victims[0][0] <= now:
            _, name, pause = victims.pop(0)
            if world.running[name].is_alive():
                world.running[name].kill()
                waiting[name] = now + pause
        for name, process in world.running.items():
            if process.is_alive() or process.exitcode == 0:
                continue
            if name not in waiting:
                assert process.exitcode in (-9, 4, 70), (name, process.exitcode, victims)
                retries[name] += 1
                assert retries[name] <= MOST_RETRIES, (name, world.message(name))
                waiting[name] = now
            if waiting[name] <= now:
                del waiting[name]
                world.start(name, patience=LONGEST / 4)
        if not victims and all(process.exitcode == 0 for process in world.running.values()):
            return sum(retries.values())
        if all(process.exitcode == 0 for process in world.running.values()):
            victims.clear()  # the end came before them
        time.sleep(0.01)


def statuses(world: World) -> dict[str, int | None]:
    return {name: process.exitcode for name, process in world.running.items()}
