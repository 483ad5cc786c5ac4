"""What forms change: the table, the policy, and the way back."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.data.language import gettext, ngettext
from shoal.errors import InputError
from shoal.web import policy_text, screens, work
from shoal.web.edits import Form, edited, lines_of, one, subject_of, whole, with_missing
from shoal.web.frame import FIELDS, frame, page
from shoal.web.policy_text import Context, has_comments, only_changes, read, touched_lines, written
from shoal.web.project import POLICY, PROJECT, Stale
from shoal.web.server import COMMENT, Server
from shoal.web.several import ALL_SHEETS

LINE_OF = "header of "
"""Begins the field of the line that names the columns of one of several sheets."""
SCREENS = ("open", "columns", "hierarchies", "promises", "compare", "result", "release", "history")


def form_of(request: Request) -> Form:
    return request.scope["state"]["form"]


def back(form: Form, otherwise: str) -> Response:
    """To the screen that the form was on."""
    place = one(form, "back")
    return RedirectResponse(f"/{place if place in SCREENS else otherwise}", 303)


async def table(request: Request) -> Response:
    """Opens a table below the start folder, or invents one."""
    server, form = request.app.state.server, form_of(request)
    if one(form, "sample"):
        await server.choose_table(await _invented(server), {})
        return RedirectResponse("/columns", 303)
    if one(form, "again"):
        path = server.project.table
        if path is None or not path.exists():
            raise InputError("table: it is not there any more; open another one")
        several = bool(server.project.about.get("several"))
        await server.choose_table(path, server.read_options, server.sample_of, several)
        return RedirectResponse("/open", 303)
    if one(form, "every"):
        asked = server.too_large
        if not asked:
            raise InputError("sample: no table is too large; open one first")
        await server.choose_table(Path(asked["path"]), asked["read"], asked["every"])
        return RedirectResponse("/columns", 303)
    named = one(form, "typed") or one(form, "path")
    if not named:
        raise InputError("table: none is chosen; mark a file or type its path")
    start, several = server.project.start, _is_several(form)
    path = policy_text.within(named, start, is_folder=several and (start / named).is_dir())
    if one(form, "look"):
        return await _looked_into(request, form, path)
    before = server.project.policy.get("missing_values") or []
    read = _read_of(server, form)
    try:
        await server.choose_table(path, read, several=several)
    except work.Refused as refused:
        return await _looked_into(request, form, path, refused)
    if server.too_large:
        return RedirectResponse("/open", 303)
    if "header" not in read:
        server.notices += screens.titled_lines(server)
    _set_missing(server, form, before)
    return RedirectResponse("/columns", 303)


async def _looked_into(
    request: Request, form: Form, path: Path, refused: work.Refused | None = None
) -> Response:
    """The form with what was chosen, how the table begins, and why it can't be opened."""
    server, named = request.app.state.server, one(form, "path")
    context = await screens.open_screen(server, str(Path(named).parent) if named else "")
    options = _read_of(server, form)
    asked, several = {"table": str(path), "read": options}, _is_several(form)
    more = {"several": True} if several else {}
    beginning = await server.desk.look("show_beginning", **asked, **more)
    if len(beginning["sheets"]) > 1 and not several:
        together = await server.desk.look("show_beginning", **asked, several=True)
        if "sheet" not in options:
            refused = None  # which sheet is asked, and all of them where they belong together
            several = bool(together.get("belong_together"))
        beginning = together if several else beginning | {"tables": together["tables"]}
    for place in (beginning, *beginning.get("tables", ())):
        place["trouble"] = [screens.without_shell(line) for line in place.get("trouble", ())]
    context |= {
        "chosen": named,
        "typed": one(form, "typed"),
        "beginning": beginning,
        "read": beginning["read"],
        "missing": one(form, "missing").splitlines(),
        "all_sheets": several,
    }
    if refused is not None:
        said = [screens.without_shell(line) for line in (refused.message, *refused.findings)]
        context["error"] = {"message": said[0], "findings": said[1:]}
    return page(request, context, 422 if refused else 200)


def _is_several(form: Form) -> bool:
    """Whether all sheets of a workbook, or files of a folder, are to be opened together."""
    is_all = one(form, "sheet") == ALL_SHEETS and not _is_other(form)
    return is_all or bool(one(form, "several"))


def _is_other(form: Form) -> bool:
    """Whether another table is marked than the one that was looked into."""
    return one(form, "looked") not in ("", one(form, "typed") or one(form, "path"))


def _read_of(server: Server, form: Form) -> Context:
    """How the form says that the table is written, and what the policy says and no form asks.

    The line of the headings and the sheet are those of the table that was looked into alone.
    """
    found = {name: value for name, value in server.read_options.items() if name not in FIELDS}
    asked = {*FIELDS} - {"header", "sheet"} if _is_other(form) else FIELDS
    found |= {name: form[name][-1] for name in asked if any(form.get(name, ()))}
    if found.get("sheet") == ALL_SHEETS:
        del found["sheet"]
    header: Any = whole(found.pop("header", ""), 2)
    if _is_several(form):
        asked_of = {key.removeprefix(LINE_OF): key for key in form if key.startswith(LINE_OF)}
        header = {name: whole(one(form, key), 1) or 1 for name, key in asked_of.items()} or None
    return found if header is None else found | {"header": header}


def _set_missing(server: Server, form: Form, before: list[str]) -> None:
    """Texts for no value, where somebody named some."""
    texts, policy = lines_of(form, "missing"), server.project.policy
    content = with_missing(policy, texts, before)
    if texts and content != policy:
        server.project.edit_policy(
            ngettext("{count} text means no value", "{count} texts mean no value", len(texts)),
            content,
            None,
        )


async def _invented(server: Server) -> Path:
    """1,000 invented patients, in the project: the one table that is written."""
    path: Path = server.project.folder / "patients.csv"
    if not path.exists():
        await server.desk.look("sample", table=str(path))
    return path


async def policy(request: Request) -> Response:
    """One edit of the policy, or 409 where it was made on another text than there is."""
    server, form = request.app.state.server, form_of(request)
    project = server.project
    kind, base = one(form, "edit"), one(form, "base")
    try:
        content, sentence = edited(kind, form, project.policy, project.columns)
        # raises Refused where this is not a policy, before anything is written
        await server.rules.look("policy", policy=content, base=str(project.folder))
        before = project.policy_text
        _save(server, kind, form, content, sentence, base)
        if has_comments(before) and written(content) != before:
            server.notices.append(COMMENT)
    except Stale:
        return await _conflict(request, kind, form, base)
    return back(form, "columns")


def _save(
    server: Server, kind: str, form: Form, content: Context, sentence: str, base: str
) -> None:
    """The policy, and who is one person where that was the question."""
    changes: dict[str, str | None] = {POLICY: written(content)}
    subject = " + ".join(subject_of(content))
    if kind == "person" or (kind == "role" and subject and one(form, "role") == "subject"):
        about = {**server.project.about, "person": subject or "rows"}
        changes[PROJECT] = written(about)
    server.project.edit(sentence, changes, base)


async def _conflict(request: Request, kind: str, form: Form, base: str) -> Response:
    server = request.app.state.server
    project = server.project
    before = project.text_at(base)
    theirs: list[tuple[str, str]] = []
    mine: list[tuple[str, str]] = []
    can_merge = False
    if before is not None:
        theirs = only_changes(before, project.policy_text)
        with suppress(InputError):
            after = written(edited(kind, form, read(before), project.columns)[0])
            plain = written(read(before))
            mine = only_changes(plain, after)
            own = touched_lines(plain, after)
            others = touched_lines(plain, written(project.policy))
            can_merge = not own & others
    kept = [(n, v) for n, values in form.items() if n not in ("key", "base") for v in values]
    context = {
        **await frame(server, "conflict", gettext("Changed elsewhere")),
        "theirs": theirs,
        "mine": mine,
        "can_merge": can_merge and kind != "text",
        "fields": kept,
        "back": one(form, "back") if one(form, "back") in SCREENS else "columns",
    }
    return page(request, context, 409)


async def undo(request: Request) -> Response:
    """Back one edit, or to an entry of the history."""
    server, form = request.app.state.server, form_of(request)
    to = whole(one(form, "to"))
    if one(form, "to") and to is None:
        raise policy_text.NotThere
    if one(form, "base") != server.project.policy_sha:
        return await _conflict(request, "text", {**form, "text": [""]}, one(form, "base"))
    undone = server.project.undo(to) or gettext("nothing is left to undo")
    server.notices.append(f"{undone[:1].upper()}{undone[1:]}.")
    server.desk.forget()
    return back(form, "columns")


ROUTES = [
    Route("/table", table, methods=["POST"]),
    Route("/policy", policy, methods=["POST"]),
    Route("/undo", undo, methods=["POST"]),
]
