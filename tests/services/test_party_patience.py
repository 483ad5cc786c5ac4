"""Every wait of every party ends: by patience, by a farewell, or by the death of another party.

The states that a party waits in, by the message that does not come:

    meeting         nobody is there; or a party is there and frozen
    ROLL            an owner, for the number of records of another one
    MASKED          an owner, for masked ids that pass through it
    GATHERED        the collector (an owner, or the helper of keyed ids), for all masked ids
    COMMON          an owner, for what the collector found
    KEY             an owner, for the key of keyed ids
    LABEL           an owner, for the classes
    BIDS            an owner, for the bids of a round in the clear
    SHARES          an owner or the helper, for the result of a secure round
    BATCH           an owner, for the winner's steps
    PLAIN           an owner, for a column that is published unchanged
    SEAL            an owner, for the hash of another one's table
    END             the helper, for the last round
    sending         any, while another one takes nothing in: see test_party_link
    finishing       any, until the others have everything: see there, too
"""

import time

import pytest

from party_processes import World, bank_world

PATIENCE = 3.0
LONGEST = 120.0  # seconds for all of it, on a machine that does other things
STATES = {
    "ROLL": ("bank", {}),
    "MASKED": ("insurer", {}),
    "GATHERED": ("office", {}),
    "COMMON": ("bank", {}),
    "LABEL": ("bank", {}),
    "BIDS": ("insurer", {}),
    "BATCH": ("winner", {}),
    "PLAIN": ("office", {}),
    "SEAL": ("bank", {}),
    "KEY": ("bank", {"helper": "recipient", "keyed": True}),
    "SHARES": ("recipient", {"helper": "recipient", "maximum": "mpyc"}),
    "END": ("bank", {"helper": "recipient", "maximum": "mpyc"}),
}
"""Who does not send it, and in which world."""


def started(folder, kind: str, how: str) -> tuple[World, set[str]]:
    """A fusion in which one party ends so before it sends a message of this kind; the others."""
    name, more = STATES[kind]
    folder.mkdir()
    world = bank_world(folder, n=40, **more)
    for promise in world.content["promises"]:
        promise["k"] = 8 if "attributes" in promise else 4
    if kind == "PLAIN":  # a column that nobody promises anything about
        attributes = world.content["parties"][2]["attributes"]
        attributes["district"] = {"role": "plain"}
        world.content["promises"][1]["attributes"].remove("district")
    ending = set(world.names) if name == "winner" else {name}
    for one in world.names:
        lie = f"{how}:{kind}" if one in ending else None
        world.start(one, patience=PATIENCE, lie=lie)
    return world, set(world.names) - ending


@pytest.mark.parametrize("kinds", [list(STATES)[at::3] for at in range(3)], ids=" ".join)
@pytest.mark.parametrize("how", ["frozen", "silent", "leaves", "killed"])
def test_whatever_does_not_come_the_others_end_in_time_and_say_so(tmp_path, how, kinds):
    worlds = {}
    try:
        for kind in kinds:
            worlds[kind] = started(tmp_path / kind, kind, how)
        until = time.monotonic() + LONGEST
        for kind, (world, others) in worlds.items():
            least = len(world.names) - 1  # in a round, whoever wins it is the one that ends
            while True:
                ended = refused(world)
                if len(ended) >= least and others <= ended:
                    break
                assert time.monotonic() < until, (kind, how, ended)
                time.sleep(0.05)
            assert not [name for name in ended if "\n" in world.message(name)], kind
            written = {path.name.split(".")[0] for path in world.folder.glob("*.certificate.json")}
            assert not written & others, kind
    finally:
        for world, _ in worlds.values():
            world.kill()


def refused(world: World) -> set[str]:
    """The parties that ended with the status of another party's fault."""
    return {name for name, process in world.running.items() if process.exitcode == 4}
