"""Streams and ledgers: watched, never touched."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any

from shoal.errors import CheckpointError, InputError
from shoal.streams.stream_status import stream_status
from shoal.web import increments, pictures, policy_text
from shoal.web.edits import Form, one
from shoal.web.frame import frame
from shoal.web.policy_text import written
from shoal.web.server import Server
from shoal.web.work import Refused

Context = dict[str, Any]
LEDGER_POLICY = "policy.json"
KINDS = {"stream": "A stream: the folder of its --checkpoint", "ledger": "A ledger: its folder"}
WIDTH, HEIGHT = 300, 60
COUNTED = {
    "came": "records came",
    "published": "published",
    "waiting": "waiting",
    "suppressed": "suppressed",
    "set_aside": "set aside as bad",
    "held": "held back",
    "dropped": "dropped",
}
MOST_IN_SCHOOL = 12
RARE = ("held", "dropped")  # counts that are shown only where there are any
HAPPENED = {
    "begun": "Begun",
    "resumed": "Resumed where it had stopped, nothing lost or repeated",
    "ended": "Ended: all is published",
    "stopped": "Stopped; the same command goes on",
    "broken": "A release broke a promise and was withheld",
    "failed": "Ended with an error",
}


def add(server: Server, form: Form) -> str:
    """Remembers a folder below the start folder; where its page is. Raises InputError."""
    kind, named = one(form, "kind"), one(form, "path")
    if kind not in KINDS:
        raise InputError("watch: choose a stream or a ledger")
    policy_text.within(named, server.project.start, is_folder=True)
    known = list(server.project.about.get("places") or [])
    place = {"kind": kind, "path": named}
    if place not in known:
        known.append(place)
        server.remember(f"watching the {kind} {Path(named).name}", places=known)
    return f"/{kind}/{known.index(place) + 1}"


def folder_of(server: Server, number: str, kind: str) -> Path:
    """The folder of a place that is watched; raises NotThere."""
    known = server.project.about.get("places") or []
    if not number.isdecimal() or not 1 <= int(number) <= len(known):
        raise policy_text.NotThere
    place = known[int(number) - 1]
    if place["kind"] != kind:
        raise policy_text.NotThere
    return policy_text.within(place["path"], server.project.start, is_folder=True)


async def stream_screen(server: Server, number: str) -> Context:
    """How a stream is doing by its last commit: the page reads `status.json` and nothing else."""
    folder = folder_of(server, number, "stream")
    context = {
        **await frame(server, "stream", ["shoal", "stream-status", _in_commands(server, folder)]),
        "title": f"Stream {folder.name}",
        "name": folder.name,
        "here": f"/stream/{number}",
        "status": None,
    }
    try:
        found = stream_status(folder)
    except CheckpointError as missing:
        return {**context, "trouble": str(missing.args[0])}
    minutes = found["log"]["minutes"]
    now = time()
    return {
        **context,
        "status": found.content,
        "holds": found.holds,
        "ago": max(0, round(now - float(found["at"]))),
        "alarms": [{"kind": a.kind, "text": a.text, "at": clock(a.since)} for a in found.alarms],
        "events": [
            {"at": clock(e["at"]), "text": _event_text(e)}
            for e in reversed(found["log"]["events"][-8:])
        ],
        "loss_line": line([_share(m["loss"], m["published"]) for m in minutes]),
        "wait_line": line([m["longest"] for m in minutes], found["wait"]["allowed"]),
        "reuse_line": line([_share(m["reused"], m["decided"]) for m in minutes]),
        "from": clock(minutes[0]["at"]) if minutes else "",
        "to": clock(found["at"]),
        "started": clock(found["log"]["started"]),
        "counts": [
            {"value": found["records"][name], "text": text}
            for name, text in COUNTED.items()
            if name not in RARE or found["records"][name]
        ],
        "promises": [_asked(promise) for promise in found["verdict"]["promises"]],
        "schools": _schools(found["verdict"]["least_class"], found["records"]["waiting"]),
    }


def _in_commands(server: Server, folder: Path) -> str:
    """The folder's path from the project, as commands there name it."""
    return Path(os.path.relpath(folder, server.project.folder)).as_posix()


def _event_text(event: Context) -> str:
    if event["kind"] == "set aside":
        return f"{event.get('count', 0):,} set aside as bad: the dead letters name their places"
    return HAPPENED.get(event["kind"], str(event["kind"]))


def _asked(promise: Context) -> str:
    about = ", ".join(promise["attributes"])
    return f"{promise['model']}{f' of {about}' if about else ''}: {promise['asked']}"


def _schools(least: int | None, waiting: int) -> Context | None:
    """Three groups and those who wait, drawn; None before anybody was published."""
    if not least:
        return None
    shown = min(least, MOST_IN_SCHOOL)
    return {
        "groups": [pictures.school(shown, 150, 48) for _ in range(3)],
        "waiting": pictures.school(min(waiting, 4), 110, 48) if waiting else [],
        "least": least,
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def clock(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(float(seconds)).strftime("%H:%M")


def line(values: list[float | None], allowed: float | None = None) -> Context:
    """A line through what is known, its last point, and where the allowed stands."""
    known = [value for value in values if value is not None]
    top = max([*known, allowed or 0, 1e-9]) * 1.1
    step = WIDTH / (len(values) - 1) if len(values) > 1 else 0
    points = [
        (round(place * step, 1) if step else WIDTH, round(HEIGHT * (1 - value / top), 1))
        for place, value in enumerate(values)
        if value is not None
    ]
    limit = None if allowed is None else round(HEIGHT * (1 - allowed / top), 1)
    path = " ".join(f"{x},{y}" for x, y in points)
    return {"path": path, "allowed": limit, "end": points[-1] if points else None}


async def ledger_screen(server: Server, number: str, waits: bool = False) -> Context:
    """The chain of a ledger, what an audit of its history finds, and its next increment.

    waits: until all of it is measured, for whoever decides something.
    """
    folder = folder_of(server, number, "ledger")
    context = {
        **await frame(
            server, "ledger", ["shoal", "audit", "--ledger", _in_commands(server, folder)]
        ),
        "title": f"Ledger {folder.name}",
        "name": folder.name,
        "here": f"/ledger/{number}",
        "chain": None,
        "damage": [],
        "history": None,
        "policy_text": _policy_text(folder),
    }
    stamp = sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file())
    try:
        for part in ("chain", "history"):
            asked = {"stamp": stamp, "folder": str(folder)}
            look = server.desk.kept if waits else server.desk.soon
            context[part] = await look(f"ledger_{part}", **asked)
    except Refused as broken:
        context["damage"] = [broken.message, *broken.findings]
    holds = context["history"] is not None and context["history"]["holds"]
    head = context["chain"]["hash"] if context["chain"] and holds else None
    context |= increments.increment_context(server, int(number), folder, head)
    context["waits"] = context["waits"] or (context["history"] is None and not context["damage"])
    return context


def _policy_text(folder: Path) -> str:
    """What a ledger's releases are measured against, as the page writes policies."""
    try:
        content = json.loads((folder / LEDGER_POLICY).read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    return written(content) if isinstance(content, dict) else ""
