"""The gate's forms: answers, attacks, sign-offs, and the release itself."""

import json
import re
import secrets
import shlex
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from starlette.routing import Route

from shoal.auditor.dossier import dossier
from shoal.auditor.dossier.context import (
    RATINGS,
    SHOWN,
    Rating,
    read_context,
    text_fields,
    words_of,
)
from shoal.auditor.ledger.terms import policy_of
from shoal.auditor.verdict import GRAVE_ABOVE, TOLERATED, unjudged_together
from shoal.connectors.ledger import Ledger, sha256_of
from shoal.data.certificate import Certificate
from shoal.data.findings import some_named
from shoal.data.language import gettext
from shoal.errors import InputError, ShoalError
from shoal.reports.attacks import LEGEND, ranked, rows_of, which_tried
from shoal.reports.in_short import several_classes
from shoal.web import policy_text, project, sign_off
from shoal.web.edits import Form, lines_of, one
from shoal.web.frame import frame, person_answered, release_tried, shows, takes
from shoal.web.policy_text import Context, sha256, written
from shoal.web.project import RELEASE, Run
from shoal.web.server import Server
from shoal.web.sign_off import PEOPLE, Overlap, overlaps, unjudged


async def release(server: Server, form: Form) -> str:
    """Answers for release.yaml, attacks, or the release."""
    run = _draft(server, form)
    do = one(form, "do")
    if do == "answers":
        content, sentence, refused = with_answers(
            form, sign_off.context_of(server.project), published(run), sign_off.to_accept(run)
        )
        if sha256(written(content)) != release_sha(server):
            _unchanged(server, form)
        server.project.edit(sentence, {RELEASE: written(content)}, None)
        asking = one(form, "profile") or profile_of(server)
        if asking != profile_of(server):
            (profile,) = dossier.read_profiles([asking])
            said = gettext("the dossier asks by: {title}", title=profile.title)
            server.remember(said, profile=asking)
        if refused:
            raise InputError("answers: all others are saved; these are not", refused)
    elif do == "ask":
        asker = " ".join(one(form, "asker").split())
        said = (
            gettext("somebody else must sign off")
            if asker
            else gettext("whoever made the draft may sign off")
        )
        server.remember(said, asked_by=asker or None)
    elif do == "attack":
        server.start(
            "attack",
            one(form, "once"),
            **_asked(server, run),
            all=bool(one(form, "all")),
            key=str(server.people_key),
            others={other.name: str(other.place) for other in others_of(server, run)},
            ledgers={
                name: None if ledger is None else str(ledger.path)
                for name, ledger in ledgers_of(server, run).items()
            },
        )
    elif do == "release":
        _require_open(server, run)
        draft = server.project.folder / "releases" / f".{secrets.token_hex(6)}.draft"
        key = one(form, "private_key")
        server.start(
            "release",
            one(form, "once"),
            **_asked(server, run),
            key=str(policy_text.within(key, server.project.start)) if key else None,
            passphrase=one(form, "passphrase") or None,
            draft=str(draft),
            context=json.loads(json.dumps(_decided(server, run), default=str)),
            profiles=[profile_of(server)],
            copies=[copy.name for copy in project.COPIES if copy.name in form.get("copy", ())],
        )
    else:
        raise InputError("release: there is no such form; load the page again")
    return "/release"


def _draft(server: Server, form: Form) -> Run:
    run = server.project.last_draft
    if run is None or run.name != one(form, "run"):
        raise InputError("draft: there is a newer one; look at the gate again")
    return run


def _unchanged(server: Server, form: Form) -> None:
    if one(form, "release_base") != release_sha(server):
        raise InputError("release.yaml was changed elsewhere; look at it, and decide again")


def _asked(server: Server, run: Run) -> Context:
    return {"run": run.name, "folder": str(run.folder), **server.asked_of(run)}


def _decided(server: Server, run: Run) -> Context:
    """What is answered and decided about this draft's columns, findings, releases, sign-offs."""
    given = sign_off.with_sign_offs(server.project, run)
    found = {finding for point in sign_off.to_accept(run) for finding in point.findings}
    accepted = given.get("accepted") or {}
    given["accepted"] = {one: words for one, words in accepted.items() if one in found}
    reasons = given.get("attributes") or {}
    given["attributes"] = {name: reasons[name] for name in published(run) if name in reasons}
    ledgers, in_commands = ledgers_of(server, run), server.project.in_commands
    known = [
        in_commands(project.certificate_of(project.data_in(server.project.folder / other.name)))
        if (ledger := ledgers.get(other.name)) is None
        else in_commands(ledger.last)
        for other in others_of(server, run)
    ]
    if known:
        named = given.get("other_releases")
        given["other_releases"] = [*known, *(named if isinstance(named, list) else [])]
    return given


def _require_open(server: Server, run: Run) -> None:
    """Raises InputError while a condition is open."""
    lacking = [one for one in gate(server, run) if not one["is_met"]]
    if lacking:
        said = [f"{one['text']}{': ' + one['note'] if one['note'] else ''}" for one in lacking]
        raise InputError("the gate is shut; nothing was released", said)


async def sign(server: Server, form: Form) -> str:
    """A decision over the hashes of a draft, also a refusal; or one that is typed and not sent."""
    run = _draft(server, form)
    entry = {part: one(form, part) or None for part in ("name", "role", "decision", "comment")}
    if one(form, "kept"):  # on the way to something else
        policy_text.write(run.folder / sign_off.UNSIGNED, json.dumps(entry))
        return "/release"
    _unchanged(server, form)
    own = sign_off.hashes(server.project, run)
    decided = sign_off.decision(entry, own)
    if one(form, "shown") != sign_off.digest(own):
        raise InputError("sign-off: the draft is not the one that was shown; look at it again")
    kept = [*sign_off.signed(run), decided]
    policy_text.write(run.folder / sign_off.SIGNED, json.dumps(kept, indent=1))
    (run.folder / sign_off.UNSIGNED).unlink(missing_ok=True)
    word = gettext("accepted") if entry["decision"] == sign_off.ACCEPT else gettext("refused")
    text = written(sign_off.with_sign_offs(server.project, run))
    server.project.edit(
        gettext("draft {number} {word}", number=run.number, word=word), {RELEASE: text}, None
    )
    return "/release"


# Release: the gate, whose open points are links, the sign-off, and what moves out.


KINDS = {
    "public": gettext("Open to everybody"),
    "restricted": gettext("By contract"),
    "enclave": gettext("In a safe room"),
}


def others_of(server: Server, run: Run) -> list[Overlap]:
    """The project's other releases, and watched ledgers that were read, that share its people."""
    own = (run.certificate.get("output") or {}).get("sha256")
    released = sorted(server.released_people().glob("*.npz"))
    known = {f"releases/{place.stem}": place for place in released}
    for name, ledger in ledgers_of(server, run).items():
        if ledger is not None and (place := _people_of(ledger, run)).is_file():
            known[name] = place
    return [other for other in overlaps(run.folder / PEOPLE, known) if other.sha256 != own]


def _people_of(ledger: Ledger, run: Run) -> Path:
    """Where the people of a ledger are kept beside a draft once they are read."""
    return run.folder / f"{sha256_of(ledger.last)}.npz"


def _unread(server: Server, run: Run) -> dict[str, str]:
    """The ledgers whose people are not known, each with the finding of whoever tried to read it."""
    said = [one.text for one in Certificate(run.certificate).warnings]
    return {
        name: next((text for text in said if text.startswith(unjudged(name))), "")
        for name, ledger in ledgers_of(server, run).items()
        if ledger is None or not _people_of(ledger, run).is_file()
    }


def _together(run: Run, others: list[Overlap], unread: dict[str, str]) -> tuple[bool, str]:
    """Whether a draft was judged together with these releases and all holds; what is open."""
    beside = run.certificate.get("beside") or {}
    judged = {release.get("sha256") for release in beside.get("releases", ())}
    left = [name for name, why in unread.items() if not why]
    left += [other.name for other in others if other.sha256 not in judged]
    if left:
        return False, gettext(
            "{others}: try attacks to judge them together", others=some_named(left)
        )
    if not others:
        return True, "; ".join(map(unjudged, unread))
    names = {other.sha256: other.name for other in others}
    if beside["holds"]:
        return True, gettext("{others}: together they hold", others=some_named([*names.values()]))
    named = [names.get(release["sha256"], gettext("this draft")) for release in beside["releases"]]
    by_ledger = [] if run.certificate.get("linked") else [BY_LEDGER]  # which takes one table
    return False, "; ".join([*_broken_together(beside, named), KEEP_APART, *by_ledger])


KEEP_APART = gettext("keep this draft back, or make it of other people alone")
BY_LEDGER = gettext("what comes every month goes by a ledger from its first month on")


def _broken_together(beside: Context, named: list[str]) -> Iterator[str]:
    """Which releases break which promise, and of how many people."""
    for name, release in zip(named, beside["releases"], strict=True):
        if not release["holds"]:
            yield gettext("{name} breaks a promise by itself", name=name)
    pairs = [pair for pair in beside["pairs"] if pair["below_k"]]
    for pair in pairs or [beside | {"releases": range(1, len(named) + 1)}]:
        if pair["below_k"]:
            yield gettext(
                "{both} together: of {people:,} people in both, {below:,} hide among fewer than"
                " k = {k}",
                both=some_named([named[number - 1] for number in pair["releases"]]),
                people=pair["people"],
                below=pair["below_k"],
                k=beside["k"],
            )
    for row in beside["attributes"]:
        if row["below"]:
            yield gettext(
                "{all} together: of {people:,} people in them, {below:,} keep fewer than {l}"
                " possible values of {attribute}, and {certain:,} a single one",
                all=some_named([named[number - 1] for number in row["releases"]]),
                people=row["people"],
                below=row["below"],
                certain=row["certain"],
                l=row["asked"],
                attribute=some_named([*dict.fromkeys(row["names"])]),
            )
    yield from unjudged_together(beside)


def ledgers_of(server: Server, run: Run) -> dict[str, Ledger | None]:
    """Watched ledgers whose people a draft may share, by the same column; None if unreadable."""
    own = {c["name"] for c in run.certificate.get("columns") or () if c["role"] == "subject"}
    found: dict[str, Ledger | None] = {}
    for place in server.project.places if own else ():
        if place["kind"] == "ledger":
            name = gettext("ledger {name}", name=place["path"])
            try:
                at = policy_text.within(place["path"], server.project.start, is_folder=True)
                ledger = Ledger.at(at)
                if own & {*policy_of(ledger).model.subject_columns}:
                    found[name] = ledger
            except (ShoalError, policy_text.NotThere):
                found[name] = None
    return found


def gate(server: Server, run: Run) -> Iterator[Context]:
    """Every condition of a release: whether it is met, what it says, where to settle it."""
    stated, given = Certificate(run.certificate), sign_off.context_of(server.project)
    own = sign_off.hashes(server.project, run)
    is_measured = stated.get("output", {}).get("sha256") == own["data"]
    holds = is_measured and all(promise["holds"] for promise in stated["promises"])
    draft = gettext("draft {number}", number=run.number)
    if not holds:
        why = gettext("a promise fails") if is_measured else gettext("its file was changed")
        draft = f"{draft}: {why}"
    yield _condition(gettext("Every promise holds on the file"), holds, draft, "/result")
    stale = server.stale_parts(run)
    changed = gettext("{stale} changed", stale=", ".join(stale)) if stale else ""
    unchanged = gettext("Table, policy and hierarchies unchanged since")
    yield _condition(unchanged, not stale, changed, "/result")
    is_said = person_answered(server)
    yield _condition(gettext("Who is one person is answered"), is_said, "", "/columns")
    tried = bool(rows_of(stated))
    which = which_tried(stated) if tried else gettext("not yet")
    attacked = gettext("Attacks tried")
    if stated.get("linked"):
        attacked = gettext("People matched with all their rows")
    yield _condition(attacked, tried, which, "#attacks")
    points = sign_off.to_accept(run)
    lacking = sign_off.shortcomings(points, given.get("accepted") or {})
    open_points = [point for point, lacks in zip(points, lacking, strict=True) if lacks]
    leaves = gettext("Accepted that {name} leaves as it is, not protected")
    for point in points:
        if point.column:
            is_open = point in open_points
            note = gettext("not yet") if is_open else ""
            yield _condition(leaves.format(name=point.column), not is_open, note, "#accept")
    not_accepted = sum(not point.column for point in open_points)
    to_say = gettext("{not_accepted} open", not_accepted=not_accepted) if not_accepted else ""
    to_say = to_say if tried else gettext("waits for the attacks")
    grave = gettext("No other grave finding")
    if to_say or not all(point.column for point in points):
        grave = gettext("Other grave findings accepted in words")
    yield _condition(grave, not to_say, to_say, "#accept" if not_accepted else "#attacks")
    asked = {
        gettext("recipient"): (given.get("recipient") or {}).get("who"),
        gettext("purpose"): given.get("purpose"),
        gettext("controls"): (given.get("controls") or {}).get("agreement"),
        gettext("review date"): given.get("review_by"),
    }
    left = ", ".join(name for name, value in asked.items() if not value)
    yield _condition(gettext("Recipient, purpose, controls, review"), not left, left, "#who")
    left = some_named([name for name in published(run) if not _why(given, name)])
    yield _condition(gettext("A reason for every column"), not left, left, "#why")
    others, unread = others_of(server, run), _unread(server, run)
    named = given.get("other_releases")
    is_safe, said = bool(named), "" if named else gettext("not answered")
    if isinstance(named, list) and not given.get("not_judged"):
        is_safe, said = False, gettext("say why they could not be judged with this draft")
    if others or unread:
        is_safe, said = _together(run, others, unread)
    is_grave = bool(said) and not (stated.get("beside") or {"holds": True})["holds"]
    place = "#attacks" if others or unread else "#other"
    yield _condition(
        gettext("Other releases of these people"), is_safe, said, place, is_grave=is_grave
    )
    signer, why_not = sign_off.standing(server.project, run)
    signing = gettext("Signed off")
    if server.project.about.get("asked_by"):
        signing = gettext("Signed off by somebody else")
    by = gettext("by {signer}", signer=signer) if signer else why_not
    yield _condition(signing, bool(signer), by, "#sign")


def _condition(text: str, is_met: bool, note: str, href: str, is_grave: bool = False) -> Context:
    return {"text": text, "is_met": is_met, "note": note, "href": href, "is_grave": is_grave}


def published(run: Run) -> list[str]:
    """The columns that readers get, those included that the policy leaves to `other: plain`."""
    shown = ("quasi", "sensitive", "plain")
    return [
        column["name"]
        for column in run.certificate.get("columns") or ()
        if column["role"] in shown
        and column["technique"] != "removed"
        and not column["derived_from"]
    ]


def _why(given: Context, name: str) -> str:
    return str(((given.get("attributes") or {}).get(name) or {}).get("why") or "")


async def release_screen(server: Server) -> Context:
    """The last draft at the gate."""
    run = server.project.last_draft
    data = f"runs/{run.name}/{run.data.name}" if run else project.DRAFT
    certificate = f"runs/{run.name}/certificate.json" if run else ""
    words = ["shoal", "dossier", data, certificate, "--context", RELEASE, "-o", "dossier.html"]
    profile = profile_of(server)
    words += ["--profile", profile] if profile != dossier.DEFAULT else []
    folder = server.project.folder / "releases"
    context = {
        **await frame(server, "release", gettext("Release")),
        "start": str(server.project.start),
        "run": run,
        "command": shlex.join(filter(None, words)),
        "once": server.new_once(),
        "releases": [_listed(folder / name) for name in sign_off.releases(server.project)],
        "released": None,
        "folder": folder,
        "next_release": sign_off.next_release(folder),
        "copies": () if server.project.is_several else project.COPIES,
        "will_be": _will_be_written(run),
        "release_text": policy_text.text_of(server.project.folder / RELEASE) or "version: 1\n",
        "release_base": release_sha(server),
    }
    if run is None:
        return context
    given, conditions = sign_off.context_of(server.project), [*gate(server, run)]
    own = sign_off.hashes(server.project, run)
    columns = {c["name"]: c for c in run.certificate.get("columns") or ()}
    released = sign_off.released_as(server.project, run)
    leaves = folder / (released or "")
    paths = [*leaves.glob("*.*"), *(leaves / project.TABLES).glob("*.*")] if released else []
    files = sorted(path.relative_to(leaves).as_posix() for path in paths if path.is_file())
    answered = read_context(_decided(server, run))
    stated = Certificate(run.certificate)
    signer, _ = sign_off.standing(server.project, run)
    open_fields = dossier.unanswered(stated, answered, profile)
    lacking = [
        {
            "field": field,
            "text": gettext(dossier.field_words(field)),
            "lacks": "" if lacks == "empty" else lacks,
            "href": PLACES.get(
                dossier.ATTACKS if field.startswith(dossier.ATTACKS) else field, "#asked"
            ),
        }
        for field, lacks in open_fields.items()
        if field != "sign_off" or signer  # until then the gate asks for it
    ]
    to_do = {c["href"] for c in conditions if not c["is_met"]}
    to_do |= {q["href"] for q in lacking} - {"#attacks", "#sign"}  # which the gate asks for
    if not signer:
        to_do.add("#attacks")  # whoever signs has seen what they found
    return {
        **context,
        "stated": stated,
        "given": given,
        "gate": conditions,
        "several_classes": several_classes(stated),
        "met": sum(1 for condition in conditions if condition["is_met"]),
        "open": sum(1 for condition in conditions if not condition["is_met"]),
        "kinds": KINDS,
        "columns": [
            {
                "name": name,
                "why": _why(given, name),
                "done": gettext(
                    SHOWN.get(str((columns.get(name) or {}).get("technique")), "as it is")
                ),
                "rated": _first_rating(columns.get(name) or {}, context["risk"] or {})
                | ((given.get("attributes") or {}).get(name) or {}),
                "number": number,
            }
            for number, name in enumerate(published(run), 1)
        ],
        "ratings": {key: gettext(str(Rating.model_fields[key].title)) for key in RATINGS},
        "grades": GRADES,
        "profile": profile,
        "profiles": dossier.read_profiles(dossier.profile_names()),
        "further": further_fields(given),
        "asked": {field.partition(".")[0] for field in dossier.asked_fields(profile)},
        "lacking": lacking,
        "to_do": to_do | {BESIDE[part] for part in to_do if part in BESIDE},
        "released": released,
        "tried": release_tried(server),
        "for_recipient": [name for name in files if not name.startswith("dossier.")],
        "pack": project.PACK,
        "people": server.project.people_name,
        "to_keep": [name for name in files if name.startswith("dossier.")],
        "attacks": ranked(stated, given.get("accepted") or {}),
        "found": len(rows_of(stated)),
        "legend": LEGEND,
        "to_accept": sign_off.to_accept(run),
        "carried_over": run.about.get("carried_over") or {},
        "signer": signer,
        "fewest": sign_off.FEWEST_SIGNS,
        "too_short": sign_off.TOO_SHORT,
        "others": others_of(server, run),
        "unread": _unread(server, run),
        "decisions": [
            one | {"is_own": sign_off.is_own(server.project, one)} for one in sign_off.signed(run)
        ],
        "unsigned": policy_text.json_of(run.folder / sign_off.UNSIGNED, {}),
        "asked_by": server.project.about.get("asked_by"),
        "own_hashes": own,
        "shown": sign_off.digest(own),
    }


def _listed(release: Path) -> Context:
    """A release by its certificate, with its rows, of several tables in all of them."""
    stated: Context = policy_text.json_of(project.certificate_of(project.data_in(release)), {})
    rows = (stated.get("records") or {}).get("out")
    if tables := stated.get("tables"):
        rows = sum(table["rows"]["published"] for table in tables)
    return {**stated, "name": release.name, "rows": rows}


def _will_be_written(run: Run | None) -> list[str]:
    """The files of a release, by their names in its folder."""
    data = [f"{project.DATA}", f"{project.DATA}.certificate.json"]
    if run is not None and run.data.is_dir():
        names = [path.name for path in project.tables_in(run.data)]
        data = [f"{project.TABLES}/{name}" for name in (*names, project.CERTIFICATE)]
    return [*data, "report.html, dossier.html", "dossier.json, policy.yaml", project.PACK]


def profile_of(server: Server) -> str:
    """The profile whose questions the dossier asks."""
    return str(server.project.about.get("profile") or dossier.DEFAULT)


def release_sha(server: Server) -> str:
    return sha256(policy_text.text_of(server.project.folder / RELEASE) or "")


OWN_NAMES = {
    "controller.name": "controller.name",
    "controller.contact": "controller.contact",
    "recipient.who": "who",
    "recipient.kind": "kind",
    "purpose": "purpose",
    "controls.agreement": "controls",
    "review_by": "review_by",
    "not_judged": "not_judged",
}
"""Answers with a field of their own in the form; all others are among its further ones."""
PLACES = {
    "attributes": "#why",
    "controller": "#who",
    "purpose": "#who",
    "review_by": "#who",
    "other_releases": "#other",
    "sign_off": "#sign",
    dossier.ATTACKS: "#attacks",
}
"""Where the form asks for it; all else that the profile asks for stands under #asked."""
BESIDE = {"#accept": "#attacks", "#other": "#who"}
"""Parts of the form that have to be in sight for what stands in another."""
GRADES = ("low", "medium", "high")


def _first_rating(column: Context, risk: Context) -> Context:
    """How a column could single somebody out, as far as its role and the table show."""
    name, people = column.get("name"), risk.get("people") or 0
    alone = ((risk.get("columns") or {}).get(name) or {}).get("alone")
    alone = (risk.get("if_known") or {}).get(name) if alone is None else alone
    available = {"quasi": "high", "sensitive": "low"}.get(str(column.get("role")))
    found: Context = {"available": available}
    if alone is not None and people:
        alone -= risk.get("alone_by_counts") or 0  # whom no column singles out
        grade = (alone > TOLERATED * people) + (alone > GRAVE_ABOVE * people)
        found["distinguishing"] = GRADES[grade]
    return found


def further_fields(given: Context) -> list[Context]:
    """The other answers of a context, with what each is called."""
    return [
        {
            "name": field,
            "text": gettext(words_of(field)),
            "value": _answer(given, field),
            "is_date": field in DATES,
            "pattern": SHARE if field in SHARES else None,
            "title": SHARE_WAYS,
        }
        for field in text_fields()
        if field not in OWN_NAMES
    ]


def _answer(given: Context, field: str) -> Any:
    value: Any = given
    for key in field.split("."):
        value = (value or {}).get(key)
    return "; ".join(value) if isinstance(value, list) else value


def with_answers(
    form: Form, given: Context, names: list[str], points: list[sign_off.Point]
) -> tuple[Context, str, list[str]]:
    """release.yaml with what a form says, what was said, and each answer that can't be read.

    Only what release.yaml has fields for; what can't be read stays as it was. Raises InputError.
    points: what has to be accepted in words.
    """
    content, said, refused = dict(given), [], []
    for field in text_fields():
        name = OWN_NAMES.get(field, field)
        if name in form and one(form, name) != str(_answer(given, field) or ""):
            first, _, part = field.partition(".")
            try:
                value = _typed(field, one(form, name))
            except InputError as unread:
                refused.append(str(unread))
                continue
            content[first] = {**(content.get(first) or {}), part: value} if part else value
            said.append(gettext(words_of(field)))
    other = one(form, "other")
    others = "none-known" if other == "none" else lines_of(form, "others") if other else None
    if others == []:
        raise InputError("other releases: none is named; name their certificates, one a line")
    kept = given.get("accepted") or {}
    typed = {
        finding: " ".join(one(form, name).split())
        for number, point in enumerate(points, 1)
        if (name := f"accept-{number}") in form
        for finding in point.findings
    }
    for point, lacks in zip(points, sign_off.shortcomings(points, kept | typed), strict=True):
        if lacks and typed.get(about := point.findings[0]):
            about = point.column or about
            refused.append(gettext("“{about}” is not accepted: {lacks}", about=about, lacks=lacks))
            typed = {text: typed[text] for text in typed if text not in point.findings}
    found = {text for point in points for text in point.findings}
    changes = {
        "accepted": {text: why for text, why in (kept | typed).items() if why and text in found},
        "other_releases": others,
    }
    for key, value in changes.items():
        if content.get(key) != value and (value or content.get(key)):
            content[key] = value
            said.append(gettext(key.replace("_", " ")))
    reasons = dict(given.get("attributes") or {})
    above: Context = {}
    for number, name in enumerate(names, 1):
        rated = reasons.get(name) or {}
        asked = {key: f"{key}-{number}" for key in ("why", *RATINGS)}
        more = {key: one(form, field) or None for key, field in asked.items() if field in form}
        if one(form, f"same-{number}"):
            more = {key: more.get(key) or above.get(key) for key in above | more}
        above = more
        changed = [key for key, value in more.items() if rated.get(key) != value]
        if changed:
            reasons[name] = {**rated, **more}
            what = gettext("a reason for {name}", name=name)
            said.append(what if "why" in changed else gettext("ratings of columns"))
    if reasons:
        content["attributes"] = reasons
    read_context(content)
    changed_parts = some_named([*dict.fromkeys(said)]) or gettext("nothing new")
    return content, gettext("release: ") + changed_parts, refused


def _typed(field: str, text: str) -> Any:
    """An answer as release.yaml has it, such as a date, a number or a list; raises InputError."""
    if not text:
        return None
    if field == "review_triggers":
        return [part.strip() for part in text.split(";") if part.strip()]
    if field in DATES:
        with suppress(ValueError):
            return date.fromisoformat(text)
        raise InputError(f"{words_of(field)}: write a date such as 2031-12-24")
    if field not in SHARES:
        return text
    if not re.fullmatch(SHARE, text):
        raise InputError(f"{words_of(field)}: {gettext(SHARE_WAYS)}")
    first, *second = (float(part.replace(",", ".")) for part in re.findall(r"[\d.,]+", text))
    return first / second[0] if second else first / 100 if "%" in text else first


DATES = ("review_by", "expert.valid_until")
SHARES = ("threshold.max", "threshold.mean")
SHARE = r"\s*(0?[.,]\d+|0|1|(\d{1,2}([.,]\d+)?|100)\s*%|1\s*(in|/|:)\s*[1-9]\d*)\s*"
"""What a field for a share takes, in a browser and here."""
SHARE_WAYS = gettext("write a share such as 0.1, 10 % or 1 in 10")


ROUTES = [
    Route("/release", shows(release_screen)),
    Route("/release", takes(release), methods=["POST"]),
    Route("/sign", takes(sign), methods=["POST"]),
]
