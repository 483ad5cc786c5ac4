"""Result: one draft, what it keeps, what it costs, and what an attacker would see of it."""

import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from shoal.auditor.checks import K_ANONYMITY
from shoal.data.certificate import Certificate
from shoal.data.findings import some_named
from shoal.data.language import gettext, ngettext
from shoal.errors import InputError
from shoal.reports.charts import risks_chart
from shoal.reports.distributions import Distribution, distribution_chart
from shoal.reports.in_short import is_of_rows_alike, several_classes
from shoal.reports.linked import entities_of, entity_picture, paid_lines, table_findings
from shoal.reports.text import explanation_sentences
from shoal.web import checked, pictures, policy_text, screens, sign_off, work
from shoal.web.edits import Form, column_of, edited, one, whole
from shoal.web.frame import frame, job_context, shows, takes
from shoal.web.policy_text import Context, changed_lines, read, sha256, written
from shoal.web.project import SHOWN, Run
from shoal.web.routes_of_edits import back
from shoal.web.server import Server

MEASURED = {
    "k-anonymity": gettext("classes of at least {measured} people (asked {asked})"),
    "l-diversity": gettext(
        "at least {measured} different values of {about} in each {where}(asked {asked})"
    ),
    "t-closeness": gettext(
        "no class {where}farther than {measured} from the whole in {about} (asked {asked})"
    ),
    "individual-risk": gettext(
        "nobody is re-identified in the population with more than {measured} (asked {asked})"
    ),
    "global-risk": gettext(
        "a list of the population names {measured} of people{by} (asked {asked})"
    ),
}


async def result_screen(server: Server, name: str | None, cells: Context | None = None) -> Context:
    """The draft of this number, by default the last one. cells: the answers about single rows."""
    project = server.project
    runs = project.runs
    run = project.run(name) if name else next(iter(runs), None)
    context = {
        **await frame(
            server,
            "result",
            gettext("Result") if run is None else gettext("Draft {number}", number=run.number),
            [*project.publish_command, "--report", "report.html"],
        ),
        "run": run,
        "runs": runs,
        "cells": cells or {},
        "once": server.new_once(),
    }
    if run is None:
        return context
    drafts = (job for job in server.jobs.open if job.kind == "draft")
    making = next((job for job in drafts if job.asked["run"] == run.name), None)
    stale = server.stale_parts(run)
    changed = changed_lines(run.policy_text, project.policy_text) if "policy" in stale else []
    context |= {
        "making": None if making is None else job_context(server, making),
        "about": run.about,
        "stale": stale,
        "stale_changes": sum(mark == "+" for mark, _ in changed),
        "nearest": _nearest(server, run),
        "tried": run.about.get("why"),
        "quasi_number": (run.about.get("tried") or {}).get("column"),
    }
    if run.state == "done":
        context |= await _measured(server, run)
    return context


async def _measured(server: Server, run: Run) -> Context:
    stated = run.certificate
    shown: Context = policy_text.json_of(run.folder / SHOWN, {})
    before = await _risk_of(server, run)
    columns = [c for c in stated.get("columns") or () if c["role"] == "quasi"]
    losses = sorted(columns, key=lambda column: -(column.get("loss") or 0))
    risk = stated.get("risk") or {}
    largest = _largest_change(shown)
    return {
        "stated": stated,
        "sentences": [_sentence(promise, stated) for promise in stated["promises"]],
        "holds": all(promise["holds"] for promise in stated["promises"]),
        "light": Certificate(stated).light,
        "several_classes": several_classes(Certificate(stated)),
        "before": before,
        "alone_after": (stated.get("together") or {}).get("alone"),
        "if_known": _if_known(stated),
        "worst_risk": _one_in(risk.get("prosecutor_max")),
        "worst_before": gettext("1 in 1") if before and before.get("lone") else "",
        "loss": Certificate(stated).loss,
        **(_of_several(server, stated, before) if stated.get("linked") else {}),
        "released": sign_off.released_as(server.project, run),
        "left_out": len(Certificate(stated).removed),
        "suppressed": stated["records"]["suppressed"],
        "largest": largest,
        "columns": [_suffers(server, run, column, shown) for column in losses],
        "smaller_k": _prices(run).get("smaller_k"),
        "has_prices": bool(_prices(run)),
        "is_pricing": any(j.kind == "marginal" for j in server.jobs.open),
        "not_priced": server.jobs.failure("marginal", run.name),
        "risks": risks_chart(stated),
        "distributions": [
            (one["name"], distribution_chart(Distribution.of(one)))
            for one in shown.get("distributions", ())
        ],
        "who_pays": shown.get("who_pays"),
        "reasons": shown.get("reasons") or {},
        "warnings": [one.report() for one in Certificate(stated).warnings],
        "explanation": _explanation(stated),
        "fish": pictures.school(stated["classes"]["min"] or 0, 300, 84),
        "others": [r for r in server.project.runs if r.state == "done" and r.number != run.number],
    }


def _of_several(server: Server, stated: Context, before: Context | None) -> Context:
    """What the draft of several tables shows of each, and how many were found in them before."""
    certificate, people = Certificate(stated), server.project.people_name
    asked = stated["promises"]
    return {
        "people": people,
        "tables": table_findings(certificate, people),
        "picture": entity_picture(entities_of(certificate, people)),
        "paid": list(paid_lines(certificate)),
        "fewest": min((p["measured"] or 0 for p in asked if p["model"] == K_ANONYMITY), default=0),
        "has_keys": stated["linked"]["keys"] != "none",
        "exposed_before": screens.exposed_lines(before or {}, stated["together"]["asked"]),
    }


def _if_known(stated: Context) -> Context | None:
    """The columns that no group hides, and who is alone if they are known; None if nobody is."""
    names = [c["name"] for c in stated.get("columns") or () if c.get("alone_if_known")]
    people = (stated.get("together") or {}).get("alone_if_known")
    return {"names": some_named(names), "people": people} if names and people else None


async def _risk_of(server: Server, run: Run) -> Context | None:
    """Who was alone before, by the draft's own policy."""
    if server.table_key() is None or "table" in server.stale_parts(run):
        return {}
    with suppress(work.Refused):
        stamp = [server.stamp(), run.name]
        return await server.desk.soon("risk", stamp=stamp, **server.asked_of(run))
    return {}


def _sentence(promise: Context, stated: Context) -> Context:
    about = ", ".join(promise.get("attributes") or [])
    is_of_rows = is_of_rows_alike(Certificate(stated), promise)
    where = gettext("that has such rows, among rows that look alike ") if is_of_rows else ""
    text = MEASURED.get(
        promise["model"], promise["model"] + gettext(" of {about}: {measured} (asked {asked})")
    )
    by = gettext(", or somebody of their household") if promise.get("households") else ""
    figures = {key: number(promise[key]) for key in ("measured", "asked")}
    said = text.format(about=about, by=by, where=where, **figures)
    if (without := promise.get("measured_without_missing")) is not None:
        said += gettext(
            "; {without} if “no value” is not counted as a value", without=number(without)
        )
    return {"text": said, "holds": promise["holds"]}


def number(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3g}"
    return f"{int(value):,}"


def _one_in(risk: float | None) -> str:
    if not risk:
        return "nobody"
    people = 1 / risk
    return (
        gettext("1 in {people:.0f}", people=people)
        if abs(people - round(people)) < 0.05
        else gettext("1 in {people:.1f}", people=people)
    )


def _largest_change(shown: Context) -> Context | None:
    """The bar that differs most, of what may be shown."""
    worst = None
    for drawn in shown.get("distributions", ()):
        pairs = zip(drawn["before"] or (), drawn["after"], strict=False)
        changes = [abs(a - b) for b, a in pairs if a is not None and b is not None]
        if changes and (worst is None or max(changes) > worst["points"]):
            worst = {"points": max(changes), "name": drawn["name"]}
    return worst


def _suffers(server: Server, run: Run, column: Context, shown: Context) -> Context:
    listed = _prices(run).get("columns") or []
    kept = (shown.get("kept") or {}).get(column["name"]) or {}
    price: Context = next((one for one in listed if one["name"] == column["name"]), {})
    exact = column.get("distinct_in"), column.get("distinct_out")
    return {
        "name": column["name"],
        "number": server.project.numbers.get(column["name"], 0),
        "loss": column.get("loss") or 0.0,
        "kept": ngettext(
            "{before:,} values, shown in {count:,} way",
            "{before:,} values, shown in {count:,} ways",  # ranges may overlap, so in more
            exact[1] or 0,
            before=exact[0],
        )
        if all(exact)
        else "",
        "exact": kept.get("exact"),
        "covered": kept.get("covered"),
        "hidden": kept.get("hidden"),
        "is_number": column["type"] == "number",
        "others": price.get("others"),
        "without": price.get("others_without"),
        "why_not": price.get("why_not"),
    }


def _prices(run: Run) -> Context:
    """What the other columns lose with and without each, where that was measured."""
    return policy_text.json_of(run.folder / "prices.json", {})


def _explanation(stated: Context) -> list[str]:
    found = stated.get("explanation")
    if not found:
        return []
    lines: list[str] = []
    for line in explanation_sentences(found):
        if line.startswith(" ") and lines:  # one of a list: a page's line goes on
            lines[-1] += (", " if ":" in lines[-1] else ": ") + line.strip().replace(": ", " ")
        else:
            lines.append(line.removesuffix(":"))
    return lines


NEAREST = re.compile(
    r"promise '([^']+)'(?: \([a-z]+\))?(?: on '(.+)')?: (\w+) = .+; the nearest that holds is"
    r" \w+ = ([\d.]*\d)"
)


def _nearest(server: Server, run: Run) -> list[Context]:
    """What would do of each promise that a refusal names, where the policy still asks for more."""
    promises = list(enumerate(server.project.policy.get("promises") or ()))
    found = []
    for line in [str(run.about.get("message")), *(run.about.get("findings") or [])]:
        named = NEAREST.search(line)
        if named is None or run.about.get("kind") != "InfeasibleError" or named[4] == "1":
            continue
        model, about, key, value = named.groups()
        own = (
            index
            for index, promise in promises
            if promise.get("model") == model
            and promise.get(key) not in (None, float(value))
            and about in (None, promise.get("attribute"), *(promise.get("attributes") or ()))
        )
        if (index := next(own, None)) is not None:
            found.append({"index": index, "key": key, "value": value, "about": about})
    return found


# What forms start: drafts and other long work, and looks at single rows.


ROWS_OF_DRAFT = 10
PLACES = {"compare": "/compare", "verify": "/check"}  # where somebody stands who cancels
EXPOSED, DISTORTED, ANY = "most-exposed", "most-distorted", "any"


async def shown(server: Server, other: str, run: str | None = None) -> Context:
    """A draft, beside another one where an address asks for that."""
    context = await result_screen(server, run)
    if other and context["run"] and context["run"].state == "done":
        context["beside"] = checked.beside(context["run"], server.project.run(other))
    return context


async def jobs(server: Server, form: Form) -> str:
    """Starts something long; a form that is sent twice starts it once."""
    if one(form, "kind") in OTHERS:
        return await OTHERS[one(form, "kind")](server, form)
    if one(form, "kind") != "draft":
        raise InputError("job: there is none of this name; load the page again")
    job = server.was_sent(one(form, "once"))
    if job is None:
        text = server.project.policy_text  # once: an editor may write it at any moment
        if one(form, "base") != sha256(text):
            server.notices.append(
                gettext("The policy was changed elsewhere; look at it before a draft.")
            )
            return back(form, "promises")
        server.project.notice_hand_edits()
        job = server.start_draft(form, read(text), text)
    return f"/result/{job.asked['run']}"


async def _priced(server: Server, form: Form) -> str:
    """Measures what each column of a draft costs the others."""
    run = _of_this_table(server, form)
    server.start("marginal", one(form, "once"), run=run.name, **server.asked_of(run))
    return f"/result/{run.name}"


def _of_this_table(server: Server, form: Form) -> Run:
    """The draft that a form names; raises InputError where it was made of another table."""
    run: Run = server.project.run(one(form, "run"))
    if server.table_key() is None or "table" in server.stale_parts(run):
        raise InputError("draft: was made of another table; make a new one first")
    return run


async def _tried(server: Server, form: Form) -> str:
    """A draft under one change of an earlier draft's policy, which stays as it is."""
    run = server.project.run(one(form, "run"))
    policy = run.policy
    tried: dict[str, int | str]
    if one(form, "k") and not one(form, "method"):
        changed, _ = edited("k", form, policy, ())
        why = gettext("tried with k = {form}", form=one(form, "k"))
        tried = {"k": one(form, "k")}
    elif one(form, "method"):
        changed, said = edited("method", form, policy, ())
        why = gettext("tried with {said}", said=said)
        tried = {"method": one(form, "method")}
    else:
        name = column_of(form, server.project.columns)
        changed, _ = edited("role", {**form, "role": ["drop"]}, policy, server.project.columns)
        why = gettext("tried without {name}", name=name)
        tried = {"column": server.project.numbers[name]}
    job = server.start_draft(form, changed, written(changed), why, tried)
    return f"/result/{job.asked['run']}"


async def _compared(server: Server, form: Form) -> str:
    """Measures what is not measured yet of methods and values of k."""
    server.require_whole()
    if server.was_sent(one(form, "once")) is None:
        skip = [[row["label"], row["k"]] for row in server.measured_rows()]
        policy = server.project.policy
        taken = sign_off.take_aside(server.project, secrets.token_hex(4))
        server.start(
            "compare",
            one(form, "once"),
            about=server.comparison_key(),
            table=str(server.project.table),
            policy=policy,
            base=sign_off.base_of(server.project, policy, taken),
            taken=str(taken),
            ks=server.asked_ks(),
            skip=skip,
        )
    return "/compare"


OTHERS: dict[str, Callable[[Server, Form], Awaitable[str]]] = {
    "marginal": _priced,
    "try": _tried,
    "compare": _compared,
}


async def cancel(server: Server, form: Form, id: str) -> str:
    """Ends something long."""
    job = server.jobs.find(id)
    if job is None:
        raise policy_text.NotThere
    await server.jobs.cancel(job)
    return PLACES.get(job.kind, "/result")


async def rows(server: Server, form: Form) -> Context:
    """Cells, which no address holds: the one answer to a form that is a page."""
    key = server.require_table()
    first = whole(one(form, "first")) or 0
    if one(form, "run"):
        run = server.project.run(one(form, "run"))
        cells = await _rows_of(server, run, first, bool(one(form, "starred")))
        return await result_screen(server, run.name, cells)
    cells = await server.desk.look("show_rows", **key, read=server.read_options, first=first)
    return await frame(server, "rows", gettext("Rows")) | {"cells": cells}


async def _rows_of(server: Server, run: Run, first: int, is_starred: bool) -> Context:
    """Rows of a draft from this one on, before and after; of several tables, those of a person."""
    end = first + (1 if run.policy.get("tables") else ROWS_OF_DRAFT)
    cells = await server.desk.look(
        "show_draft",
        **server.require_table(),
        policy=run.policy,
        draft=str(run.data),
        rows=list(range(first, end)),
        is_starred=is_starred,
    )
    return {**cells, "first": first, "next": end, "starred": is_starred}


async def attacker(server: Server, form: Form) -> Context:
    """What an attacker would see of one row, on a page of its own."""
    run = _of_this_table(server, form)
    asked = one(form, "which") or one(form, "row")
    row: int | str = asked
    if asked == ANY:
        row = secrets.randbelow(run.certificate["records"]["in"] or 1) + 1
    elif asked not in (EXPOSED, DISTORTED):
        if (named := whole(asked)) is None:
            raise InputError("row: is not a number; give one of the table's")
        row = max(1, named + {"1": 1, "-1": -1}.get(one(form, "step"), 0))
    asked_of = {**server.asked_of(run), "draft": str(run.data)}
    view = await server.desk.look("show_attacker", **asked_of, row=row)
    fish = pictures.school(int(view["people"]), 300, 84)
    first, is_starred = whole(one(form, "first")), bool(one(form, "starred"))
    # rows that are shown stay
    cells = None if first is None else await _rows_of(server, run, first, is_starred)
    context = await result_screen(server, run.name, cells)
    return context | {"view": view, "view_fish": fish}


async def elsewhere(request: Request) -> RedirectResponse:
    """Where somebody is led who asks for a page that only a form gets, as by a reload."""
    return RedirectResponse("/result" if request.url.path == "/attacker" else "/columns", 303)


ROUTES = [
    Route("/result", shows(shown, "with")),
    Route("/result/{run}", shows(shown, "with")),
    Route("/jobs", takes(jobs), methods=["POST"]),
    Route("/jobs/{id}/cancel", takes(cancel), methods=["POST"]),
    Route("/attacker", takes(attacker), methods=["POST"]),
    Route("/rows", takes(rows), methods=["POST"]),
    Route("/attacker", elsewhere),
    Route("/rows", elsewhere),
]
