"""What stands around every screen, such as the bar on top and the steps; and templates to pages."""

import re
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, Undefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from shoal.data.findings import some_named
from shoal.data.language import capitalised, gettext, ngettext, printable
from shoal.data.room import size_text
from shoal.data.warnings import GRAVE
from shoal.policy.proposal.roles import asks_who
from shoal.reports.pages import known_of_linked, known_text, percent_text, translate
from shoal.web import several, sign_off, work
from shoal.web.edits import Form, said_of, subject_of
from shoal.web.policy_text import Context
from shoal.web.server import Server

SHOWN_CHANGES = 12
ASIDE = ("watch", "stream", "ledger", "check")  # screens that are not about the project's table


async def frame(
    server: Server, screen: str, title: str, command: list[str] | None = None
) -> Context:
    """The context of the frame. command: the same from a shell."""
    project = server.project
    entries = project.history.entries()
    lines, changed = server.policy_lines()
    risk = await looked_now(server, "risk", {})  # who is alone
    checked = await looked_now(server, "check", None)  # what the doctor finds
    project.look_at(screen)
    return {
        "screen": screen,
        "title": title,
        "project": project.name,
        "table": table_line(server, risk),
        "has_table": server.table_key() is not None,
        "saved": entries[-1].time if entries else "",
        "undoes": sign_off.undoable(project),
        "steps": steps(server, checked),
        "unanswered": unanswered(server),
        "policy_lines": lines,
        "policy_changed": changed,
        "last_draft": project.last_draft,
        "command": shlex.join(command or ()),
        "changes": [
            {"sentence": e.sentence, "number": e.number, "time": e.time, "changes": e.changes}
            for e in reversed(entries[-SHOWN_CHANGES:])
        ],
        "position": project.history.position(),
        "base": project.policy_sha,
        "numbers": project.numbers,
        "places": [_place(number, place) for number, place in enumerate(project.places, 1)],
        "is_aside": screen in ASIDE,
        "jobs": [job_context(server, job) for job in server.jobs.open],
        "risk": risk,
        "waits": risk is None and server.table_key() is not None,
        "counting": server.desk.waiting,
    }


def _place(number: int, place: dict[str, str]) -> Context:
    """A stream or ledger that is watched, as the lists on the left name it."""
    kind, name = place["kind"], Path(place["path"]).name or place["path"]
    return {
        "title": f"{kind.capitalize()}: {name}",
        "name": name,
        "letter": kind[0].upper(),
        "note": f"a {kind}",
        "href": f"/{kind}/{number}",
    }


def job_context(server: Server, job: Any) -> Context:
    done, total = job.measured
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "stage": job.stage,
        "done": done,
        "total": total,
        "name": job_name(job),
    }


def job_name(job: Any) -> str:
    if job.kind == "draft":
        return gettext("Draft {run}", run=int(job.asked["run"]))
    return {
        "release": gettext("Release"),
        "compare": gettext("Comparison"),
        "attack": gettext("Attacks"),
        "marginal": gettext("Prices of columns"),
        "verify": gettext("Check"),
        "what-if": gettext("What each method would do"),
        "republish": gettext("The next release"),
    }.get(job.kind, job.kind)


async def looked_now(server: Server, name: str, otherwise: Context | None) -> Context | None:
    """A look at the table by the policy; None while it counts. otherwise: where it can't be."""
    if not server.project.attributes:
        return None
    with suppress(work.Refused):
        return await server.policy_look(name)
    return otherwise


def hierarchy_note(server: Server, checked: Context | None) -> tuple[str, bool]:
    """How many columns have values without a place, or that all fit."""
    quasi = server.project.quasi
    if checked is None or not quasi:
        return "", False
    gaps = {f["attribute"] for f in checked["findings"] if f["fault"] == "MISFIT"} & {*quasi}
    if gaps:
        return ngettext("{count} gap", "{count} gaps", len(gaps)), False
    return gettext("{quasi} of {quasi} fit", quasi=len(quasi)), True


def table_line(server: Server, risk: Context | None) -> str:
    """The table in a line: its name, its rows, its people."""
    path, about = server.project.table, server.project.about
    if path is None:
        return gettext("no table yet")
    parts = [path.name, gettext("{value:,} rows", value=about.get("rows", 0))]
    if about.get("tables"):
        parts.insert(1, gettext("{count} tables", count=about["tables"]))
    if server.sample_of:
        parts[1] = gettext("sample: {rows:,} of {rows_in_all:,} rows").format(**about)
    if risk and risk.get("unit") == "people" and person_answered(server):
        parts.append(gettext("{people:,} people", people=risk["people"]))
    return " · ".join(parts)


def questions(server: Server) -> int:
    """What only a person can decide and has not yet."""
    asks = [settings.get("ask") for settings in server.project.attributes.values()]
    asked = sum(bool(ask) and not asks_who(ask) for ask in asks)
    if server.project.is_several:
        return asked + len(several.open_links(server.project.policy))
    return asked + (0 if person_answered(server) else 1)


def unanswered(server: Server) -> int:
    """How many questions keep a draft from being made."""
    asks = [settings.get("ask") for settings in server.project.attributes.values()]
    return sum(map(bool, asks)) + len(several.open_links(server.project.policy))


def person_answered(server: Server) -> bool:
    """Whether somebody has said who is one person, and the policy says the same. Of several tables
    their links say it, unless people's may hold several rows of one.
    """
    policy, answer = server.project.policy, server.project.about.get("person")
    if server.project.is_several:
        doubt = any(server.project.attributes[name].get("ask") for name in subject_of(policy))
        return bool(subject_of(policy)) and not several.open_links(policy) and not doubt
    if any(asks_who(settings.get("ask")) for settings in server.project.attributes.values()):
        return False
    return bool(answer) and answer == (" + ".join(subject_of(policy)) or "rows")


def promise_note(policy: Context) -> str:
    """The promises in few letters: k = 10, disease: l = 3."""
    parts = []
    for promise in policy.get("promises") or []:
        for key in ("k", "l", "t", "p", "beta", "delta", "alpha"):
            if key in promise:
                about = f"{promise['attribute']}: " if promise.get("attribute") else ""
                parts.append(f"{about}{key} = {promise[key]}")
                break
        else:
            parts.append(said_of(promise))
    return some_named(parts)


def steps(server: Server, checked: Context | None) -> list[Context]:
    """The lines of the list on the left in order, each with how far it is."""
    project = server.project
    policy, rows = project.policy, project.about.get("rows")
    has_table = server.table_key() is not None
    open_questions = questions(server)
    asked = ngettext("{count} question", "{count} questions", open_questions)
    columns = len(project.attributes)
    remarks = (checked or {}).get("remarks") or ()
    grave = sum(remark["severity"] == GRAVE for remark in remarks)
    found = ngettext("{count} grave finding", "{count} grave findings", grave)
    hierarchies = hierarchy_note(server, checked)
    has_gaps = bool(hierarchies[0]) and not hierarchies[1]
    measured = len(server.measured_rows()) if has_table else 0
    size = gettext("{rows:,} rows", rows=rows) if has_table and rows else ""
    compared = gettext("{measured} measured", measured=measured) if measured else ""
    said = asked if open_questions else found if grave else ""
    said = said or gettext("{columns} columns", columns=columns)
    is_settled = has_table and not open_questions and checked is not None and not grave
    drawn = [
        ("open", gettext("Open"), size, has_table),
        ("columns", gettext("Columns"), said if has_table else "", is_settled),
        ("hierarchies", gettext("Hierarchies"), *hierarchies),
        ("promises", gettext("Promises"), promise_note(policy), not open_questions + has_gaps),
        ("compare", gettext("Compare"), compared, bool(measured)),
        ("result", gettext("Result"), *result_note(server)),
        ("release", gettext("Release"), *release_note(server)),
    ]
    seen = ["open", *project.looked_at]  # whoever has opened a table has looked there
    return [
        {"number": n, "slug": slug, "title": title, "note": note, "is_done": done and slug in seen}
        for n, (slug, title, note, done) in enumerate(drawn, 1)
    ]


def result_note(server: Server) -> tuple[str, bool]:
    if any(job.kind == "draft" for job in server.jobs.open):
        return gettext("making a draft"), False
    run = server.project.last_draft
    if run is None:
        return "", False
    if stale := " and ".join(server.stale_parts(run)):
        return gettext("draft {number}, older {stale}", number=run.number, stale=stale), False
    return gettext("draft {number} holds", number=run.number), True


def release_tried(server: Server) -> work.Job | None:
    """The last attempt to release the last draft, which runs or has failed."""
    job, run = server.jobs.last("release"), server.project.last_draft
    is_own = job is not None and run is not None and job.asked["run"] == run.name
    return job if job is not None and is_own and job.state != "done" else None


def release_note(server: Server) -> tuple[str, bool]:
    tried, run = release_tried(server), server.project.last_draft
    if tried is not None and tried.is_over:
        return gettext("nothing was released"), False
    if run is None or not sign_off.released_as(server.project, run):
        return "", False
    return gettext("draft {number} released", number=run.number), True


# Templates to pages: everything escaped, cells isolated, nothing fetched from elsewhere.


class _Blank(Undefined):
    """What a screen does not have is false and empty; its parts are errors."""


@cache
def environment() -> Environment:
    found = Environment(
        loader=ChoiceLoader([PackageLoader("shoal.web"), PackageLoader("shoal.reports")]),
        autoescape=True,
        undefined=_Blank,
        finalize=_visible,
    )
    translate(found)
    found.filters |= {
        "capitalize": capitalised,  # GB/T stays as it is
        "shown": lambda text: printable(str(text)),  # nothing moves a cursor or turns the line
        "known_of_linked": known_of_linked,
        "known_text": known_text,
        "percent": lambda share: percent_text(share, gettext("not measured")),
        "ago": ago,
        "size": size_text,
        "in_fields": in_fields,
        "yaml_line": yaml_line,
    }
    return found


def _visible(value: Any) -> Any:
    """Whatever a page says: signs that turn a line around or can't be seen become a mark."""
    if isinstance(value, Markup) or not isinstance(value, str) or value.isprintable():
        return value
    return "".join(sign if sign in "\n\t" else printable(sign) for sign in value)


def ago(seconds: float) -> str:
    """A time that has passed, in the unit that a person would use."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


FIELDS = {
    "delimiter": gettext("Between cells"),
    "decimal": gettext("Decimal mark"),
    "thousands": gettext("Thousands mark"),
    "dates": gettext("Dates"),
    "encoding": gettext("Letters (encoding)"),
    "header": gettext("Line with the headings"),
    "sheet": gettext("Sheet of a workbook"),
}
"""What Open asks about how a table is written, by key of `read`."""


def in_fields(message: str) -> str:
    """A message with the page's field in place of what a shell takes as `--read`."""

    def field(found: re.Match[str]) -> str:
        key, value = found.groups()
        return gettext("“{field}” {value} under Open", field=FIELDS[key], value=value)

    return re.sub(rf"--read ({'|'.join(FIELDS)})=(\S[^\s,;]*)", field, message)


def yaml_line(line: str) -> Markup:
    """A line of YAML, its key marked where it is one of the file's own."""
    head, colon, rest = line.partition(":")
    if colon and head.isidentifier():
        return Markup("<em>{}</em>:{}").format(printable(head), printable(rest))
    return escape(printable(line))


def page(request: Request, context: Context) -> HTMLResponse:
    """A screen by the template of its name, with what every one of them carries, and the status
    that its context names.
    """
    server = request.app.state.server
    notices = list(server.notices)
    if request.method == "GET":
        server.notices.clear()
    steps = context.get("steps") or []
    places = [step["slug"] for step in steps]
    here = places.index(context["screen"]) if context["screen"] in places else -1
    shared = {
        "key": server.door.form_key(request.scope["state"]["cookie"] or ""),
        "notices": notices,
        "next": steps[here + 1] if 0 <= here < len(steps) - 1 else None,
        "table_changed": server.table_key() is not None
        and server.project.about.get("stamp") not in (None, server.stamp()),
    }
    content = plain_page(f"{context['screen']}.html.j2", **shared | context)
    return HTMLResponse(content, context.get("http_status", 200))


def shows(
    context_of: Callable[..., Awaitable[Context]], *asked: str
) -> Callable[[Request], Awaitable[Response]]:
    """The route of a screen. context_of: what it shows, by the server, what an address asks for by
    these names, and what its path names.
    """

    async def shown(request: Request) -> Response:
        words = (request.query_params.get(name, "") for name in asked)
        context = await context_of(request.app.state.server, *words, **request.path_params)
        return page(request, context)

    return shown


def form_of(request: Request) -> Form:
    form: Form = request.scope["state"]["form"]
    return form


def takes(
    done_with: Callable[..., Awaitable[str | Context]],
) -> Callable[[Request], Awaitable[Response]]:
    """The route of a form. done_with: what is done with it, by the server, the form, and what its
    path names; returns where it leads, or what it shows.
    """

    async def taken(request: Request) -> Response:
        server, form = request.app.state.server, form_of(request)
        found = await done_with(server, form, **request.path_params)
        return RedirectResponse(found, 303) if isinstance(found, str) else page(request, found)

    return taken


def plain_page(template: str, **context: Any) -> str:
    """A page without a frame."""
    return environment().get_template(template).render(context)
