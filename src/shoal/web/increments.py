"""The next increment of a ledger: what each method would do with it, and the gate before it."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.web import policy_text
from shoal.web.edits import Form, one
from shoal.web.policy_text import sha256
from shoal.web.server import Server
from shoal.web.work import Job

Context = dict[str, Any]
SAFE = ("published", "waits")  # outcomes that may be chosen
ANSWERED = {
    "who": "Recipient",
    "purpose": "Purpose",
    "controls": "Controls at the recipient",
    "review_by": "Look at it again by",
}
DECISIONS = ("accept", "reject")


def place_of(server: Server, number: int) -> Context:
    """What the project keeps of a watched ledger: its path, answers and decisions."""
    found: Context = (server.project.about.get("places") or [])[number - 1]
    return found


def remember(server: Server, number: int, sentence: str, **answers: Any) -> None:
    """Keeps answers about a ledger in project.yaml."""
    places = [dict(place) for place in server.project.about.get("places") or []]
    places[number - 1] |= answers
    server.remember(sentence, places=places)


def last_what_if(server: Server, folder: Path) -> Job | None:
    """The last job that tried each method with an increment of a ledger."""
    found = server.jobs.last("what-if")
    return found if found is not None and found.asked["folder"] == str(folder) else None


def increment_context(server: Server, number: int, folder: Path, head: str | None) -> Context:
    """What was tried with the next increment, and the conditions of its release."""
    place, tried = place_of(server, number), last_what_if(server, folder)
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
    is_same = _sha_now(tried.asked["increment"], done) and head == done["head"]
    decisions = [d for d in place.get("signed") or [] if d["hashes"] == own]
    prospect = next((p for p in done["prospects"] if p["method"] == chosen), None)
    lacking = [text for key, text in ANSWERED.items() if not context["answered"].get(key)]
    rows = [
        ("The history holds, and the chain is whole", head is not None, "", "#verdict"),
        ("A method is chosen that keeps every promise", _is_safe(prospect), "", "#methods"),
        ("Increment and ledger as they were tried", is_same, "", "#try"),
        ("Recipient, purpose, controls, review", not lacking, ", ".join(lacking), "#answers"),
        ("Signed", bool(decisions) and decisions[-1]["decision"] == "accept", "", "#sign"),
    ]
    return {
        **context,
        "method": chosen if prospect else None,
        "own": json.dumps(own, sort_keys=True),
        "decisions": decisions,
        "gate": [{"text": t, "is_met": met, "note": n, "href": h} for t, met, n, h in rows],
        "open": sum(1 for _, met, _, _ in rows if not met),
    }


def _is_safe(prospect: Context | None) -> bool:
    return prospect is not None and prospect["outcome"] in SAFE


def hashes(tried: Context, place: Context) -> Context:
    """What a signature is over: the increment, the ledger, the method, and for whom it is."""
    answers = sha256(json.dumps(place.get("answers") or {}, sort_keys=True))
    return {
        "increment": tried["sha256"],
        "ledger": tried["head"],
        "method": place.get("method"),
        "answers": answers,
    }


def _sha_now(path: str, tried: Context) -> bool:
    """Whether the increment's file is as it was when it was tried."""
    with suppress(OSError):
        stat = Path(path).stat()
        return [stat.st_mtime_ns, stat.st_size] == tried["stamp"]
    return False


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
    decision, name = one(form, "decision"), one(form, "name")
    if decision not in DECISIONS or not name:
        raise InputError("sign: needs a name and a decision")
    if one(form, "own") != json.dumps(own, sort_keys=True):
        raise InputError("sign: something was changed meanwhile; look at it again")
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    role = one(form, "role")
    return {"name": name, "role": role, "decision": decision, "at": when, "hashes": own}


def require_open(context: Context) -> None:
    """Raises InputError while a condition is open."""
    lacking = [row["text"] for row in context["gate"] if not row["is_met"]]
    if lacking or not context["gate"]:
        raise InputError("the gate is shut; nothing was published", lacking)


def increment_path(server: Server, form: Form) -> str:
    """The file that a form names, below the start folder."""
    return str(policy_text.within(one(form, "path"), server.project.start))
