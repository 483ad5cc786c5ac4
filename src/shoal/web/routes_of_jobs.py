"""What forms start: drafts and other long work, and looks at single rows."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import pictures, policy_text, sign_off
from shoal.web.edits import Form, column_of, edited, one, with_role
from shoal.web.frame import frame
from shoal.web.pages import page
from shoal.web.pictures import asked_ks, comparison_key, rows_now
from shoal.web.policy_text import read, sha256, written
from shoal.web.result import result_screen
from shoal.web.routes_of_edits import back, form_of
from shoal.web.server import Server

ROWS_OF_DRAFT = 10
PLACES = {"compare": "/compare", "verify": "/check"}  # where somebody stands who cancels
EXPOSED, DISTORTED, ANY = "most-exposed", "most-distorted", "any"


async def jobs(request: Request) -> Response:
    """Starts something long; a form that is sent twice starts it once."""
    server, form = request.app.state.server, form_of(request)
    if one(form, "kind") in OTHERS:
        return await OTHERS[one(form, "kind")](server, form)
    if one(form, "kind") != "draft":
        raise InputError("job: there is none of this name; load the page again")
    job = server.was_sent(one(form, "once"))
    if job is None:
        text = server.project.policy_text  # once: an editor may write it at any moment
        if one(form, "base") != sha256(text):
            server.notices.append("The policy was changed elsewhere; look at it before a draft.")
            return back(form, "promises")
        server.project.notice_hand_edits()
        job = server.start_draft(one(form, "once"), read(text), text)
    return RedirectResponse(f"/result/{job.asked['run']}", 303)


async def _priced(server: Server, form: Form) -> Response:
    """Measures what each column of a draft costs the others."""
    run = server.project.run(one(form, "run"))
    if "table" in server.stale_parts(run):
        raise InputError("draft: was made of another table; make a new one first")
    asked = {"table": str(server.project.table), **server.asked_of(run)}
    server.start("marginal", one(form, "once"), run=run.name, **asked)
    return RedirectResponse(f"/result/{run.name}", 303)


async def _tried(server: Server, form: Form) -> Response:
    """A draft under one change of an earlier draft's policy, which stays as it is."""
    run = server.project.run(one(form, "run"))
    policy = read(policy_text.text_of(run.folder / "policy.yaml") or "")
    tried: dict[str, int | str]
    if one(form, "k") and not one(form, "method"):
        changed, _ = edited("k", form, policy, ())
        why = f"tried with k = {one(form, 'k')}"
        tried = {"k": one(form, "k")}
    elif one(form, "method"):
        changed, said = edited("method", form, policy, ())
        why = f"tried with {said}"
        tried = {"method": one(form, "method")}
    else:
        columns = server.project.about.get("columns") or []
        name = column_of(form, columns)
        changed = with_role(policy, name, "drop")
        why, tried = f"tried without {name}", {"column": columns.index(name) + 1}
    job = server.start_draft(one(form, "once"), changed, written(changed), why, tried)
    return RedirectResponse(f"/result/{job.asked['run']}", 303)


async def _compared(server: Server, form: Form) -> Response:
    """Measures what is not measured yet of methods and values of k."""
    if server.table_key() is None:
        raise InputError("table: none is open; open one first")
    server.require_whole()
    if server.was_sent(one(form, "once")) is None:
        skip = [[row["label"], row["k"]] for row in rows_now(server)]
        policy = server.project.policy
        taken = sign_off.take_aside(server.project, secrets.token_hex(4))
        server.start(
            "compare",
            one(form, "once"),
            about=comparison_key(server),
            table=str(server.project.table),
            policy=policy,
            base=sign_off.base_of(server.project, policy, taken),
            taken=str(taken),
            ks=asked_ks(server),
            skip=skip,
        )
    return RedirectResponse("/compare", 303)


OTHERS: dict[str, Callable[[Server, Form], Awaitable[Response]]] = {
    "marginal": _priced,
    "try": _tried,
    "compare": _compared,
}


async def cancel(request: Request) -> Response:
    server = request.app.state.server
    job = server.jobs.find(request.path_params["id"])
    if job is None:
        raise policy_text.NotThere
    await server.jobs.cancel(job)
    return RedirectResponse(PLACES.get(job.kind, "/result"), 303)


async def rows(request: Request) -> Response:
    """Cells, which no address holds: the one answer to a form that is a page."""
    server, form = request.app.state.server, form_of(request)
    key = server.table_key()
    if key is None:
        raise InputError("table: none is open; open one first")
    first = int(one(form, "first")) if one(form, "first").isdecimal() else 0
    if one(form, "run"):
        run = server.project.run(one(form, "run"))
        listed = list(range(first, first + ROWS_OF_DRAFT))
        cells = await server.desk.look(
            "show_draft",
            **key,
            policy=read(policy_text.text_of(run.folder / "policy.yaml") or ""),
            draft=str(run.folder / "data.csv"),
            rows=listed,
            is_starred=bool(one(form, "starred")),
        )
        context = await result_screen(server, run.name, {**cells, "first": first})
        return page(request, "result.html.j2", context)
    cells = await server.desk.look("show_rows", **key, read=server.read_options, first=first)
    context = {**await frame(server, "rows"), "title": "Rows", "cells": cells}
    return page(request, "rows.html.j2", context)


async def attacker(request: Request) -> Response:
    """What an attacker would see of one row, on a page of its own."""
    server, form = request.app.state.server, form_of(request)
    key, run = server.table_key(), server.project.run(one(form, "run"))
    if key is None or "table" in server.stale_parts(run):
        raise InputError("draft: was made of another table; make a new one first")
    asked = one(form, "which") or one(form, "row")
    row: int | str = asked if asked in (EXPOSED, DISTORTED) else _row(asked, one(form, "step"))
    if asked == ANY:
        row = secrets.randbelow(int(server.project.about.get("rows") or 1)) + 1
    view = await server.desk.look(
        "show_attacker",
        **key,
        **server.asked_of(run),
        draft=str(run.folder / "data.csv"),
        row=row,
    )
    context = await result_screen(server, run.name)
    fish = pictures.school(int(view["people"]), 300, 84)
    context |= {"view": view, "view_fish": fish}
    return page(request, "result.html.j2", context)


async def elsewhere(request: Request) -> Response:
    """Where somebody is led who asks for a page that only a form gets, as by a reload."""
    return RedirectResponse("/result" if request.url.path == "/attacker" else "/columns", 303)


def _row(text: str, step: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise InputError("row: is not a number; give one of the table's")
    return max(1, int(text) + {"1": 1, "-1": -1}.get(step, 0))


ROUTES = [
    Route("/jobs", jobs, methods=["POST"]),
    Route("/jobs/{id}/cancel", cancel, methods=["POST"]),
    Route("/attacker", attacker, methods=["POST"]),
    Route("/rows", rows, methods=["POST"]),
    Route("/attacker", elsewhere),
    Route("/rows", elsewhere),
]
