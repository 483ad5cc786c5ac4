"""Streams and ledgers: watched, never touched, but for the next release of a ledger."""

import json
from datetime import date, datetime
from pathlib import Path
from time import time
from typing import Any

from starlette.routing import Route

from shoal.data.language import gettext
from shoal.errors import CheckpointError, InputError
from shoal.streams.stream_status import stream_status
from shoal.web import pictures, policy_text, sign_off, work
from shoal.web.edits import Form, one, whole
from shoal.web.frame import frame, shows, takes
from shoal.web.policy_text import Context, sha256, stamp_of, written
from shoal.web.server import Server

LEDGER_POLICY = "policy.json"
KINDS = {
    "stream": gettext("A stream: the folder of its --checkpoint"),
    "ledger": gettext("A ledger: its folder"),
}
WIDTH, HEIGHT = 300, 60
COUNTED = {
    "came": gettext("records came"),
    "published": "published",
    "waiting": "waiting",
    "suppressed": "suppressed",
    "set_aside": gettext("set aside as bad"),
    "held": gettext("held back"),
    "dropped": "dropped",
}
MOST_IN_SCHOOL = 12
RARE = ("held", "dropped")  # counts that are shown only where there are any
HAPPENED = {
    "begun": gettext("Begun"),
    "resumed": gettext("Resumed where it had stopped, nothing lost or repeated"),
    "ended": gettext("Ended: all is published"),
    "stopped": gettext("Stopped; the same command goes on"),
    "broken": gettext("A release broke a promise and was withheld"),
    "failed": gettext("Ended with an error"),
}


async def add_watch(server: Server, form: Form) -> str:
    """Remembers a folder below the start folder, and leads to its page; raises InputError."""
    kind, named = one(form, "kind"), one(form, "path")
    if kind not in KINDS:
        raise InputError("watch: choose a stream or a ledger")
    policy_text.within(named, server.project.start, is_folder=True)
    known = [*server.project.places]
    place = {"kind": kind, "path": named}
    if place not in known:
        known.append(place)
        server.remember(
            gettext("watching the {kind} {name}", kind=kind, name=Path(named).name), places=known
        )
    return f"/{kind}/{known.index(place) + 1}"


def folder_of(server: Server, number: str, kind: str) -> Path:
    """The folder of a place that is watched; raises NotThere."""
    known, at = server.project.places, whole(number, 1)
    place = known[at - 1] if at is not None and at <= len(known) else {"kind": ""}
    if place["kind"] != kind:
        raise policy_text.NotThere
    return policy_text.within(place["path"], server.project.start, is_folder=True)


async def stream_screen(server: Server, number: str) -> Context:
    """How a stream is doing by its last commit: the page reads `status.json` and nothing else."""
    folder = folder_of(server, number, "stream")
    context = {
        **await frame(
            server,
            "stream",
            gettext("Stream {name}", name=folder.name),
            ["shoal", "stream-status", server.project.in_commands(folder)],
        ),
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


def _event_text(event: Context) -> str:
    if event["kind"] == "set aside":
        return gettext(
            "{count:,} set aside as bad: the dead letters name their places",
            count=event.get("count", 0),
        )
    return HAPPENED.get(event["kind"], str(event["kind"]))


def _asked(promise: Context) -> str:
    names = ", ".join(promise["attributes"])
    about = gettext(" of {about}", about=names) if names else ""
    return f"{promise['model']}{about}: {promise['asked']}"


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
    policy: Context = policy_text.json_of(folder / LEDGER_POLICY, {})
    context = {
        **await frame(
            server,
            "ledger",
            gettext("Ledger {name}", name=folder.name),
            ["shoal", "audit", "--ledger", server.project.in_commands(folder)],
        ),
        "name": folder.name,
        "here": f"/ledger/{number}",
        "chain": None,
        "damage": [],
        "history": None,
        "policy_text": written(policy) if policy else "",
    }
    stamp = sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file())
    try:
        for part in ("chain", "history"):
            asked = {"stamp": stamp, "folder": str(folder)}
            look = server.desk.kept if waits else server.desk.soon
            context[part] = await look(f"ledger_{part}", **asked)
    except work.Refused as broken:
        context["damage"] = [broken.message, *broken.findings]
    holds = context["history"] is not None and context["history"]["holds"]
    head = context["chain"]["hash"] if context["chain"] and holds else None
    context |= increment_context(server, int(number), folder, head)
    context["waits"] = context["waits"] or (context["history"] is None and not context["damage"])
    return context


# The next increment of a ledger: what each method would do with it, and the gate before it.


SAFE = ("published", "waits")  # outcomes that may be chosen
ANSWERED = {
    "who": gettext("Recipient"),
    "purpose": gettext("Purpose"),
    "controls": gettext("Controls at the recipient"),
    "review_by": gettext("Look at it again by"),
}


def remember(server: Server, number: int, sentence: str, **answers: Any) -> None:
    """Keeps answers about a ledger in project.yaml."""
    places = [dict(place) for place in server.project.places]
    places[number - 1] |= answers
    server.remember(sentence, places=places)


def last_what_if(server: Server, folder: Path) -> work.Job | None:
    """The last job that tried each method with an increment of a ledger."""
    found = server.jobs.last("what-if")
    return found if found is not None and found.asked["folder"] == str(folder) else None


def increment_context(server: Server, number: int, folder: Path, head: str | None) -> Context:
    """What was tried with the next increment, and the conditions of its release."""
    # its path, answers and decisions
    place, tried = server.project.places[number - 1], last_what_if(server, folder)
    done = tried.result if tried is not None and tried.state == "done" else None
    context: Context = {
        "tried": done,
        "increment": Path(tried.asked["increment"]).name if tried is not None else "",
        "is_trying": tried is not None and not tried.is_over,
        "refused": tried.result if tried is not None and tried.state == "refused" else None,
        "answered": place.get("answers") or {},
        "fields": ANSWERED,
        "method": None,
        "gate": [],
        "once": server.new_once(),
    }
    if done is None or tried is None:
        return context
    chosen = place.get("method")
    own = hashes(done, place)
    is_same = stamp_of(Path(tried.asked["increment"])) == done["stamp"] and head == done["head"]
    decisions = [d for d in place.get("signed") or [] if d["hashes"] == own]
    prospect = next((p for p in done["prospects"] if p["method"] == chosen), None)
    is_safe = prospect is not None and prospect["outcome"] in SAFE
    lacking = [text for key, text in ANSWERED.items() if not context["answered"].get(key)]
    is_signed = bool(decisions) and decisions[-1]["decision"] == sign_off.ACCEPT
    not_said = ", ".join(lacking)
    rows = [
        (gettext("The history holds, and the chain is whole"), head is not None, "", "#verdict"),
        (gettext("A method is chosen that keeps every promise"), is_safe, "", "#methods"),
        (gettext("Increment and ledger as they were tried"), is_same, "", "#try"),
        (gettext("Recipient, purpose, controls, review"), not lacking, not_said, "#answers"),
        (gettext("Signed off"), is_signed, "", "#sign"),
    ]
    return {
        **context,
        "method": chosen if prospect else None,
        "own": json.dumps(own, sort_keys=True),
        "decisions": decisions,
        "gate": [{"text": t, "is_met": met, "note": n, "href": h} for t, met, n, h in rows],
        "open": sum(1 for _, met, _, _ in rows if not met),
    }


def hashes(tried: Context, place: Context) -> Context:
    """What a sign-off is over: the increment, the ledger, the method, and for whom it is."""
    answers = sha256(json.dumps(place.get("answers") or {}, sort_keys=True))
    own = {"increment": tried["sha256"], "ledger": tried["head"]}
    return {**own, "method": place.get("method"), "answers": answers}


def answered(form: Form) -> Context:
    """The answers of a form; raises InputError."""
    found = {key: one(form, key) for key in ANSWERED if one(form, key)}
    if "review_by" in found:
        try:
            date.fromisoformat(found["review_by"])
        except ValueError:
            raise InputError("review: is not a date; write it as 2027-11-22") from None
    return found


def decision_of(form: Form, own: Context) -> Context:
    """A decision over these hashes; raises InputError."""
    entry = {part: one(form, part) for part in ("name", "role", "decision")}
    decided = sign_off.decision(entry, own)
    if one(form, "own") != json.dumps(own, sort_keys=True):
        raise InputError("sign-off: something was changed meanwhile; look at it again")
    return decided


# The routes: what is watched, and the forms of the next increment.


async def watch_screen(server: Server) -> Context:
    context = await frame(server, "watch", gettext("Watch"))
    return context | {"kinds": KINDS, "start": str(server.project.start)}


async def changed(server: Server, form: Form, number: str) -> str:
    """Tries an increment, chooses a method, answers, signs, or publishes: in this order."""
    folder, at, do = folder_of(server, number, "ledger"), int(number), one(form, "do")
    if do == "try":
        path = str(policy_text.within(one(form, "path"), server.project.start))
        server.start("what-if", one(form, "once"), folder=str(folder), increment=path)
    elif do == "method":
        chosen = one(form, "method")
        said = gettext("{name}: method {chosen}", name=folder.name, chosen=chosen)
        remember(server, at, said, method=chosen)
    elif do == "answers":
        found = answered(form)
        remember(server, at, gettext("{name}: answers", name=folder.name), answers=found)
    elif do in ("sign", "publish"):
        context = await ledger_screen(server, number, waits=True)
        tried = last_what_if(server, folder)
        if tried is None or tried.state != "done":
            raise InputError("increment: none was tried; try one first")
        place = server.project.places[at - 1]
        own = hashes(tried.result, place)
        if do == "sign":
            signed = [*(place.get("signed") or []), decision_of(form, own)]
            remember(server, at, gettext("{name}: a decision", name=folder.name), signed=signed)
        else:
            lacking = [row["text"] for row in context["gate"] if not row["is_met"]]
            if lacking or not context["gate"]:
                raise InputError("the gate is shut; nothing was published", lacking)
            asked = {"increment": tried.asked["increment"], "sha256": own["increment"]}
            asked |= {"folder": str(folder), "method": own["method"]}
            server.start("republish", one(form, "once"), **asked)
    else:
        raise policy_text.NotThere
    return f"/ledger/{at}"


ROUTES = [
    Route("/watch", shows(watch_screen)),
    Route("/watch", takes(add_watch), methods=["POST"]),
    Route("/stream/{number}", shows(stream_screen)),
    Route("/ledger/{number}", shows(ledger_screen)),
    Route("/ledger/{number}", takes(changed), methods=["POST"]),
]
