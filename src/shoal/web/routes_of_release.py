"""The gate's forms: answers, attacks, signatures, and the release itself."""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import folder as files
from shoal.web.edits import Form, one
from shoal.web.pages import page
from shoal.web.policy_text import written
from shoal.web.project import RELEASE, Run
from shoal.web.release import gate, published, release_screen, release_sha, with_answers
from shoal.web.routes_of_edits import form_of
from shoal.web.server import Server
from shoal.web.sign_off import (
    ACCEPT,
    REJECT,
    SIGNED,
    context_of,
    decisions,
    digest,
    hashes,
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
        _unchanged(server, form)
        content, sentence = with_answers(form, context_of(server.project), published(run))
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
    files.write(run.folder / SIGNED, json.dumps(kept, indent=1))
    word = "accepted" if decision == ACCEPT else "refused"
    text = written(_decided(server, run))
    server.project.edit(f"draft {run.number} {word}", {RELEASE: text}, None)
    return RedirectResponse("/release", 303)


ROUTES = [
    Route("/release", shown),
    Route("/release", release, methods=["POST"]),
    Route("/sign", sign, methods=["POST"]),
]
