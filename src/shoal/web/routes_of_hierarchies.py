"""The screen of hierarchies and what its forms change."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.errors import InputError
from shoal.web import folder as files
from shoal.web.edits import edited, one
from shoal.web.hierarchies import hierarchies_screen, own_file, tree_edit
from shoal.web.pages import page
from shoal.web.policy_text import written
from shoal.web.project import POLICY, Stale
from shoal.web.routes_of_edits import form_of
from shoal.web.server import Server


async def shown(request: Request) -> Response:
    number, asked = request.path_params.get("n", ""), request.query_params
    context = await hierarchies_screen(
        request.app.state.server,
        _whole(number),
        asked.get("f", ""),
        {"p": _whole(asked.get("p", "")) or 1, "at": _whole(asked.get("at", ""))},
    )
    return page(request, "hierarchies.html.j2", context)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


async def changed(request: Request) -> Response:
    """One edit of a column's hierarchy: a maker, a file, or a node of its tree."""
    server, form = request.app.state.server, form_of(request)
    project, text = server.project, request.path_params["n"]
    names = project.about.get("columns") or []
    if not text.isdecimal() or not 1 <= int(text) <= len(names):
        raise files.NotThere
    number = int(text)
    name = names[number - 1]
    if one(form, "do") == "find":  # a value, which no address holds
        context = await hierarchies_screen(server, number, "", {"find": one(form, "find")})
        return page(request, "hierarchies.html.j2", context)
    if one(form, "base") != project.policy_sha:
        raise InputError("the policy was changed elsewhere; look at it, and decide again")
    kind = one(form, "do")
    if kind == "how":
        policy, sentence = edited("how", {**form, "column": [text]}, project.policy, names)
        await server.rules.look("policy", policy=policy, base=str(project.folder))
        changes: dict[str, str | None] = {POLICY: written(policy)}
    elif kind == "use":
        place = files.within(one(form, "file"), project.start)
        await server.rules.look("edit_tree", file=str(place), edits=[])  # whether it is one at all
        content = files.text_of(place)
        changes = _with_table(server, name, number, content or "")
        sentence = f"{name}: hierarchy from a file"
    elif kind == "no_value":
        policy = dict(project.policy)
        known = policy.get("missing_values") or [""]
        policy["missing_values"] = list(dict.fromkeys([*known, one(form, "value")]))
        changes, sentence = {POLICY: written(policy)}, f"{name}: a text means no value"
    else:
        edits, said = tree_edit(form)
        path = project.folder / str(project.policy["attributes"][name].get("hierarchy"))
        rare = {"table": str(project.table), "policy": project.policy, "attribute": name}
        found = await server.desk.look(
            "edit_tree", file=str(path), edits=edits, rare=rare, every=server.sample_of or 1
        )
        changes, sentence = _with_table(server, name, number, found["text"]), f"{name}: {said}"
    try:
        project.edit(sentence, changes, one(form, "base"))
    except Stale:
        raise InputError("the policy was changed elsewhere; load the page again") from None
    return RedirectResponse(f"/hierarchies/{number}", 303)


def _with_table(server: Server, name: str, number: int, text: str) -> dict[str, str | None]:
    """A table in the project, and the policy that names it; the file that it came from stays."""
    file = own_file(name, number)
    policy: dict[str, Any] = dict(server.project.policy)
    settings = dict(policy["attributes"][name])
    for key in ("type", "domain", "order", "render", "round"):
        settings.pop(key, None)
    settings["hierarchy"] = file
    policy["attributes"] = {**policy["attributes"], name: settings}
    return {file: text, POLICY: written(policy)}


ROUTES = [
    Route("/hierarchies", shown),
    Route("/hierarchies/{n}", shown),
    Route("/hierarchies/{n}", changed, methods=["POST"]),
]
