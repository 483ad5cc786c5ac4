"""The gate's forms: answers, attacks, signatures, and the release itself."""

from __future__ import annotations

import json
import secrets
from datetime import date, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import folder as files
from shoal.web.edits import Form, one
from shoal.web.pages import page
from shoal.web.policy_text import read, written
from shoal.web.project import RELEASE, Run
from shoal.web.release import (
    context_of,
    gate,
    hashes,
    published,
    release_screen,
    release_sha,
    signed,
    with_answers,
)
from shoal.web.routes_of_edits import form_of
from shoal.web.server import Server

DECISIONS = ("accept", "reject")


async def shown(request: Request) -> Response:
    return page(request, "release.html.j2", await release_screen(request.app.state.server))


async def release(request: Request) -> Response:
    """Answers for release.yaml, attacks, or the release."""
    server, form = request.app.state.server, form_of(request)
    run = _draft(server, form)
    do = one(form, "do")
    if do == "answers":
        _unchanged(server, form)
        content, sentence = with_answers(form, context_of(server), published(run))
        server.project.edit(sentence, {RELEASE: written(content)}, None)
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
            context=json.loads(json.dumps(context_of(server), default=str)),
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
        "policy": read(files.text_of(run.folder / "policy.yaml") or ""),
        "base": str(server.project.folder),
    }


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
    decision, name, role = one(form, "decision"), one(form, "name"), one(form, "role")
    if decision not in DECISIONS or not name:
        raise InputError("sign: needs a name and a decision")
    if one(form, "data") != hashes(server, run)["data"]:
        raise InputError("sign: the draft is not the one that was shown; look at it again")
    own = {"name": name, "role": role or None, "decision": decision}
    own["comment"] = one(form, "comment") or None
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    decisions = [*signed(run), {**own, "at": when, "hashes": hashes(server, run)}]
    files.write(run.folder / "signed.json", json.dumps(decisions, indent=1))
    content = context_of(server)
    entry = {**own, "date": date.today()}
    content = {**content, "sign_off": [*(content.get("sign_off") or []), entry]}
    word = "accepted" if decision == "accept" else "refused"
    server.project.edit(f"draft {run.number} {word}", {RELEASE: written(content)}, None)
    return RedirectResponse("/release", 303)


ROUTES = [
    Route("/release", shown),
    Route("/release", release, methods=["POST"]),
    Route("/sign", sign, methods=["POST"]),
]
