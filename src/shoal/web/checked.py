"""Compare and Check: methods and values of k as measured, one of them chosen; one draft beside
another; and what a released file and its certificate say of each other, without any project.
"""

import asyncio
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

from starlette.routing import Route

from shoal.connectors.formats import SUFFIXES
from shoal.connectors.location import OF_TABLES
from shoal.data.certificate import Certificate
from shoal.data.language import gettext
from shoal.data.linked import PEOPLE
from shoal.data.recoding import sensitive_path
from shoal.reports.pages import percent_text
from shoal.web import edits, pictures, policy_text, project, work
from shoal.web.frame import frame, shows, takes
from shoal.web.policy_text import Context, only_changes
from shoal.web.server import Server

GLOBAL = "full-domain:suppression=0.05"  # a method whose levels can be walked


async def compare_screen(server: Server, method: str, k: str, levels: str = "") -> Context:
    """The points, one of them chosen, and the same as a table. levels: of a global recoding."""
    project = server.project
    ks = ",".join(map(str, server.asked_ks()))
    command = ["shoal", "compare", project.table_in_commands, "-p", "policy.yaml", "--ks", ks]
    rows = server.measured_rows()
    known = [row for row in rows if row["loss"] is not None]
    wanted = method, edits.whole(k)
    own_k = project.required_k
    chosen = next((r for r in known if (r["label"], r["k"]) == wanted), None)
    chosen = chosen or next((r for r in known if r["k"] == own_k and r["holds"]), None)
    at = chosen["k"] if chosen else own_k
    own_method = (project.policy.get("method") or {}).get("name")
    is_current = chosen is not None and chosen["label"].partition(":")[0] == own_method
    return {
        **await frame(server, "compare", gettext("Compare"), command),
        "rows": rows,
        "at": at,
        "table_rows": [row for row in rows if row["k"] == at],
        "chosen": chosen,
        "neighbours": _neighbours(known, chosen),
        "is_current": is_current and at == own_k,
        "chart": pictures.frontier(known, own_k, chosen) if known else None,
        "unreachable": [row for row in rows if row["loss"] is None],
        "running": any(job.kind == "compare" for job in server.jobs.open),
        "lattice": await lattice_context(server, levels) if rows else None,
        "last_run": project.last_draft,
        "global_label": None if project.is_several else GLOBAL,
        "several": project.is_several,
        "once": server.new_once(),
    }


def _neighbours(rows: list[Context], chosen: Context | None) -> list[str]:
    """What one step to the nearest k, smaller and greater, would change."""
    if chosen is None:
        return []
    own = sorted((r["k"], r["loss"]) for r in rows if r["label"] == chosen["label"])
    place = own.index((chosen["k"], chosen["loss"]))
    found = []
    for k, loss in own[max(place - 1, 0) : place] + own[place + 1 : place + 2]:
        points = 100 * abs(loss - chosen["loss"])
        change = gettext("At k = {k} you would lose {points:.1f} points more.")
        if loss < chosen["loss"]:
            change = gettext("At k = {k} you would keep {points:.1f} points more.")
        found.append(change.format(k=k, points=points))
    return found


# The neighbourhood of levels in a global recoding: one step coarser or finer, walked by arrows.


WIDTH, HIGH, GAP = 112, 34, 8


async def lattice_context(server: Server, at: str) -> Context | None:
    """Levels around `at`, or around what the last draft of a global recoding has; None of none.

    at: a level for each column, such as 5.0.1.2: numbers alone, for an address holds no value.
    """
    run = _recoded(server)
    if run is None:
        return None
    found: Context = run.certificate["explanation"]
    best = found["node"]["levels"]
    names = list(best)
    levels = _levels(at, names) or best
    if levels != best:
        asked = {**server.asked_of(run), "levels": levels}
        stamp = [server.stamp(), server.hierarchies_sha(), run.name]
        with suppress(work.Refused):
            walked = await server.desk.soon("lattice", stamp=stamp, **asked)
            if walked is None:
                return {"run": run, "names": names, "waits": True}
            found = walked
    return {
        "run": run,
        "names": names,
        "waits": False,
        "node": {**found["node"], "text": " · ".join(map(str, found["node"]["levels"].values()))},
        "coarser": _drawn([n for n in found["neighbours"] if n["step"] > 0]),
        "finer": _drawn([n for n in found["neighbours"] if n["step"] < 0]),
        "is_best": found["node"]["levels"] == best,
        "command": _levels_command(server, run, found["node"]["levels"]),
    }


def _levels_command(server: Server, run: project.Run, levels: dict[str, int]) -> str:
    """The command that measures the same, under the policy of the draft."""
    is_own = server.asked_of(run)["base"] == str(run.folder)
    policy = f"runs/{run.name}/policy.yaml" if is_own else "policy.yaml"
    words = ["shoal", "compare", server.project.table_in_commands, "-p", policy]
    for name, level in levels.items():
        words += ["--levels", f"{name}:{level}"]
    return shlex.join(words)


def _recoded(server: Server) -> project.Run | None:
    """The last draft of a global recoding that is of the table as it is."""
    for run in filter(server.is_of_table, server.project.runs):
        if (run.certificate.get("explanation") or {}).get("node"):
            return run
    return None


def _levels(at: str, names: list[str]) -> dict[str, int] | None:
    levels = [level for part in at.split(".") if (level := edits.whole(part)) is not None]
    if len(levels) != len(names):
        return None
    return dict(zip(names, (min(level, 99) for level in levels), strict=True))


def _drawn(neighbours: list[Context]) -> list[Context]:
    """Boxes side by side, each with the address of its own neighbourhood."""
    return [
        {
            **one,
            "x": place * (WIDTH + GAP),
            "at": ".".join(map(str, one["levels"].values())),
            "text": f"{one['attribute']} {'+' if one['step'] > 0 else '−'}1",
        }
        for place, one in enumerate(neighbours)
    ]


CERTIFICATE = ".certificate.json"
MOST_LISTED = 50
OPTION = re.compile(r" (\(|with )--[a-z-]+\)?")
FIELDS = {
    "certificate": gettext("Its certificate"),
    "policy": gettext("Its policy"),
    "original": gettext("The table it was made of"),
    "trust": gettext("A public key that must have signed it"),
}


async def check_screen(server: Server) -> Context:
    """Released files below the start folder, and what the last check found."""
    job = server.jobs.last("verify")
    asked = job.asked if job else {}
    is_same = asked.get("stamps") == _stamps(asked)
    if job and job.result.get("policy"):  # the one beside the file
        asked = {**asked, "policy": job.result["policy"]}
    checks = job.result.get("checks") if job and job.state == "done" and is_same else None
    if checks is not None:  # the form has fields for what a shell calls options
        checks = [{**check, "text": OPTION.sub("", check["text"])} for check in checks]
    command = _command(server, asked) if asked else None
    return {
        **await frame(server, "check", gettext("Check a released file"), command),
        "listed": await asyncio.to_thread(released_below, server.project.start),
        "start": str(server.project.start),
        "fields": FIELDS,
        "once": server.new_once(),
        "checked": asked.get("named"),
        "checks": checks,
        "proved": proved(checks),
        "is_good": checks is not None and all(check["ok"] is not False for check in checks),
        "trouble": job.result if job and job.state in ("refused", "failed") else None,
        "has_changed": bool(job) and not is_same,
        "is_running": job is not None and not job.is_over,
    }


def proved(checks: list[Context] | None) -> list[str]:
    """What checks have proved, and what would prove the rest; without checks, what they can."""
    if checks is None:
        return [
            gettext(
                "That the file was not changed since it was measured; with its policy and the"
                " table it was made of, that its promises hold; with a public key, who signed it."
            )
        ]
    if any(check["ok"] is False for check in checks):
        return [gettext("That something is wrong: what is marked ✗.")]
    done = {check["name"] for check in checks if check["ok"]}
    return [
        gettext("That the file was not changed since it was measured."),
        gettext("That its promises hold: they were measured again.")
        if "promises" in done
        else gettext(
            "Not that its promises hold: that is stated, and was not measured again in full. It"
            " takes the policy and, to count people, the table it was made of."
        ),
        gettext("Who signed it: the owner of the key.")
        if "signature" in done
        else gettext("Not who made it: that takes a signature, and a public key to check it by."),
    ]


def released_below(start: Path) -> list[str]:
    """Released files, and folders of several tables, in the start folder and four levels below."""
    found: list[str] = []
    for place, folders, names in os.walk(start):
        depth = len(Path(place).relative_to(start).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < 4 else []
        known = set(names)
        if OF_TABLES in known and any(f"{PEOPLE}{suffix}" in known for suffix in SUFFIXES):
            found.append(os.path.relpath(place, start))
        for name in sorted(names):
            released = name.removesuffix(CERTIFICATE)
            if released != name and released in known:
                found.append(os.path.relpath(Path(place) / released, start))
        if len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]


async def started(server: Server, form: edits.Form) -> str:
    """Begins a check of the file that a form names."""
    named = edits.one(form, "typed") or edits.one(form, "path")
    asked: Context = {"named": named, "file": of_release(named, server.project.start)}
    for field in FIELDS:
        given = edits.one(form, field)
        asked[field] = _within(given, server.project.start) if given else None
    server.start("verify", edits.one(form, "once"), **asked, stamps=_stamps(asked))
    return "/check"


def _within(named: str, start: Path) -> str:
    """The file of this name, or the folder of several tables."""
    return str(policy_text.within(named, start, is_folder=(start / named).is_dir()))


def of_release(named: str, start: Path) -> str:
    """What is released under this name; in the folder of a project's release, its data."""
    found = _within(named, start)
    held = project.data_in(Path(found))
    return _within(str(held), start) if project.certificate_of(held).is_file() else found


def _stamps(asked: Context) -> list[list[int]]:
    """What changes when one of the files that a check reads does, found beside others or named."""
    named: list[str | None] = [asked.get(field) for field in ("file", *FIELDS)]
    if named[0]:
        named += [named[0] + CERTIFICATE, sensitive_path(named[0])]
    found = []
    for path in filter(None, named):
        with suppress(OSError):
            stat = os.stat(path)
            found.append([stat.st_ino, stat.st_mtime_ns, stat.st_size])
    return found


def _command(server: Server, asked: Context) -> list[str]:
    there = server.project.in_commands
    words = ["shoal", "verify", there(asked["file"])]
    if asked.get("certificate"):
        words.append(there(asked["certificate"]))
    for field, option in (("policy", "-p"), ("original", "--original"), ("trust", "--trust")):
        if asked.get(field):
            words += [option, there(asked[field])]
    return words


# One draft beside another: what was asked differently, and what came of it.


def beside(run: project.Run, other: project.Run) -> Context:
    """Figures of both drafts in rows, the losses of their columns, and the policies' changed lines.

    In each row: what it is, the other draft's, this draft's.
    """
    own, theirs = run.certificate, other.certificate
    losses, earlier = _losses(own), _losses(theirs)
    names = list(dict.fromkeys([*losses, *earlier]))
    rows = [(text, _text(figure(theirs)), _text(figure(own))) for text, figure in FIGURES]
    for name in names:
        was, now = (percent_text(shares.get(name), "–") for shares in (earlier, losses))
        rows.append((gettext("{n}, lost", n=name), was, now))
    return {
        "other": other,
        "rows": [{"text": t, "other": o, "own": s, "differs": o != s} for t, o, s in rows],
        "lines": only_changes(other.policy_text, run.policy_text),
        "is_other_table": run.about.get("table_sha") != other.about.get("table_sha"),
    }


def _losses(stated: Context) -> dict[str, float | None]:
    columns = stated.get("columns") or ()
    return {c["name"]: c.get("loss") for c in columns if c["role"] == "quasi"}


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _largest_risk(stated: Context) -> str:
    risk = (stated.get("risk") or {}).get("prosecutor_max")
    return gettext("1 in {risk:.0f}", risk=1 / risk) if risk else "–"


def _measured(stated: Context) -> str:
    found = [
        f"{' '.join([p['model'], *p['attributes']])} {p['measured']:.4g}"
        for p in stated["promises"]
        if isinstance(p["measured"], (int, float))
    ]
    return ", ".join(found)


FIGURES = (
    (gettext("Method"), lambda c: (c.get("method") or {}).get("name")),
    (gettext("Promises, as measured"), _measured),
    (gettext("Detail lost"), lambda c: percent_text(Certificate(c).loss, "–")),
    (gettext("Named at most"), _largest_risk),
    (gettext("Classes"), lambda c: c["classes"]["count"]),
    (gettext("Smallest class"), lambda c: c["classes"]["min"]),
    (gettext("Rows suppressed or withheld"), lambda c: Certificate(c).rows_lost),
)


ROUTES = [
    Route("/compare", shows(compare_screen, "m", "k", "at")),
    Route("/check", shows(check_screen)),
    Route("/check", takes(started), methods=["POST"]),
]
