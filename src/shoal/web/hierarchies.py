"""Hierarchies: how each column is made coarser, its gaps, and edits of its tree."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.web import folder as files
from shoal.web.edits import Form, one
from shoal.web.frame import frame
from shoal.web.server import Server
from shoal.web.work import Refused

Context = dict[str, Any]
FOLDER = "hierarchies"
MAKERS = {
    "prefix": "digits from the right",
    "bins": "ranges in steps",
    "dates": "months and years",
    "order": "an order",
    "tree": "a tree in the policy",
}


async def hierarchies_screen(
    server: Server, number: int | None, folder: str, shown: Context | None = None
) -> Context:
    """The columns that others could know, one of them in full; a folder of tables matched.

    shown: which part of its tree: `find`, a page `p`, the number `at` of the node to be changed.
    """
    project = server.project
    names = project.about.get("columns") or []
    attributes = project.policy.get("attributes") or {}
    quasi = [name for name in names if (attributes.get(name) or {}).get("role") == "quasi"]
    found = await gaps(server)
    own = names[number - 1] if number and 1 <= number <= len(names) else None
    if own is None or own not in attributes:
        own = next((n for n in quasi if n in found), quasi[0] if quasi else None)
    command = ["shoal", "policy", "check", "policy.yaml", project.table_in_commands]
    context = {
        **await frame(server, "hierarchies", [*command, "--show-values"]),
        "title": "Hierarchies",
        "tabs": [_tab(names, name, attributes[name], found, own) for name in quasi],
        "name": own,
        "number": names.index(own) + 1 if own in names else 0,
        "settings": attributes.get(own) or {},
        "gap": found.get(own or ""),
        "tree": None,
        "missing": [],
        "folder": folder,
        "matches": None,
    }
    key = server.table_key()
    if own is None or key is None:
        return context
    asked = {**key, "policy": project.policy, "base": str(project.folder)}
    part = shown or {}
    if isinstance(context["settings"].get("hierarchy"), str):
        with suppress(Refused):
            context["tree"] = await server.desk.look(
                "show_tree",
                **asked,
                attribute=own,
                find=part.get("find", ""),
                page=part.get("p", 1),
            )
    if own in found:
        with suppress(Refused):
            context["missing"] = (await server.desk.look("show_values", **asked, attribute=own))[
                "values"
            ]
    if context["tree"]:
        context["steps_shown"] = _steps_shown(context["tree"], context["missing"])
    context |= {"find": part.get("find", ""), "at": part.get("at")}
    context["gap_rows"] = sum(value["rows"] for value in context["missing"])
    if folder:
        place = files.within(folder, project.start, is_folder=True)
        matched = await server.desk.look("match", **asked, folder=str(place))
        own_text = project.texts().get(str(context["settings"].get("hierarchy")))
        context["matches"] = [_match(names, one, place, own_text) for one in matched["files"]]
    return context


def _tab(
    names: list[str], name: str, settings: Context, found: dict[str, int], own: str | None
) -> Context:
    hierarchy, gap = settings.get("hierarchy"), found.get(name)
    if gap:
        said = f"! {gap} value{'s' if gap != 1 else ''} without a place"
    elif isinstance(hierarchy, str):
        said = Path(hierarchy).name
    elif isinstance(hierarchy, dict):
        said = MAKERS.get(next(iter(hierarchy)), "made")
    elif settings.get("type") == "number" or "domain" in settings:
        said = "ranges"
    elif "order" in settings:
        said = "ranges in their order"
    else:
        said = "only whole or *"
    return {
        "name": name,
        "number": names.index(name) + 1,
        "said": said,
        "is_own": name == own,
        "gap": gap,
    }


def _steps_shown(tree: Context, missing: list[Context]) -> list[Context]:
    """A bar for every step: the groups that readers see, and in the end what has no place."""
    gap = sum(value["rows"] for value in missing)
    drawn = []
    for number, level in enumerate(tree["levels"]):
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


def _match(names: list[str], found: Context, place: Path, own_text: str | None) -> Context:
    best = found["fits"][0] if found["fits"] else None
    is_used = own_text is not None and files.text_of(place / Path(found["file"]).name) == own_text
    return {
        **found,
        "rows": best["rows"] if best else 0.0,
        "number": names.index(best["column"]) + 1 if best and best["column"] in names else 0,
        "column": best["column"] if best else None,
        "file_name": Path(found["file"]).name,
        "missing": best["missing"] if best else 0,
        "is_used": is_used,
    }


async def gaps(server: Server) -> dict[str, int]:
    """By column, the distinct values that have no place; nothing while they are looked for."""
    with suppress(Refused):
        found = await server.policy_look("check")
        return {
            f["attribute"]: max(f["values"], 1)
            for f in (found or {}).get("findings", ())
            if f["attribute"] and f["fault"] == "MISFIT"
        }
    return {}


def tree_edit(form: Form) -> tuple[list[Context], str]:
    """What a form does to a tree, as `Hierarchy.edited` takes it; the sentence holds no label."""
    kind = one(form, "do")
    value, under = one(form, "value"), one(form, "under")
    if kind == "put":
        return [{"put": value, "under": under}], "a value put into its place"
    if kind == "rename":
        return [{"rename": value, "to": one(form, "to")}], "a group renamed"
    if kind == "move":
        return [{"move": value, "under": under}], "a group moved"
    if kind == "group":
        members = [label for label in form.get("of", []) if label]
        if not members:
            raise InputError("new group: mark what belongs to it")
        return [{"group": one(form, "to"), "of": members}], "a new group"
    if kind == "rare":
        least = one(form, "least")
        if not (least.isascii() and least.isdigit() and 0 < int(least) < 10**9):
            raise InputError("group what is rare: is not a number of rows; write for instance 5")
        return [{"rare": int(least), "into": one(form, "to") or "other"}], "what is rare grouped"
    if kind == "step":
        step = one(form, "step")
        if not step.isdecimal():
            raise InputError("new step: is not a number; give the step below it")
        return [{"step": int(step)}], "a new step"
    raise InputError("edit: there is none of this name; load the page again")


def own_file(name: str, number: int) -> str:
    """Where the project keeps the hierarchy of a column."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or f"column-{number}"
    return f"{FOLDER}/{plain[:60]}.csv"
