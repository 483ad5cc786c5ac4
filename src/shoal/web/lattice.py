"""The neighbourhood of levels in a global recoding: one step coarser or finer, walked by arrows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from shoal.web.frame import shell
from shoal.web.project import Run
from shoal.web.server import Server
from shoal.web.work import Refused

Context = dict[str, Any]
WIDTH, HIGH, GAP = 112, 34, 8


async def lattice_context(server: Server, at: str) -> Context | None:
    """Levels around `at`, or around what the last draft of a global recoding has; None of none.

    at: a level for each column, such as 5.0.1.2: numbers alone, for an address holds no value.
    """
    run = _recoded(server)
    if run is None:
        return None
    found: Context = run.certificate["explanation"]
    best = found["node"]["levels"]
    names = list(best)
    levels = _levels(at, names) or best
    if levels != best:
        asked = {
            "table": str(server.project.table),
            **server.asked_of(run),
            "levels": levels,
        }
        walked = None
        with suppress(Refused):
            walked = await server.desk.soon(
                "lattice", stamp=[server.stamp(), server.hierarchies_sha(), run.name], **asked
            )
            if walked is None:
                return {"run": run, "names": names, "waits": True}
        found = walked or found
    return {
        "run": run,
        "names": names,
        "waits": False,
        "node": {**found["node"], "text": " · ".join(map(str, found["node"]["levels"].values()))},
        "coarser": _drawn([n for n in found["neighbours"] if n["step"] > 0]),
        "finer": _drawn([n for n in found["neighbours"] if n["step"] < 0]),
        "is_best": found["node"]["levels"] == best,
        "command": _command(server, run, found["node"]["levels"]),
    }


def _command(server: Server, run: Run, levels: dict[str, int]) -> str:
    """The command that measures the same, under the policy of the draft."""
    is_own = server.asked_of(run)["base"] == str(run.folder)
    policy = f"runs/{run.name}/policy.yaml" if is_own else "policy.yaml"
    words = ["shoal", "levels", server.project.table_in_commands, "-p", policy]
    for name, level in levels.items():
        words += ["--at", f"{name}:{level}"]
    return shell(words)


def _recoded(server: Server) -> Run | None:
    """The last draft of a global recoding that is of the table as it is."""
    return next(
        (
            run
            for run in server.project.runs
            if run.state == "done"
            and not set(server.stale_parts(run)) - {"policy"}
            and (run.certificate.get("explanation") or {}).get("node")
        ),
        None,
    )


def _levels(at: str, names: list[str]) -> dict[str, int] | None:
    parts = at.split(".")
    if len(parts) != len(names) or not all(p.isascii() and p.isdigit() for p in parts):
        return None
    return dict(zip(names, (min(int(part), 99) for part in parts), strict=True))


def _drawn(neighbours: list[Context]) -> list[Context]:
    """Boxes side by side, each with the address of its own neighbourhood."""
    return [
        {
            **one,
            "x": place * (WIDTH + GAP),
            "at": ".".join(map(str, one["levels"].values())),
            "text": f"{one['attribute']} {'+' if one['step'] > 0 else '−'}1",
        }
        for place, one in enumerate(neighbours)
    ]
