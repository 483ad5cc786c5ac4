"""Compare: the measured points of methods and values of k, one of them chosen."""

from __future__ import annotations

from typing import Any

from shoal.web import pictures
from shoal.web.frame import frame
from shoal.web.lattice import lattice_context
from shoal.web.measured_points import asked_ks, required_k, rows_now
from shoal.web.server import Server

Context = dict[str, Any]
GLOBAL = "full-domain:suppression=0.05"  # a method whose levels can be walked


async def compare_screen(server: Server, method: str, k: str, levels: str = "") -> Context:
    """The points, one of them chosen, and the same as a table. levels: of a global recoding."""
    project = server.project
    ks = ",".join(map(str, asked_ks(server)))
    command = ["shoal", "compare", project.table_in_commands, "-p", "policy.yaml", "--ks", ks]
    rows = rows_now(server)
    known = [row for row in rows if row["loss"] is not None]
    wanted = (method, int(k)) if k.isdecimal() else None
    own_k = required_k(server)
    chosen = next((r for r in known if (r["label"], r["k"]) == wanted), None)
    chosen = chosen or next((r for r in known if r["k"] == own_k and r["holds"]), None)
    running = next((j for j in server.jobs.open if j.kind == "compare"), None)
    at = chosen["k"] if chosen else own_k
    context = await frame(server, "compare", command)
    return {
        **context,
        "title": "Compare",
        "rows": rows,
        "at": at,
        "table_rows": [row for row in rows if row["k"] == at],
        "chosen": chosen,
        "neighbours": _neighbours(known, chosen),
        "is_current": bool(chosen) and _is_current(server, chosen),
        "chart": pictures.frontier(known, own_k, chosen) if known else None,
        "unreachable": [row for row in rows if row["loss"] is None],
        "broken": [row for row in rows if row["holds"] is False],
        "running": running is not None,
        "done": len(rows),
        "lattice": await lattice_context(server, levels) if rows else None,
        "last_run": server.last_draft(),
        "global_label": GLOBAL,
        "once": server.new_once(),
    }


def _is_current(server: Server, row: Context | None) -> bool:
    method = (server.project.policy.get("method") or {}).get("name")
    return (
        row is not None
        and row["label"].partition(":")[0] == method
        and row["k"] == required_k(server)
    )


def _neighbours(rows: list[Context], chosen: Context | None) -> list[str]:
    """What one step to the nearest k, smaller and greater, would change."""
    if chosen is None:
        return []
    own = sorted((r["k"], r["loss"]) for r in rows if r["label"] == chosen["label"])
    place = own.index((chosen["k"], chosen["loss"]))
    found = []
    for k, loss in own[max(place - 1, 0) : place] + own[place + 1 : place + 2]:
        points = 100 * abs(loss - chosen["loss"])
        verb = "keep" if loss < chosen["loss"] else "lose"
        found.append(f"At k = {k} you would {verb} {points:.1f} points more.")
    return found
