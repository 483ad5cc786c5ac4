"""What comparisons have measured, kept beside the project so that they can go on later."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Protocol

from shoal.web import folder as files
from shoal.web.policy_text import sha256, written
from shoal.web.project import Project
from shoal.web.work import Jobs

Context = dict[str, Any]
KS = (3, 5, 7, 10, 15, 20, 30, 50)


class Measuring(Protocol):
    """What points are measured of: a project, its files as they are, and the jobs that run."""

    project: Project
    jobs: Jobs

    def stamp(self) -> list[int]: ...
    def hierarchies_sha(self) -> str: ...


def comparison_key(server: Measuring) -> str:
    """What measured points are about: the policy but for its k and method, and the table."""
    policy = dict(server.project.policy)
    policy.pop("method", None)
    promises = [{**p, "k": 0} if "k" in p else p for p in policy.get("promises") or ()]
    text = written({**policy, "promises": promises})
    return sha256(json.dumps([text, server.stamp(), server.hierarchies_sha()]))


def stored(server: Measuring) -> dict[str, list[Context]]:
    """Measured rows by what they are about."""
    with suppress(OSError, ValueError):
        found = json.loads((server.project.folder / ".ui" / "compared.json").read_text("utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def store(server: Measuring, key: str, rows: list[Context]) -> None:
    kept = {**stored(server), key: rows}
    path = files.made(server.project.folder / ".ui") / "compared.json"
    files.write(path, json.dumps(dict(list(kept.items())[-10:])))


def rows_now(server: Measuring) -> list[Context]:
    """Every row that was measured, those of a comparison that runs included."""
    key = comparison_key(server)
    rows = {(row["label"], row["k"]): row for row in stored(server).get(key, ())}
    for job in server.jobs.open:
        if job.kind == "compare" and job.asked.get("about") == key:
            rows |= {(e["row"]["label"], e["row"]["k"]): e["row"] for e in job.events if "row" in e}
    return sorted(rows.values(), key=lambda row: (row["k"], row["loss"] is None, row["loss"] or 0))


def compared_points(server: Measuring) -> list[tuple[str, int, float]]:
    """Every measured release that keeps its promises: method, k, loss."""
    return [(r["label"], r["k"], r["loss"]) for r in rows_now(server) if r["holds"]]


def required_k(server: Measuring) -> int:
    promises = server.project.policy.get("promises") or ()
    return next((p["k"] for p in promises if p.get("model") == "k-anonymity"), 0)


def asked_ks(server: Measuring) -> list[int]:
    own = required_k(server)
    return sorted({*KS, *([own] if own >= 2 else [])})
