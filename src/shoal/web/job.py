"""One job in a process of its own, so that it can be ended at any moment."""

import json
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

from shoal.advise.comparison import TRIED
from shoal.attacks.beside.audit import ReleaseBeside
from shoal.attacks.beside.others import Audited, OtherRelease, audited
from shoal.attacks.beside.sources import of_ledger
from shoal.attacks.run.request import AttackRequest
from shoal.auditor.audit import AuditResult
from shoal.auditor.ledger.release_view import verify_ledger
from shoal.auditor.ledger.terms import policy_of
from shoal.auditor.linked.audit import audit_linked
from shoal.auditor.signatures import open_key
from shoal.auditor.verify import policy_beside, verify
from shoal.connectors import files
from shoal.connectors.ledger import Ledger
from shoal.data.certificate import Certificate
from shoal.data.language import gettext
from shoal.data.progress import CompilerWatch
from shoal.data.warnings import LEDGER_UNJUDGED, ReleaseWarning
from shoal.errors import InputError, ShoalError
from shoal.linked.publish import publish_linked
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem
from shoal.reports import limits
from shoal.reports.attacks import UNASKED
from shoal.reports.distributions import Distribution, distributions_of, drawn_of, losses_of
from shoal.reports.dossier import dossier
from shoal.reports.linked import linked_distributions, write_linked_report
from shoal.reports.pages import Heading, measured_of
from shoal.reports.release import write_report
from shoal.tables import request
from shoal.tables.attack import attack_file
from shoal.tables.publish import publish_file
from shoal.web import project, sign_off
from shoal.web.policy_text import Context, json_of, stamp_of
from shoal.web.sign_off import trace_of
from shoal.web.work import Line, end_with_the_server, said

Tell = Callable[..., None]
BEAT = 1.0  # seconds


class _Stages:
    """Tells each stage once it begins, and how long it has taken every second."""

    def __init__(self, line: Line) -> None:
        self._line, self._begun = line, monotonic()
        self._now: Context = {"stage": "starting"}
        self._compiler = CompilerWatch()
        self._lock = threading.Lock()
        threading.Thread(target=self._beat, daemon=True).start()

    def __call__(self, stage: str, done: int | None = None, total: int | None = None) -> None:
        with self._lock:
            self._now = {"stage": stage, "done": done, "total": total}
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            now = dict(self._now)
        now["compiling"] = self._compiler.is_compiling  # which happens only the first time
        self._line.send({**now, "seconds": round(monotonic() - self._begun, 1)})

    def _beat(self) -> None:
        while True:
            threading.Event().wait(BEAT)
            self._tell()


def main() -> None:
    line = Line()
    asked = json.loads(sys.stdin.buffer.readline())
    end_with_the_server()
    tell = _Stages(line)
    try:
        if "base" in asked:  # it is about a draft
            asked["policy"] = Policy.from_dict(asked["policy"], asked["base"])
        found = JOBS[asked["kind"]](asked, tell, line)
    except Exception as error:  # the server says which
        found = said(error)
    line.send({"result": True, **found})


def _draft(asked: Context, tell: Tell, line: Line) -> Context:
    """A release in the run's folder, with its report; the certificate comes last."""
    folder, policy = Path(asked["folder"]), asked["policy"]
    options = request.publish_options(
        {"explain": policy.recodes_globally} | asked["options"] | {"trace": folder / project.TRACE}
    )
    if policy.model.is_linked:
        request.refuse_for_linked(request.of_one_table(options))
        return _draft_of_several(asked, folder, tell)
    wanted = request.PublishRequest(**vars(options), progress=tell)
    outcome = publish_file(asked["table"], policy, str(folder / project.DATA), wanted)
    tell(gettext("drawing the report"))
    write_report(outcome, policy, folder / "report.html", _heading(folder))
    _keep_people(asked, outcome)
    measured = measured_of(outcome, policy)
    drawn = distributions_of(measured, drawn_of(losses_of(measured)))
    _keep_shown(folder, drawn, _paid(measured))
    _certified_last(folder)
    return {}


def _draft_of_several(asked: Context, folder: Path, tell: Tell) -> Context:
    """A release of several tables, with its report; the certificate comes last."""
    tables, trace = folder / project.TABLES, folder / project.TRACE
    policy = asked["policy"]
    found = publish_linked(asked["table"], policy, str(tables), trace=str(trace), progress=tell)
    tell(gettext("drawing the report"))
    _keep_shown(folder, linked_distributions(found.audit, LinkedProblem(policy)), {})
    _draw_several(asked, found.certificate, folder / "report.html", _heading(folder))
    own = sign_off.in_tables(
        tables, LinkedProblem(policy), asked["table"], trace, found.certificate
    )
    sign_off.keep(folder / sign_off.PEOPLE, sign_off.project_key(Path(asked["key"])), own)
    _certified_last(folder)
    return {}


def _keep_shown(folder: Path, drawn: Iterable[Distribution], paid: Context) -> None:
    """What Result shows of a draft beside its certificate."""
    shown = {"distributions": [one.report() for one in drawn], **paid}
    (folder / project.SHOWN).write_text(json.dumps(shown), "utf-8")


def _draw_several(asked: Context, certificate: Certificate, path: Path, heading: Heading) -> None:
    """The report of a draft of several tables, with the distributions that are kept beside it."""
    kept: Context = json_of(Path(asked["folder"]) / project.SHOWN, {})
    drawn = [*map(Distribution.of, kept.get("distributions", ()))]
    write_linked_report(certificate, asked["policy"].model, path, heading, drawn)


def _certified_last(folder: Path) -> None:
    """Keeps all of a draft for its owner alone; it is one once its certificate is there."""
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    project.certificate_of(project.data_in(folder)).replace(folder / project.CERTIFICATE)


def _heading(folder: Path) -> Any:
    """What a draft's report says of itself, by the answers that are there."""
    context = folder.parent.parent / "release.yaml"
    return Heading.of(project.data_in(folder).name, context if context.is_file() else None)


def _keep_people(asked: Context, outcome: Any) -> None:
    """Who is in which class, by keyed hashes, so that a later draft can be judged beside this."""
    draft, folder = outcome.draft, Path(asked["folder"])
    result = AuditResult(outcome.certificate, outcome.release, draft.asked, draft.truth)
    own = Audited(result, OtherRelease(release=folder / project.DATA), asked["policy"])
    with suppress(InputError):  # nobody can be found again where the policy names no subject
        sign_off.keep(
            folder / sign_off.PEOPLE,
            sign_off.project_key(Path(asked["key"])),
            own.beside("the draft"),
        )


def _paid(measured: Any) -> Context:
    """Who pays most, what is kept of each column, and why rows are suppressed, without values."""
    found = limits.who_pays(measured.release)
    shown = {name: asdict(one) for name, one in limits.kept(measured.release).items()}
    return {"who_pays": found and asdict(found), "kept": shown, "reasons": dict(measured.reasons)}


def _marginal(asked: Context, tell: Tell, line: Line) -> Context:
    """What each column of a draft costs the others."""
    from shoal.advise.marginal import marginal

    found = marginal(
        asked["table"],
        asked["policy"],
        on_column=lambda price: line.send({"part": price.name}),
        progress=tell,
    )
    return {"prices": found.to_dict()}


def _compare(asked: Context, tell: Tell, line: Line) -> Context:
    """Every method at every k; each row is sent as soon as it is measured."""
    from shoal.advise.compare import compare

    compare(
        asked["table"],
        asked["policy"],
        ks=asked["ks"],
        on_row=lambda row: line.send({"part": "row", "row": _row(row)}),
        skip={(label, k) for label, k in asked["skip"]},
        progress=tell,
    )
    return {}


def _row(row: Any) -> Context:
    """What the page shows of a measured release."""
    found = row.as_dict()
    kept = ("label", "k", "holds", "reason", "classes", "least_class", "suppressed")
    promises = [
        {"text": f"{p['model']} {', '.join(p['attributes'])}", "measured": p["measured"]}
        for p in found["promises"]
        if p["model"] != "k-anonymity"
    ]
    shown = {name: found[name] for name in kept}
    return {**shown, "loss": row.score("gcp"), "promises": promises}


def _attack(asked: Context, tell: Tell, line: Line) -> Context:
    """Puts what the quick attacks, or all that need nothing more, find into a draft's papers."""
    folder = Path(asked["folder"])
    if (folder / project.TABLES).is_dir():
        return _attack_on_several(asked, folder, tell)
    stated, own = _measured(asked, folder)
    alone = (name for name, one in registry.attacks().items() if not {*one.needs} & {*UNASKED})
    found = attack_file(own, AttackRequest(tuple(alone) if asked["all"] else TRIED), tell)
    certificate = stated.extended(attacks=found.certificate["attacks"])
    certificate = _beside_others(
        asked, certificate, lambda: Audited(found, own, own.policy).beside("the draft"), tell
    )
    redrawn = replace(found, certificate=certificate)
    write_report(redrawn, own.policy, folder / "report.html", _heading(folder))
    _restate(folder, certificate)
    return {}


def _attack_on_several(asked: Context, folder: Path, tell: Tell) -> Context:
    """Tries to match everybody with all of their rows, and judges the draft beside others."""
    stated, policy = _stated(folder), asked["policy"]
    again = audit_linked(folder / project.TABLES, policy, asked["table"], progress=tell).certificate
    certificate = stated.extended(
        linked={**stated["linked"], "matching": again["linked"]["matching"]},
        faults={**stated["faults"], "matched": again["faults"]["matched"]},
    )
    certificate = _beside_others(
        asked,
        certificate,
        lambda: sign_off.in_tables(
            folder / project.TABLES,
            LinkedProblem(policy),
            asked["table"],
            folder / project.TRACE,
            stated,
        ),
        tell,
    )
    _draw_several(asked, certificate, folder / "report.html", _heading(folder))
    _restate(folder, certificate)
    return {}


def _stated(folder: Path) -> Certificate:
    """The certificate of a draft."""
    return Certificate(json.loads((folder / project.CERTIFICATE).read_text("utf-8")))


def _restate(folder: Path, certificate: Certificate) -> None:
    """The certificate of a draft in place of the one before."""
    with files.atomic_write(str(folder / project.CERTIFICATE), is_private=True) as unfinished:
        unfinished.write_text(certificate.to_json(), "utf-8")


def _beside_others(
    asked: Context, certificate: Certificate, draft: Callable[[], ReleaseBeside], tell: Tell
) -> Certificate:
    """A draft's certificate, judged together with other releases that share people with it."""
    folder = Path(asked["folder"])
    certificate, ledgers = _with_ledgers(asked, certificate, draft, tell)
    places = {name: Path(place) for name, place in asked["others"].items()} | ledgers
    beside = sign_off.judged_together(
        folder / sign_off.PEOPLE, sign_off.overlaps(folder / sign_off.PEOPLE, places)
    )
    return certificate if beside is None else certificate.extended(beside=beside)


def _with_ledgers(
    asked: Context, certificate: Certificate, draft: Callable[[], ReleaseBeside], tell: Tell
) -> tuple[Certificate, dict[str, Path]]:
    """A draft's certificate with each watched ledger that can't be judged together with it among
    its findings; the people of all others, by their names.
    """
    folder = Path(asked["folder"])
    kept, failed = {}, []
    for name, path in asked["ledgers"].items():
        tell(gettext("reading {name}", name=name))
        try:
            if path is None:
                raise InputError("its folder is not there, or can't be read; restore it")
            ledger = of_ledger(path, name)
            place = folder / f"{ledger.sha256}.npz"
            sign_off.keep_ledger(place, sign_off.project_key(Path(asked["key"])), ledger, draft())
            kept[name] = place
        except ShoalError as why:
            text = f"{sign_off.unjudged(name)}: {why.said[0].removeprefix(f'{name}: ')}"
            failed.append(ReleaseWarning(LEDGER_UNJUDGED, text))
    warnings = [one.report() for one in certificate.warnings if one.code != LEDGER_UNJUDGED]
    return certificate.extended(warnings=warnings).warned(*failed), kept


def _measured(asked: Context, folder: Path) -> tuple[Any, Any]:
    """A draft's certificate, and its file with the policy and method that made it."""
    stated = _stated(folder)
    method = stated["method"]
    by = asked["policy"].with_method(method["name"], method["parameters"])
    return stated, OtherRelease(
        release=folder / project.DATA, policy=by, original=asked["table"], trace=trace_of(folder)
    )


def _release(asked: Context, tell: Tell, line: Line) -> Context:
    """Everything that is released in one folder, verified; the server gives it its name."""
    key, passphrase = asked.get("key"), asked.get("passphrase")
    signer = open_key(key, lambda _: passphrase) if key else None
    run, draft = Path(asked["folder"]), Path(asked["draft"])
    draft.mkdir(mode=0o700, parents=True)
    own = project.data_in(run)
    released = draft / own.name
    (shutil.copytree if own.is_dir() else shutil.copyfile)(own, released)
    shutil.copyfile(run / project.CERTIFICATE, project.certificate_of(released))
    shutil.copyfile(run / "policy.yaml", draft / "policy.yaml")
    heading = Heading.of(own.name, asked["context"])  # answers may be later than the draft
    _report_again(asked, run, draft / "report.html", heading, tell)
    if (run / "hierarchies").is_dir():
        shutil.copytree(run / "hierarchies", draft / "hierarchies")
    _copy_for_readers(draft, asked["copies"])
    public = Path(f"{str(key).removesuffix('.pem')}.pub.pem").resolve()
    if signer is not None:
        signer.sign(project.certificate_of(released))
    for_recipient = sorted(draft.rglob("*"))  # the dossier, which comes after, stays
    with zipfile.ZipFile(draft / project.PACK, "w", zipfile.ZIP_DEFLATED) as pack:
        for path in for_recipient:
            pack.write(path, path.relative_to(draft))
    os.chdir(run.parent.parent)  # certificates of other releases are named from the project
    dossier(
        released,
        context=asked["context"],
        output=draft / "dossier.html",
        policy=asked["policy"],
        profiles=asked["profiles"],
        original=asked["table"],
        trace=None if released.is_dir() else trace_of(run),
        trust=[public] if signer is not None and public.is_file() else (),
        progress=tell,
    )
    if signer is not None:
        signer.sign(draft / "dossier.json")
    for path in draft.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return {}


def _report_again(asked: Context, run: Path, path: Path, heading: Heading, tell: Tell) -> None:
    """The report of a draft as its certificate is now."""
    if (run / project.TABLES).is_dir():
        _draw_several(asked, _stated(run), path, heading)
        return
    stated, own = _measured(asked, run)
    found = replace(audited(own, own.policy, tell).result, certificate=stated)
    write_report(found, own.policy, path, heading)


def _copy_for_readers(folder: Path, names: Sequence[str]) -> None:
    """Writes copies of the data that hold its cells, or raises InputError."""
    for copy in project.COPIES:
        if copy.name in names:
            frame, path = files.read(str(folder / project.DATA)).frame, folder / copy.name
            files.write(frame, path, path.suffix, dialect=copy.dialect)
            if not files.read(str(path)).frame.equals(frame):
                raise InputError(f"{copy.name}: can't hold these cells; leave out this copy")


def _verify(asked: Context, tell: Tell, line: Line) -> Context:
    """Every check of a released file against its certificate."""
    named = asked["policy"] or policy_beside(asked["file"], asked["certificate"])
    checks = verify(
        asked["file"],
        asked["certificate"],
        None if named is None else Policy.load(named),
        original=asked["original"],
        trust=[asked["trust"]] if asked["trust"] else (),
        progress=tell,
    )
    return {"checks": [check.report() for check in checks], "policy": named and str(named)}


def _what_if(asked: Context, tell: Tell, line: Line) -> Context:
    """What each method would do with the next increment of a ledger, under the ledger's policy."""
    from shoal.ledgers.what_if import prospects

    policy, stamp = policy_of(Ledger(Path(asked["folder"]))), stamp_of(Path(asked["increment"]))
    tell("reading the increment")
    source = policy.tables.read_original(asked["increment"], allow_empty=True)
    found = prospects(source, policy, Path(asked["folder"]), tell)
    kept = ("method", "outcome", "records", "gcp", "waiting", "told")
    return {
        "prospects": [{name: one.report()[name] for name in kept} for one in found],
        "sha256": source.sha256,
        "stamp": stamp,
        "head": verify_ledger(asked["folder"])[1],
    }


def _republish(asked: Context, tell: Tell, line: Line) -> Context:
    """Appends the increment that was signed off, by the method that was, to its ledger."""
    from shoal.ledgers.republish import republish_file, with_its_method

    folder = Path(asked["folder"])
    own = with_its_method(policy_of(Ledger(folder)), Ledger(folder))
    policy = own.with_method(asked["method"], {})
    source = policy.tables.read_original(asked["increment"], allow_empty=True)
    if source.sha256 != asked["sha256"]:
        raise InputError("increment: is not the one that was signed off; try it again")
    done = republish_file(source, policy, folder, progress=tell)
    return {"release": done.release, "waiting": done.waiting, "head": done.head}


JOBS: dict[str, Callable[[Context, Tell, Line], Context]] = {
    "draft": _draft,
    "marginal": _marginal,
    "compare": _compare,
    "attack": _attack,
    "release": _release,
    "verify": _verify,
    "what-if": _what_if,
    "republish": _republish,
}


if __name__ == "__main__":
    main()
