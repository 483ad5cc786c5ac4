"""The gate's forms: answers, attacks, signatures, and the release itself."""

from __future__ import annotations

import json
import secrets
from datetime import date, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.data.findings import some_named
from shoal.errors import InputError
from shoal.web import policy_text
from shoal.web.edits import Form, lines_of, one
from shoal.web.frame import frame, page, person_answered, shell
from shoal.web.job import COPIES
from shoal.web.policy_text import sha256, written
from shoal.web.project import RELEASE, Run
from shoal.web.routes_of_edits import form_of
from shoal.web.server import Server
from shoal.web.sign_off import (
    ACCEPT,
    ATTACKS,
    REJECT,
    SIGNED,
    context_of,
    decisions,
    digest,
    hashes,
    is_accepted,
    sign_offs,
    signed,
)


async def shown(request: Request) -> Response:
    return page(request, "release.html.j2", await release_screen(request.app.state.server))


async def release(request: Request) -> Response:
    """Answers for release.yaml, attacks, or the release."""
    server, form = request.app.state.server, form_of(request)
    run = _draft(server, form)
    do = one(form, "do")
    if do == "answers":
        content, sentence = with_answers(form, context_of(server.project), published(run))
        if sha256(written(content)) != release_sha(server):
            _unchanged(server, form)
        server.project.edit(sentence, {RELEASE: written(content)}, None)
    elif do == "ask":
        asker = " ".join(one(form, "asker").split())
        said = "somebody else must sign" if asker else "whoever made the draft may sign"
        server.remember(said, asked_by=asker or None)
    elif do == "attack":
        server.start("attack", one(form, "once"), **_asked(server, run))
    elif do == "release":
        _require_open(server, run)
        draft = server.project.folder / "releases" / f".{secrets.token_hex(6)}.draft"
        server.start(
            "release",
            one(form, "once"),
            **_asked(server, run),
            draft=str(draft),
            context=json.loads(json.dumps(_decided(server, run), default=str)),
            copies=[copy.name for copy in COPIES if copy.name in form.get("copy", ())],
        )
    else:
        raise InputError("release: there is no such form; load the page again")
    return RedirectResponse("/release", 303)


def _draft(server: Server, form: Form) -> Run:
    run = server.last_draft()
    if run is None or run.name != one(form, "run"):
        raise InputError("draft: there is a newer one; look at the gate again")
    return run


def _unchanged(server: Server, form: Form) -> None:
    if one(form, "release_base") != release_sha(server):
        raise InputError("release.yaml was changed elsewhere; look at it, and decide again")


def _asked(server: Server, run: Run) -> dict[str, Any]:
    return {
        "run": run.name,
        "folder": str(run.folder),
        "table": str(server.project.table),
        **server.asked_of(run),
    }


def _decided(server: Server, run: Run) -> dict[str, Any]:
    """The answers, and the decisions over them and this draft; none of an earlier draft."""
    own = sign_offs(decisions(server.project, run))
    return {**context_of(server.project), "sign_off": own}


def _require_open(server: Server, run: Run) -> None:
    """Raises InputError while a condition is open."""
    lacking = [one for one in gate(server, run) if not one["is_met"]]
    if lacking:
        said = [f"{one['text']}{': ' + one['note'] if one['note'] else ''}" for one in lacking]
        raise InputError("the gate is shut; nothing was released", said)


async def sign(request: Request) -> Response:
    """A decision over the hashes of a draft; a refusal is kept like an approval."""
    server, form = request.app.state.server, form_of(request)
    run = _draft(server, form)
    _unchanged(server, form)
    decision, name = one(form, "decision"), one(form, "name")
    if decision not in (ACCEPT, REJECT) or not name:
        raise InputError("sign: needs a name and a decision")
    own = hashes(server.project, run)
    if one(form, "shown") != digest(own):
        raise InputError("sign: the draft is not the one that was shown; look at it again")
    entry = {"name": name, "role": one(form, "role") or None, "decision": decision}
    entry["comment"] = one(form, "comment") or None
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    kept = [*signed(run), {**entry, "at": when, "hashes": own}]
    policy_text.write(run.folder / SIGNED, json.dumps(kept, indent=1))
    word = "accepted" if decision == ACCEPT else "refused"
    text = written(_decided(server, run))
    server.project.edit(f"draft {run.number} {word}", {RELEASE: text}, None)
    return RedirectResponse("/release", 303)


ROUTES = [
    Route("/release", shown),
    Route("/release", release, methods=["POST"]),
    Route("/sign", sign, methods=["POST"]),
]


# Release: the gate, whose open points are links, the sign-off, and what moves out.


Context = dict[str, Any]
KINDS = {"public": "Open to everybody", "restricted": "By contract", "enclave": "In a safe room"}
DONE = {
    "interval": "ranges",
    "span": "ranges in their order",
    "node": "groups of its hierarchy",
    "value-or-nothing": "whole or *",
    "as-is": "as it is",
    "mean": "means",
    "mean-and-interval": "means and ranges",
    "pseudonym": "a pseudonym",
}


def attacks_of(run: Run) -> list[str] | None:
    """What attacks found, in lines; None where none was tried."""
    found: Context = policy_text.json_of(run.folder / ATTACKS, {})
    return [str(line) for line in found["lines"]] if found else None


def gate(server: Server, run: Run) -> list[Context]:
    """Every condition of a release: whether it is met, what it says, where to settle it."""
    stated, given = run.certificate, context_of(server.project)
    own = hashes(server.project, run)
    is_measured = stated.get("output", {}).get("sha256") == own["data"]
    holds = is_measured and all(promise["holds"] for promise in stated["promises"])
    stale = server.stale_parts(run)
    lacking = [name for name in published(run) if not _why(given, name)]
    who = (given.get("recipient") or {}).get("who")
    controls = (given.get("controls") or {}).get("agreement")
    open_fields = [
        name
        for name, value in (
            ("recipient", who),
            ("purpose", given.get("purpose")),
            ("controls", controls),
            ("review date", given.get("review_by")),
        )
        if not value
    ]
    accepted = is_accepted(server.project, run)
    asker = server.project.about.get("asked_by")
    changed = f"{', '.join(stale)} changed" if stale else ""
    tried = attacks_of(run)
    rows = [
        ("Every promise holds on the file", holds, f"draft {run.number}", "/result"),
        ("Table, policy and hierarchies unchanged since", not stale, changed, "/result"),
        ("Who is one person is answered", person_answered(server), "", "/columns"),
        ("Attacks tried", tried is not None, "" if tried is not None else "not yet", "#attacks"),
        ("Recipient, purpose, controls, review", not open_fields, ", ".join(open_fields), "#who"),
        ("A reason for every column", not lacking, some_named(lacking), "#why"),
        ("Other releases of these people", bool(given.get("other_releases")), "", "#other"),
        (
            "Signed by somebody else" if asker else "Signed",
            accepted,
            "" if accepted else _not_accepted(server, run),
            "#sign",
        ),
    ]
    return [
        {"text": text, "is_met": met, "note": note, "href": href} for text, met, note, href in rows
    ]


def _not_accepted(server: Server, run: Run) -> str:
    found = decisions(server.project, run)
    if found:
        return "refused" if found[-1]["decision"] == REJECT else "by who asked for it"
    return "something has changed since; sign again" if signed(run) else "not yet"


def published(run: Run) -> list[str]:
    """The columns that readers get, those included that the policy leaves to `other: plain`."""
    shown = ("quasi", "sensitive", "plain")
    return [
        column["name"]
        for column in run.certificate.get("columns") or ()
        if column["role"] in shown
        and column["technique"] != "removed"
        and not column["derived_from"]
    ]


def _why(given: Context, name: str) -> str:
    return str(((given.get("attributes") or {}).get(name) or {}).get("why") or "")


async def release_screen(server: Server) -> Context:
    """The last draft at the gate."""
    run = server.last_draft()
    data = f"runs/{run.name}/data.csv" if run else "draft.csv"
    certificate = f"runs/{run.name}/certificate.json" if run else ""
    words = ["shoal", "dossier", data, certificate, "--context", RELEASE, "-o", "dossier.html"]
    folder = server.project.folder / "releases"
    context = {
        **await frame(server, "release"),
        "title": "Release",
        "run": run,
        "command": shell([word for word in words if word]),
        "once": server.new_once(),
        "releases": sorted((p.name for p in folder.glob("2*") if p.is_dir()), reverse=True),
        "folder": folder,
        "copies": COPIES,
        "release_text": policy_text.text_of(server.project.folder / RELEASE) or "version: 1\n",
        "release_base": release_sha(server),
    }
    if run is None:
        return context
    given, conditions = context_of(server.project), gate(server, run)
    own = hashes(server.project, run)
    columns = {c["name"]: c for c in run.certificate.get("columns") or ()}
    return {
        **context,
        "given": given,
        "gate": conditions,
        "met": sum(1 for condition in conditions if condition["is_met"]),
        "open": sum(1 for condition in conditions if not condition["is_met"]),
        "kinds": KINDS,
        "columns": [
            {
                "name": name,
                "why": _why(given, name),
                "done": DONE.get(str((columns.get(name) or {}).get("technique")), "as it is"),
                "number": number,
            }
            for number, name in enumerate(published(run), 1)
        ],
        "attacks": attacks_of(run),
        "decisions": signed(run),
        "asked_by": server.project.about.get("asked_by"),
        "own_hashes": own,
        "shown": digest(own),
        "today": date.today().isoformat(),
    }


def release_sha(server: Server) -> str:
    return sha256(policy_text.text_of(server.project.folder / RELEASE) or "")


def with_answers(form: Form, given: Context, names: list[str]) -> tuple[Context, str]:
    """release.yaml with what a form says; only what it has fields for. Raises InputError."""
    content, said = dict(given), []
    review = one(form, "review_by")
    with_date: Any = None
    if review:
        try:
            with_date = date.fromisoformat(review)
        except ValueError:
            raise InputError("review: is not a date; write it as 2027-11-22") from None
    other = one(form, "other")
    others = "none-known" if other == "none" else lines_of(form, "others") if other else None
    if others == []:
        raise InputError("other releases: none is named; name their certificates, one a line")
    changes = {
        "recipient": {
            **(given.get("recipient") or {}),
            "who": one(form, "who") or None,
            "kind": one(form, "kind") if one(form, "kind") in KINDS else None,
        },
        "purpose": one(form, "purpose") or None,
        "controls": {
            **(given.get("controls") or {}),
            "agreement": one(form, "controls") or None,
        },
        "review_by": with_date,
        "other_releases": others,
    }
    for key, value in changes.items():
        if content.get(key) != value and (value or content.get(key)):
            content[key] = value
            said.append(key.replace("_", " "))
    reasons = dict(given.get("attributes") or {})
    for number, name in enumerate(names, 1):
        why = one(form, f"why-{number}")
        if f"why-{number}" in form and why != _why(given, name):
            reasons[name] = {**(reasons.get(name) or {}), "why": why or None}
            said.append(f"a reason for {name}")
    if reasons:
        content["attributes"] = reasons
    return content, "release: " + (", ".join(said) or "nothing new")
