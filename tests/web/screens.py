"""Writes every screen of the page, the reports and a dossier below a folder, in the language of the
environment: test_language runs it.
"""

import os
import re
import sys
from pathlib import Path

from shoal.cli.main import status_of
from shoal.samples import clinic, patients
from web.visitor import Visitor, number_of, served
from web.walk import acceptances

ANSWERS = {"who": "W1", "purpose": "P2", "controls": "C3", "review_by": "2031-01-01"}


def write_screens(start: Path) -> None:
    """The pages in start/pages, and all that they show the data of beside it."""
    os.chdir(start)
    patients.generate(300, seed=3).write_csv("patients.csv")
    pages = start / "pages"
    pages.mkdir()
    write_stream_and_ledger()
    with served(start / "project", start, own_desk=True) as server:
        visitor = Visitor(server)

        def keep(name: str, path: str, *words: str) -> None:
            answer = visitor.until(path, words[0]) if words else visitor.get(path)
            (pages / f"{name}.html").write_text(answer.page)

        for screen in ("open", "columns", "promises", "release", "result", "check", "watch"):
            keep(f"empty-{screen}", f"/{screen}")
        visitor.post("/table", path="patients.csv")
        keep("asked", "/columns", "300")
        visitor.edit("person", person=str(number_of(server, "patient")))
        visitor.give("charge", "sensitive")
        visitor.give("name", "plain")
        visitor.edit("k", k="4")
        for screen in ("open", "columns", "hierarchies", "promises", "help", "history", "text"):
            keep(screen, f"/{screen}")
        visitor.get("/promises")
        visitor.send("draft-form")
        keep("result", "/result", "draft's file")
        visitor.send("attacker-most-exposed", which="most-exposed")
        keep("attacker", "/result")
        visitor.get("/result")
        visitor.send("rows-form")
        (pages / "rows.html").write_text(visitor.last.page)
        visitor.get("/release")
        visitor.send("attack-form")
        keep("attacked", "/release", "Try again")
        words = dict.fromkeys(re.findall(r'name="(why-\d+)"', visitor.last.text), "R4")
        for number, (field, said) in enumerate(acceptances(visitor.last.text).items()):
            column = said.partition(":")[0].strip("⟦").replace("this", "")
            words[field] = f"R4 R5 R6: {column}: R7 R8 P{number}"
        visitor.send("answers", **ANSWERS, other="none", **words)
        visitor.get("/release")
        visitor.send("sign-form", name="Ada", role="DPO", decision="accept")
        visitor.send("release-form")
        keep("released", "/release", "✓ Released")
        run, release = server.project.runs[0].name, next((start / "project" / "releases").iterdir())
        keep("report", f"/runs/{run}/report")
        keep("dossier", f"/releases/{release.name}/dossier")
        keep("missing", "/nothing")
        keep("compare", "/compare")
        visitor.post("/watch", kind="stream", path="s")
        keep("stream-screen", "/stream/1")
        visitor.post("/watch", kind="ledger", path="led")
        keep("ledger-screen", "/ledger/2", "The history holds")
        visitor.post("/check", path="s.csv", once="1")
        keep("checked", "/check", "No check fails")
    write_several(start, pages)
    compare = (
        "compare patients.csv -p project/policy.yaml --methods mondrian --ks 4,8 -o rows.json -q"
    )
    assert status_of([*compare.split(), "--report", "pages/compare-report.html"]) == 0


def write_several(start: Path, pages: Path) -> None:
    """The screens of several tables, one of which has no link that is sure."""
    (start / "clinic").mkdir()
    for name, frame in clinic.generate_tables(60, seed=3).items():
        renamed = frame.rename({"visit": "stay"}) if name == "drugs" else frame
        renamed.write_csv(start / "clinic" / f"{name}.csv")
    with served(start / "several", start, own_desk=True) as server:
        visitor = Visitor(server)

        def keep(name: str, path: str, *words: str) -> None:
            answer = visitor.until(path, words[0], 300) if words else visitor.get(path)
            (pages / f"several-{name}.html").write_text(answer.page)

        visitor.until("/open?t=clinic", "Open them together", 300)
        (pages / "several-open.html").write_text(visitor.last.page)
        visitor.send("together-form")
        keep("asked", "/columns", "60")
        visitor.edit("parent", link="drugs\tstay\tvisits\tvisit")
        visitor.edit("person", person="1")
        visitor.give("drugs.drug", "sensitive")
        visitor.give("drugs.packs", "plain")
        visitor.give("visits.day", "drop")
        visitor.edit("k", k="4")
        keep("columns", "/columns", "60")
        keep("promises", "/promises", "60")
        visitor.get("/promises")
        visitor.send("draft-form")
        keep("result", "/result", "runs/0001")
        visitor.get("/release")
        visitor.send("attack-form")
        keep("attacked", "/release", "60")
        keep("report", f"/runs/{server.project.runs[0].name}/report")


def write_stream_and_ledger() -> None:
    """A stream and a ledger below the current folder, with their reports."""
    purchases = "sample purchases -n 2000 --seed 7 -o purchases.csv -q".split()
    assert status_of(purchases) == 0
    stream = "stream purchases.csv -p purchases.policy.yaml -o s.csv --checkpoint s -q"
    assert status_of([*stream.split(), "--report", "pages/stream.html"]) == 0
    for seed in ("1", "2"):
        wearables = f"sample wearables -n 400 --seed {seed} -o w.csv -q --replace"
        assert status_of(wearables.split()) == 0
        assert status_of("republish w.csv -p w.policy.yaml --ledger led -q".split()) == 0
    assert status_of("audit --ledger led --report pages/history.html -q".split()) in (0, 1)


if __name__ == "__main__":
    write_screens(Path(sys.argv[1]))
