"""Compare: the measured points of methods and values of k, one of them chosen."""

from contextlib import suppress

from shoal.data.language import gettext
from shoal.web import edits, pictures, work
from shoal.web.frame import frame, shell
from shoal.web.policy_text import Context
from shoal.web.project import Run
from shoal.web.server import Server

GLOBAL = "full-domain:suppression=0.05"  # a method whose levels can be walked


async def compare_screen(server: Server, method: str, k: str, levels: str = "") -> Context:
    """The points, one of them chosen, and the same as a table. levels: of a global recoding."""
    project = server.project
    ks = ",".join(map(str, pictures.asked_ks(server)))
    command = ["shoal", "compare", project.table_in_commands, "-p", "policy.yaml", "--ks", ks]
    rows = pictures.rows_now(server)
    known = [row for row in rows if row["loss"] is not None]
    wanted = method, edits.whole(k)
    own_k = pictures.required_k(server)
    chosen = next((r for r in known if (r["label"], r["k"]) == wanted), None)
    chosen = chosen or next((r for r in known if r["k"] == own_k and r["holds"]), None)
    at = chosen["k"] if chosen else own_k
    return {
        **await frame(server, "compare", gettext("Compare"), command),
        "rows": rows,
        "at": at,
        "table_rows": [row for row in rows if row["k"] == at],
        "chosen": chosen,
        "neighbours": _neighbours(known, chosen),
        "is_current": chosen is not None and _is_current(server, chosen),
        "chart": pictures.frontier(known, own_k, chosen) if known else None,
        "unreachable": [row for row in rows if row["loss"] is None],
        "broken": [row for row in rows if row["holds"] is False],
        "running": any(job.kind == "compare" for job in server.jobs.open),
        "done": len(rows),
        "lattice": await lattice_context(server, levels) if rows else None,
        "last_run": project.last_draft,
        "global_label": None if project.is_several else GLOBAL,
        "several": project.is_several,
        "once": server.new_once(),
    }


def _is_current(server: Server, row: Context) -> bool:
    method = (server.project.policy.get("method") or {}).get("name")
    return row["label"].partition(":")[0] == method and row["k"] == pictures.required_k(server)


def _neighbours(rows: list[Context], chosen: Context | None) -> list[str]:
    """What one step to the nearest k, smaller and greater, would change."""
    if chosen is None:
        return []
    own = sorted((r["k"], r["loss"]) for r in rows if r["label"] == chosen["label"])
    place = own.index((chosen["k"], chosen["loss"]))
    found = []
    for k, loss in own[max(place - 1, 0) : place] + own[place + 1 : place + 2]:
        points = 100 * abs(loss - chosen["loss"])
        change = gettext("At k = {k} you would lose {points:.1f} points more.")
        if loss < chosen["loss"]:
            change = gettext("At k = {k} you would keep {points:.1f} points more.")
        found.append(change.format(k=k, points=points))
    return found


# The neighbourhood of levels in a global recoding: one step coarser or finer, walked by arrows.


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
        asked = {**server.asked_of(run), "levels": levels}
        stamp = [server.stamp(), server.hierarchies_sha(), run.name]
        with suppress(work.Refused):
            walked = await server.desk.soon("lattice", stamp=stamp, **asked)
            if walked is None:
                return {"run": run, "names": names, "waits": True}
            found = walked
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
    words = ["shoal", "compare", server.project.table_in_commands, "-p", policy]
    for name, level in levels.items():
        words += ["--levels", f"{name}:{level}"]
    return shell(words)


def _recoded(server: Server) -> Run | None:
    """The last draft of a global recoding that is of the table as it is."""
    for run in filter(server.is_of_table, server.project.runs):
        if (run.certificate.get("explanation") or {}).get("node"):
            return run
    return None


def _levels(at: str, names: list[str]) -> dict[str, int] | None:
    levels = [level for part in at.split(".") if (level := edits.whole(part)) is not None]
    if len(levels) != len(names):
        return None
    return dict(zip(names, (min(level, 99) for level in levels), strict=True))


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
