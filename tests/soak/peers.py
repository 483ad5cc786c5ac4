"""Fusions in which one party sends malformed messages: the others end in time and say so, or the
table is the right one."""

import random
import time
from pathlib import Path

from soak.kills import LONGEST, WORLDS, made, undisturbed

PATIENCE = 6.0


def trial(rng: random.Random, folder: Path) -> str:
    kind = rng.choice(list(WORLDS))
    usual, expected = undisturbed(kind)
    world = made(folder, kind)
    liar = rng.choice(world.names)
    lie = f"mutates:{rng.randrange(1 << 30)}"
    try:
        for name in world.names:
            world.start(name, patience=PATIENCE, lie=lie if name == liar else None)
        others = [name for name in world.names if name != liar]
        until = time.monotonic() + min(LONGEST, 4 * PATIENCE + 2 * usual)
        for name in others:
            world.running[name].join(max(0.1, until - time.monotonic()))
            status = world.running[name].exitcode
            assert status is not None, (kind, liar, lie, name, "hung")
            assert status in (0, 3, 4), (kind, liar, lie, name, status)
            if status:
                assert "\n" not in world.message(name), (kind, lie, world.message(name))
                assert not (folder / f"{name}.csv.certificate.json").exists()
    finally:
        world.kill()
    written = [name for name in others if (folder / f"{name}.csv").exists()]
    assert {world.release(name) for name in written} <= {expected}, (kind, liar, lie)
    return "malformed: refused" if len(written) < len(others) else "malformed: the same table"
