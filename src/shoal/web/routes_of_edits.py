"""What forms change: the table, the policy, its hierarchies, and the way back."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.routing import Route

from shoal.data.language import gettext, ngettext
from shoal.errors import InputError
from shoal.web import policy_text, screens
from shoal.web.edits import Form, edited, lines_of, one, subject_of, whole, with_missing
from shoal.web.frame import FIELDS, frame, looked_now, shows, takes
from shoal.web.policy_text import Context, has_comments, only_changes, read, touched_lines, written
from shoal.web.project import POLICY, PROJECT, Project, Stale
from shoal.web.server import COMMENT, Server
from shoal.web.several import ALL_SHEETS, flat, folded
from shoal.web.work import Refused

LINE_OF = "header of "
"""Begins the field of the line that names the columns of one of several sheets."""
SCREENS = ("open", "columns", "hierarchies", "promises", "compare", "result", "release", "history")


def back(form: Form, otherwise: str) -> str:
    """Where the screen is that the form was on."""
    place = one(form, "back")
    return f"/{place if place in SCREENS else otherwise}"


async def table(server: Server, form: Form) -> str | Context:
    """Opens a table below the start folder, or invents one."""
    if one(form, "sample"):
        await server.choose_table(await _invented(server), {})
        return "/columns"
    if one(form, "again"):
        path = server.project.table
        if path is None or not path.exists():
            raise InputError("table: it is not there any more; open another one")
        several = bool(server.project.about.get("several"))
        await server.choose_table(path, server.read_options, server.sample_of, several)
        return "/open"
    if one(form, "every"):
        asked = server.too_large
        if not asked:
            raise InputError("sample: no table is too large; open one first")
        await server.choose_table(Path(asked["path"]), asked["read"], asked["every"])
        return "/columns"
    named = one(form, "typed") or one(form, "path")
    if not named:
        raise InputError("table: none is chosen; mark a file or type its path")
    start, several = server.project.start, _is_several(form)
    path = policy_text.within(named, start, is_folder=several and (start / named).is_dir())
    if one(form, "look"):
        return await _looked_into(server, form, path)
    before = server.project.policy.get("missing_values") or []
    read = _read_of(server, form)
    try:
        await server.choose_table(path, read, several=several)
    except Refused as refused:
        return await _looked_into(server, form, path, refused)
    if server.too_large:
        return "/open"
    if "header" not in read:
        server.notices += screens.titled_lines(server)
    _set_missing(server, form, before)
    return "/columns"


async def _looked_into(
    server: Server, form: Form, path: Path, refused: Refused | None = None
) -> Context:
    """The form with what was chosen, how the table begins, and why it can't be opened."""
    named = one(form, "path")
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
        context |= {"error": {"message": said[0], "findings": said[1:]}, "http_status": 422}
    return context


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
        said = ngettext("{count} text means no value", "{count} texts mean no value", len(texts))
        server.project.edit_policy(said, content, None)


async def _invented(server: Server) -> Path:
    """1,000 invented patients, in the project: the one table that is written."""
    path: Path = server.project.folder / "patients.csv"
    if not path.exists():
        await server.desk.look("sample", table=str(path))
    return path


async def policy(server: Server, form: Form) -> str | Context:
    """One edit of the policy, or 409 where it was made on another text than there is."""
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
        return await _conflict(server, kind, form, base)
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


async def _conflict(server: Server, kind: str, form: Form, base: str) -> Context:
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
    return {
        **await frame(server, "conflict", gettext("Changed elsewhere")),
        "theirs": theirs,
        "mine": mine,
        "can_merge": can_merge and kind != "text",
        "fields": kept,
        "back": one(form, "back") if one(form, "back") in SCREENS else "columns",
        "http_status": 409,
    }


async def undo(server: Server, form: Form) -> str | Context:
    """Back one edit, or to an entry of the history."""
    to = whole(one(form, "to"))
    if one(form, "to") and to is None:
        raise policy_text.NotThere
    if one(form, "base") != server.project.policy_sha:
        return await _conflict(server, "text", {**form, "text": [""]}, one(form, "base"))
    undone = server.project.undo(to) or gettext("nothing is left to undo")
    server.notices.append(f"{undone[:1].upper()}{undone[1:]}.")
    server.desk.forget()
    return back(form, "columns")


# Hierarchies: how each column is made coarser, its gaps, and edits of its tree.


async def shown(server: Server, folder: str, page: str, at: str, n: str = "") -> Context:
    part = {"p": whole(page) or 1, "at": whole(at)}
    return await hierarchies_screen(server, whole(n), folder, part)


async def changed(server: Server, form: Form, n: str) -> str | Context:
    """One edit of a column's hierarchy: a maker, a file, or a node of its tree."""
    project, number = server.project, whole(n, 1)
    names = project.columns
    if number is None or number > len(names):
        raise policy_text.NotThere
    name = names[number - 1]
    if one(form, "do") == "find":  # a value, which no address holds
        return await hierarchies_screen(server, number, "", {"find": one(form, "find")})
    kind = one(form, "do")
    if kind == "how":
        policy, sentence = edited("how", {**form, "column": [n]}, project.policy, names)
        await server.rules.look("policy", policy=policy, base=str(project.folder))
        await _require_fit(server, name, policy)
        changes: dict[str, str | None] = {POLICY: written(policy)}
    elif kind == "groups":
        found = await server.desk.look(
            "tree_text", **_asked(server, project.policy), attribute=name
        )
        changes = _with_table(server, name, number, found["text"])
        sentence = gettext("{name}: groups of its values", name=name)
    elif kind == "use":
        place = policy_text.within(one(form, "file"), project.start)
        await server.rules.look("edit_tree", file=str(place), edits=[])  # whether it is one at all
        changes = _with_table(server, name, number, policy_text.text_of(place) or "")
        sentence = gettext("{name}: hierarchy from a file", name=name)
    elif kind == "no_value":
        policy = dict(project.policy)
        known = policy.get("missing_values") or [""]
        policy["missing_values"] = list(dict.fromkeys([*known, one(form, "value")]))
        changes = {POLICY: written(policy)}
        sentence = gettext("{name}: a text means no value", name=name)
    else:
        edits, said = tree_edit(form)
        path = project.folder / str(project.attributes[name].get("hierarchy"))
        key = server.require_table()
        rare = {"table": key.pop("table"), "attribute": name}
        rare |= {"policy": project.policy, "base": str(project.folder)}
        found = await server.desk.look("edit_tree", file=str(path), edits=edits, rare=rare, **key)
        changes, sentence = _with_table(server, name, number, found["text"]), f"{name}: {said}"
    try:
        project.edit(sentence, changes, one(form, "base"))
    except Stale:
        raise InputError("the policy was changed elsewhere; load the page again") from None
    return f"/hierarchies/{number}"


def _asked(server: Server, policy: Context) -> Context:
    """What looks need to know; raises InputError where no table is open."""
    return {**server.require_table(), "policy": policy, "base": str(server.project.folder)}


async def _require_fit(server: Server, name: str, policy: Context) -> None:
    """Raises InputError where a way to make a column coarser has no place for most of its rows."""
    found = await server.desk.look("check", **_asked(server, policy))
    for finding in found["findings"]:
        if finding["attribute"] == name and 2 * finding["rows"] > server.project.about["rows"]:
            raise InputError(f"{screens.without_shell(finding['message'])}; choose another way")


def _with_table(server: Server, name: str, number: int, text: str) -> dict[str, str | None]:
    """A table in the project, and the policy that names it; the file that it came from stays."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or f"column-{number}"
    file = f"{FOLDER}/{plain[:60]}.csv"
    policy: Context = flat(server.project.policy)
    settings = dict(policy["attributes"][name])
    for key in ("type", "domain", "order", "render", "round"):
        settings.pop(key, None)
    settings["hierarchy"] = file
    policy["attributes"] = {**policy["attributes"], name: settings}
    return {file: text, POLICY: written(folded(policy))}


FOLDER = "hierarchies"
MAKERS = {
    "prefix": gettext("digits from the right"),
    "bins": gettext("ranges in steps"),
    "dates": gettext("months and years"),
    "order": gettext("an order"),
    "tree": gettext("a tree in the policy"),
}


async def hierarchies_screen(
    server: Server, number: int | None, folder: str, part: Context
) -> Context:
    """The columns that others could know, one of them in full; a folder of tables matched.

    part: of its tree: `find`, a page `p`, the number `at` of the node to be changed.
    """
    project = server.project
    names, attributes = project.columns, project.attributes
    quasi = [name for name in names if name in project.quasi]
    found = await gaps(server)
    own = names[number - 1] if number and 1 <= number <= len(names) else None
    if own is None or own not in attributes:
        own = next((n for n in quasi if n in found), quasi[0] if quasi else None)
    command = ["shoal", "policy", "check", "policy.yaml", project.table_in_commands]
    context = {
        **await frame(server, "hierarchies", gettext("Hierarchies"), [*command, "--show-values"]),
        "tabs": [_tab(project, name, found, own) for name in quasi],
        "name": own,
        "number": project.numbers.get(own or "", 0),
        "settings": attributes.get(own or "") or {},
        "gap": found.get(own or ""),
        "tree": None,
        "missing": [],
        "folder": folder,
        "matches": None,
    }
    if own is None or server.table_key() is None:
        return context
    of_table = _asked(server, project.policy)
    asked = {**of_table, "attribute": own}
    levels: list[Context] = []
    settings = {*context["settings"]}
    is_ranged = bool(settings & {"type", "order", "domain"})
    context["becomes_ranges"] = is_ranged and "hierarchy" not in settings
    with suppress(Refused):
        levels = (await server.desk.look("show_steps", **asked))["levels"]
    if isinstance(context["settings"].get("hierarchy"), str):
        with suppress(Refused):
            wanted = {"find": part.get("find", ""), "page": part.get("p", 1)}
            context["tree"] = await server.desk.look("show_tree", **asked, **wanted)
    if own in found:
        with suppress(Refused):
            context["missing"] = (await server.desk.look("show_values", **asked))["values"]
    levels = levels[:1] if context["becomes_ranges"] else levels
    context["steps_shown"] = _steps_shown(levels, context["missing"])
    context |= {"find": part.get("find", ""), "at": part.get("at")}
    context["gap_rows"] = sum(value["rows"] for value in context["missing"])
    if folder:
        place = policy_text.within(folder, project.start, is_folder=True)
        matched = await server.desk.look("match", **of_table, folder=str(place))
        own_text = project.texts().get(str(context["settings"].get("hierarchy")))
        context["matches"] = [_match(project, one, place, own_text) for one in matched["files"]]
    return context


def _tab(project: Project, name: str, found: dict[str, int], own: str | None) -> Context:
    settings = project.attributes[name]
    hierarchy, gap = settings.get("hierarchy"), found.get(name)
    if gap:
        said = ngettext("! {count} value without a place", "! {count} values without a place", gap)
    elif isinstance(hierarchy, str):
        said = Path(hierarchy).name
    elif isinstance(hierarchy, dict):
        said = MAKERS.get(next(iter(hierarchy)), "made")
    elif settings.get("type") == "number" or "domain" in settings:
        said = gettext("ranges")
    elif "order" in settings:
        said = gettext("ranges in their order")
    else:
        said = gettext("only whole or *")
    number = project.numbers[name]
    return {"name": name, "number": number, "said": said, "is_own": name == own, "gap": gap}


def _steps_shown(levels: list[Context], missing: list[Context]) -> list[Context]:
    """A bar for every step: the groups that readers see, and in the end what has no place."""
    gap = sum(value["rows"] for value in missing)
    drawn = []
    for number, level in enumerate(levels):
        whole = (sum(level["parts"]) + gap) or 1
        bars: list[Context] = []
        left = 0.0
        for part, look in [*((part, "") for part in level["parts"]), (gap, "gap")]:
            wide = 300 * part / whole
            if wide:
                look = look or f"part{len(bars) % 3}"
                bars.append({"x": round(left, 1), "w": round(max(wide - 1, 0.5), 1), "look": look})
            left += wide
        drawn.append({**level, "number": number, "bars": bars})
    return drawn


def _match(project: Project, found: Context, place: Path, own_text: str | None) -> Context:
    best = found["fits"][0] if found["fits"] else None
    is_used = (
        own_text is not None and policy_text.text_of(place / Path(found["file"]).name) == own_text
    )
    return {
        **found,
        "rows": best["rows"] if best else 0.0,
        "number": project.numbers.get(best["column"], 0) if best else 0,
        "column": best["column"] if best else None,
        "file_name": Path(found["file"]).name,
        "missing": best["missing"] if best else 0,
        "is_used": is_used,
    }


async def gaps(server: Server) -> dict[str, int]:
    """By column, the distinct values that have no place; nothing while they are looked for."""
    return {
        f["attribute"]: max(f["values"], 1)
        for f in (await looked_now(server, "check", None) or {}).get("findings", ())
        if f["attribute"] and f["fault"] == "MISFIT"
    }


def tree_edit(form: Form) -> tuple[list[Context], str]:
    """What a form does to a tree, as `Hierarchy.edited` takes it; the sentence holds no label."""
    kind = one(form, "do")
    value, under = one(form, "value"), one(form, "under")
    if kind == "put":
        return [{"put": value, "under": under}], gettext("a value put into its place")
    if kind == "rename":
        return [{"rename": value, "to": one(form, "to")}], gettext("a group renamed")
    if kind == "move":
        return [{"move": value, "under": under}], gettext("a group moved")
    if kind == "group":
        members = [label for label in form.get("of", []) if label]
        if not members:
            raise InputError("new group: mark what belongs to it")
        return [{"group": one(form, "to"), "of": members}], gettext("a new group")
    if kind == "rare":
        if (least := whole(one(form, "least"), 1)) is None:
            raise InputError("group what is rare: is not a number of rows; write for instance 5")
        return [{"rare": least, "into": one(form, "to") or "other"}], gettext(
            "what is rare grouped"
        )
    if kind == "step":
        if (step := whole(one(form, "step"))) is None:
            raise InputError("new step: is not a number; give the step below it")
        return [{"step": step}], gettext("a new step")
    raise InputError("edit: there is none of this name; load the page again")


ROUTES = [
    Route("/table", takes(table), methods=["POST"]),
    Route("/policy", takes(policy), methods=["POST"]),
    Route("/undo", takes(undo), methods=["POST"]),
    Route("/hierarchies", shows(shown, "f", "p", "at")),
    Route("/hierarchies/{n}", shows(shown, "f", "p", "at")),
    Route("/hierarchies/{n}", takes(changed), methods=["POST"]),
]
