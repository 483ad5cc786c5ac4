"""Open, Columns and Promises: what the templates show, from what looks and files say."""

import os
import re
from contextlib import suppress

from shoal.connectors.formats import SUFFIXES
from shoal.data.certificate import Certificate
from shoal.data.language import gettext
from shoal.data.linked import PEOPLE
from shoal.data.room import size_text
from shoal.data.warnings import GRAVE
from shoal.policy.proposal.roles import MANY, asks_who
from shoal.reports.linked import exposure_text
from shoal.reports.pages import known_text
from shoal.reports.release import attackers
from shoal.web import edits, pictures, policy_text, several, work
from shoal.web.frame import FIELDS, frame, in_fields, looked_now, person_answered
from shoal.web.policy_text import Context
from shoal.web.project import Run
from shoal.web.server import Server, but_k

PER_PAGE = 50
MOST_LISTED = 200
KINDS = {
    "number": gettext("numbers"),
    "whole number": gettext("numbers"),
    "date": gettext("dates"),
    "code": gettext("codes"),
    "spans": gettext("ranges"),
    "text": gettext("texts"),
    "empty": gettext("values"),
}

WAYS = {
    "delimiter": {
        ",": gettext("comma"),
        ";": gettext("semicolon"),
        "\\t": gettext("tab"),
        "|": gettext("bar"),
    },
    "decimal": {",": gettext("comma: 2,5"), ".": gettext("point: 2.5")},
    "thousands": {
        ".": gettext("point: 2.500"),
        ",": gettext("comma: 2,500"),
        "'": gettext("apostrophe: 2'500"),
        " ": gettext("blank: 2 500"),
    },
    "dates": {
        "%Y-%m-%d": "2031-12-24",
        "%d.%m.%Y": "24.12.2031",
        "%d/%m/%Y": "24/12/2031",
        "%m/%d/%Y": "12/24/2031",
        "%d-%m-%Y": "24-12-2031",
        "%Y/%m/%d": "2031/12/24",
    },
    "encoding": {
        "utf-8": "UTF-8",
        "cp1252": gettext("Western Europe, Windows"),
        "cp1250": gettext("Central Europe, Windows"),
        "mac_roman": gettext("Western Europe, older Macs"),
        "gb18030": gettext("Chinese"),
        "cp932": gettext("Japanese"),
    },
}
"""How a table may be written: by key of `read`, what to choose from."""


# Open


async def open_screen(server: Server, below: str) -> Context:
    """The tables below a folder of the start folder."""
    project = server.project
    place = policy_text.within(below or ".", project.start, is_folder=True)
    listed: list[Context] = []
    with suppress(OSError):
        for path in sorted(place.iterdir(), key=lambda p: (not p.is_dir(), p.name.lower())):
            if path.name.startswith(".") or len(listed) >= MOST_LISTED:
                continue
            below_start = os.path.relpath(path, project.start)
            if path.is_dir() and path.resolve() != project.folder:
                listed.append({"name": path.name, "href": below_start})
            elif path.is_file() and path.name.lower().endswith(SUFFIXES):
                size = size_text(path.stat().st_size)
                listed.append({"name": path.name, "path": below_start, "size": size})
    base = place.relative_to(project.start)
    above = None if place == project.start else os.path.relpath(place.parent, project.start)
    command = ["shoal", "policy", "init", project.table_in_commands, "-o", "policy.yaml"]
    tables = [one for one in listed if "path" in one]
    return {
        **await frame(server, "open", gettext("Open"), command if project.table else None),
        "together": len(tables) if len(tables) > 1 else 0,
        "all_sheets": False,
        "ALL_SHEETS": several.ALL_SHEETS,
        "listed": listed,
        "below": "" if str(base) == "." else str(base),
        "above": above,
        "start": str(project.start),
        "about": project.about,
        "read": server.read_options,
        "titled": titled_lines(server),
        "missing": project.policy.get("missing_values") or [""],
        "ways": WAYS,
        "fields": FIELDS,
        "kinds": KINDS,
        "is_sample": bool(server.sample_of),
        "too_large": server.too_large,
    }


def titled_lines(server: Server) -> list[str]:
    """Which lines name the columns, where these are not the first."""
    header, people = server.read_options.get("header") or 1, server.project.people_name
    lines = header if isinstance(header, dict) else {"": header}
    said = gettext("Line {line} names the columns{where}; what stands above it was left out.")
    where = {name: gettext(" of {name}", name=name) if name else "" for name in lines}
    where[PEOPLE] = gettext(" of {name}", name=people)
    return [said.format(line=n, where=where[name]) for name, n in lines.items() if n > 1]


# Columns


async def columns_screen(server: Server, search: str, wanted: str) -> Context:
    """Every column's role, what it gives away, and who is one person. wanted: the page's number."""
    project = server.project
    command = ["shoal", "policy", "check", "policy.yaml", project.table_in_commands]
    context = await frame(server, "columns", gettext("Columns"), command)
    profile, trouble = await _profile(server)
    checked = await looked_now(server, "check", None) or {}
    remarks = checked.get("remarks") or []
    links = several.linking_columns(project.policy)
    found = [
        _column(server, number, name, profile, context["risk"])
        | {"step": (checked.get("steps") or {}).get(name)}
        | {"remarks": [remark for remark in remarks if remark.get("column") == name]}
        for number, name in enumerate(project.columns, 1)
        if name not in links and search.lower() in name.lower()
    ]
    for at, column in enumerate(found):
        column["page"] = at // PER_PAGE + 1
    alone = sorted((c for c in found if c["alone"]), key=lambda column: -column["alone"])
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(edits.whole(wanted, 1) or 1, pages)
    return {
        **context,
        "columns": found[(page - 1) * PER_PAGE : page * PER_PAGE],
        "asked": [column for column in found if column["ask"]],
        "remarked": [column for column in found if column["remarks"]],
        # not one that singles out few beside the first
        "most_alone": [c["name"] for c in alone[:2] if 2 * c["alone"] >= alone[0]["alone"]],
        "found": len(found),
        "page": page,
        "pages": pages,
        "search": search,
        "roles": edits.TITLES,
        "person": _person(server, profile),
        "several": _several(server, profile),
        "quasi": project.quasi,
        "waits": context["waits"] or (profile is None and trouble is None),
        "trouble": trouble,
        "findings": await findings(server),
    }


def _several(server: Server, profile: Context | None) -> Context | None:
    """How several tables hang together; None of one table."""
    project = server.project
    if not project.is_several:
        return None
    found = several.several_context(project.policy, project.columns, project.people_name, profile)
    asks = [project.attributes[name].get("ask") for name in edits.subject_of(project.policy)]
    return found | {"doubt": edits.question_of(next(iter(asks), None))}


async def _profile(server: Server) -> tuple[Context | None, str | None]:
    """What the columns hold; None while it is counted, and why it can't be."""
    with suppress(work.Refused):
        return await server.policy_look("profile"), None
    return None, gettext("The columns could not be counted.")


def _column(
    server: Server, number: int, name: str, profile: Context | None, risk: Context | None
) -> Context:
    project = server.project
    settings = project.attributes.get(name) or {}
    role, people, ask = settings.get("role", ""), project.people_name, settings.get("ask")
    is_asked_above = asks_who(ask) or (
        project.is_several and name in edits.subject_of(project.policy)
    )
    own = next((c for c in (profile or {}).get("columns", ()) if c["name"] == name), None)
    alone = ((risk or {}).get("columns") or {}).get(name)
    return {
        "number": number,
        "name": name,
        "table": name.rpartition(".")[0] or people,
        "role": role,
        "kind": _kind(own, settings),
        "round": settings.get("round"),
        "is_range": settings.get("type") == "number" and "hierarchy" not in settings,
        "reason": (project.about.get("reasons") or {}).get(name, ""),
        "ask": None if is_asked_above else edits.question_of(ask),
        "is_whole": settings == {"role": "quasi"} and own is not None and own["values"] > MANY,
        "doubtful": dict(ask["values"]) if isinstance(ask, dict) and "values" in ask else None,
        "bars": pictures.bars(own["bars"]) if own and role not in ("identifier", "subject") else [],
        "repeats": _repeats(profile, name, project.is_several) if role == "subject" else "",
        "alone": None if alone is None else alone["alone"],
        "without": None if alone is None else alone["without"],
        "share": 0
        if not alone or not risk or not risk.get("lone")
        else alone["without"] / risk["lone"],
        "if_known": _alone_if_known(server, name, risk or {}),
        "promised": edits.promises_about(project.policy, name) if role == "sensitive" else [],
    }


def _alone_if_known(server: Server, name: str, risk: Context) -> Context | None:
    """People alone for whoever knows this column, too: in the last draft, where it is of this
    policy and table, else in the table.

    None where all are alone anyway.
    """
    run = _draft_of_now(server)
    if run is not None:
        own = (c for c in run.certificate.get("columns") or () if c["name"] == name)
        found: Context = next(own, {})
        if found.get("alone_if_known") is not None:
            return {"people": found["alone_if_known"], "draft": run.number}
    people = (risk.get("if_known") or {}).get(name)
    return {"people": people} if people and risk["lone"] < risk["people"] else None


def _draft_of_now(server: Server) -> Run | None:
    """The last draft, where it is of the policy and table as they are."""
    run = server.project.last_draft
    return None if run is None or server.stale_parts(run) else run


def _kind(own: Context | None, settings: Context) -> str:
    order = settings.get("order")
    if isinstance(order, list):
        return gettext("order of {order}", order=len(order))
    if own is None:
        return "…"
    what = KINDS.get(own["kind"], KINDS["empty"])
    empty = own["missing"]
    missing = gettext(", {missing:,} without a value", missing=empty) if empty else ""
    return f"{own['values']:,} {what}{missing}"


def _repeats(profile: Context | None, name: str, is_several: bool) -> str:
    for candidate in (profile or {}).get("candidates", ()):
        if list(candidate["columns"]) == [name]:
            said = gettext("{repeated:,} with several rows, at most {most_rows}", **candidate)
            return gettext("{said} in one table", said=said) if is_several else said
    return ""


def _person(server: Server, profile: Context | None) -> Context:
    """The question who is one person, its candidates and what each answer comes to."""
    numbers = server.project.numbers
    subject = edits.subject_of(server.project.policy)
    candidates = []
    tried = (profile or {}).get("tried") or {}
    listed = (profile or {}).get("candidates") or []
    for one in listed:
        columns = list(one["columns"])
        candidates.append(
            {
                **one,
                "columns": columns,
                "value": edits.APART.join(str(numbers[name]) for name in columns) or "rows",
                "can_choose": not one["is_profile"],
                "is_chosen": columns == subject,
            }
        )
    worst = max(range(len(listed)), key=lambda i: (tried["fewer"] + [0])[i]) if tried else None
    return {
        "is_answered": person_answered(server),
        "subject": " + ".join(subject),
        "candidates": candidates,
        "others": [
            (number, name)
            for name, number in numbers.items()
            if [name] not in [c["columns"] for c in candidates]
        ],
        "tried": {
            "k": tried["k"],
            "groups": tried["classes"],
            "fewer": tried["fewer"][worst],
            "smallest": tried["smallest"][worst],
        }
        if worst is not None and tried["fewer"][worst]
        else None,
        "rows": server.project.about.get("rows", 0),
    }


async def findings(server: Server) -> list[Context]:
    """What the doctor finds, each with the screen to correct it on; nothing while it runs."""
    try:
        found = await server.policy_look("check")
    except work.Refused as refused:
        return [{"message": text, "href": "/text"} for text in (refused.message, *refused.findings)]
    asked = [f for f in (found or {}).get("findings", ()) if "open question" not in f["message"]]
    tables = (server.project.policy.get("tables") or {}).values()
    holders = [*server.project.attributes.values(), *tables]
    answers = {one["ask"] for one in holders if isinstance(one.get("ask"), str) and one["ask"]}
    return [
        {**finding, "message": without_shell(finding["message"]), **_fixed_at(server, finding)}
        for finding in asked
        if not any(answer in finding["message"] for answer in answers)
    ]


def without_shell(message: str) -> str:
    """A message without what to type in a shell, since the page has a control for it."""
    parts = in_fields(message).split("; ")
    return "; ".join(part for part in parts if not re.search("--[a-z]|shoal policy check", part))


def _fixed_at(server: Server, finding: Context) -> Context:
    """The screen where a finding can be fixed."""
    number = server.project.numbers.get(finding.get("attribute", ""))
    if finding.get("fault") == "MISFIT" and number:
        return {"href": f"/hierarchies/{number}", "where": gettext("Fix it under Hierarchies")}
    return {"href": "/columns", "where": ""}


# Promises


async def promises_screen(server: Server) -> Context:
    """k, what it means on this table, and what private columns are promised."""
    project, policy = server.project, server.project.policy
    context = await frame(server, "promises", gettext("Promises"), project.publish_command)
    risk = context["risk"] or {}
    k = project.required_k
    rows = project.about.get("rows", 0)
    sets = [[one["size"], one["people"]] for one in risk.get("sets") or ()]
    losses, method = measured_losses(server)
    is_counting = await _count_grave(server)
    last = project.last_draft
    is_sample = any(own.get("role") == "weight" for own in project.attributes.values())
    unmeasured = {"individual_risk": {"own": dict.fromkeys(("max", "mean"))} if is_sample else None}
    return {
        **context,
        "k": k,
        "sets": sets,
        "hidden": sum(people for size, people in sets if size >= k),
        "people": risk.get("people", rows),
        "unit": gettext("people") if risk.get("unit", "people") == "people" else gettext("rows"),
        "lone": risk.get("lone"),
        "quasi": risk.get("quasi") or [],
        # whoever has several rows may be in several; of several tables, people are classed
        "groups": (risk.get("people", 0) if project.is_several else rows) // k if k else 0,
        "rows": rows,
        "fish": pictures.school(k, 600),
        "slider": round(pictures.log_place(k or 2, 2, 50, 1000)),
        "curve": pictures.loss_curve(losses, k or 2) if losses else None,
        "method": method,
        "private": _private(server, (await _profile(server))[0]),
        "plain": [name for name, own in project.attributes.items() if own.get("role") == "plain"],
        "several": _several(server, (await _profile(server))[0]),
        "exposed": exposed_lines(risk, k),
        "ways_to_know": {known: known_text(known) for known in several.KNOWN},
        "others": [
            {"index": place, "text": edits.said_of(promise)}
            for place, promise in enumerate(policy.get("promises") or ())
            if promise.get("model") not in ("k-anonymity",) and not edits.about(promise)
        ],
        "feared": attackers(last.certificate if last else unmeasured),
        "last": last,
        "findings": await findings(server),
        "is_counting": is_counting,
        "waits": context["waits"] or is_counting,
        "grave": server.grave,
        "once": server.new_once(),
    }


def exposed_lines(risk: Context, k: int) -> list[str]:
    """Of several tables, how many people hide among fewer than k by what is known of each."""
    return [exposure_text(one, k) for one in risk.get("exposed") or () if k]


async def _count_grave(server: Server) -> bool:
    """Keeps what no promise hides and the gate will ask about; True while it is counted again."""
    run, found = _draft_of_now(server), await looked_now(server, "check", None)
    if run is not None:
        server.grave = [finding.report() for finding in Certificate(run.certificate).grave]
    elif found is not None:
        server.grave = [r for r in found.get("remarks") or () if r["severity"] == GRAVE]
    return run is None and found is None and bool(server.grave)


def _private(server: Server, profile: Context | None) -> list[Context]:
    """Every private column with what is promised about it, and how many rows have no value."""
    missing = {column["name"]: column["missing"] for column in (profile or {}).get("columns", ())}
    promises = list(enumerate(server.project.policy.get("promises") or ()))
    found = []
    for name, settings in server.project.attributes.items():
        if settings.get("role") != "sensitive":
            continue
        own = []
        for index, promise in promises:
            if name in edits.about(promise) and promise.get("model") != "k-anonymity":
                key = next((key for key in edits.SETTINGS if key in promise), None)
                text = edits.SETTINGS.get(key or "", edits.said_of(promise))
                if promise.get("kind", "distinct") != "distinct" and key == "l":
                    text = gettext(
                        "well spread over at least this many ({kind} l-diversity)",
                        kind=promise["kind"],
                    )
                own.append(
                    {"index": index, "key": key, "value": promise.get(key or ""), "text": text}
                )
        number = server.project.numbers.get(name, 0)
        is_of_rows = any(one["key"] != "share" for one in own) and server.project.is_several
        none = missing.get(name) if any(one["key"] in edits.COUNT_VALUES for one in own) else 0
        found.append(
            {
                "name": name,
                "table": name.rpartition(".")[0] if is_of_rows else "",
                "number": number,
                "promises": own,
                "missing": none,
            }
        )
    return found


def measured_losses(server: Server) -> tuple[list[tuple[int, float]], str]:
    """Losses that were measured under these columns, by k, of the method that most are of."""
    points: dict[str, dict[int, float]] = {}
    own = but_k(server.project.policy)
    for row in server.measured_rows():
        if row["holds"]:
            points.setdefault(row["label"], {})[row["k"]] = row["loss"]
    for run in filter(server.is_of_table, server.project.runs):
        if run.policy_text and but_k(run.policy) == own:
            stated = run.certificate
            asked = (p["asked"] for p in stated["promises"] if p["model"] == "k-anonymity")
            label = stated["method"]["name"]
            own_k, lost = next(asked, None), Certificate(stated).loss
            if own_k is not None and lost is not None:
                points.setdefault(label, {})[own_k] = lost
    if not points:
        return [], ""
    wanted = (server.project.policy.get("method") or {}).get("name")
    label = max(points, key=lambda one: (one.partition(":")[0] == wanted, len(points[one])))
    return sorted(points[label].items()), label
