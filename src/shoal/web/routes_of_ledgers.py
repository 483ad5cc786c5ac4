"""A ledger's screen and the forms of its next increment."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import increments, policy_text, watch
from shoal.web.edits import one
from shoal.web.pages import page
from shoal.web.routes_of_edits import form_of


async def shown(request: Request) -> Response:
    context = await watch.ledger_screen(request.app.state.server, request.path_params["n"])
    return page(request, "ledger.html.j2", context)


async def changed(request: Request) -> Response:
    """Tries an increment, chooses a method, answers, signs, or publishes: in this order."""
    server, form, text = request.app.state.server, form_of(request), request.path_params["n"]
    folder = watch.folder_of(server, text, "ledger")
    number, do = int(text), one(form, "do")
    if do == "try":
        path = increments.increment_path(server, form)
        server.start("what-if", one(form, "once"), folder=str(folder), increment=path)
    elif do == "method":
        chosen = one(form, "method")
        increments.remember(server, number, f"{folder.name}: method {chosen}", method=chosen)
    elif do == "answers":
        found = increments.answered(form)
        increments.remember(server, number, f"{folder.name}: answers", answers=found)
    elif do in ("sign", "publish"):
        context = await watch.ledger_screen(server, text, waits=True)
        tried = increments.last_what_if(server, folder)
        if tried is None or tried.state != "done":
            raise InputError("increment: none was tried; try one first")
        own = increments.hashes(tried.result, increments.place_of(server, number))
        if do == "sign":
            signed = [*(increments.place_of(server, number).get("signed") or [])]
            signed.append(increments.decision_of(form, own))
            increments.remember(server, number, f"{folder.name}: a decision", signed=signed)
        else:
            increments.require_open(context)
            asked = {"increment": tried.asked["increment"], "sha256": own["increment"]}
            asked |= {"folder": str(folder), "method": own["method"]}
            server.start("republish", one(form, "once"), **asked)
    else:
        raise policy_text.NotThere
    return RedirectResponse(f"/ledger/{number}", 303)


ROUTES = [
    Route("/ledger/{n}", shown),
    Route("/ledger/{n}", changed, methods=["POST"]),
]
