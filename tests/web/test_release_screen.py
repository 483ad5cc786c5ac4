"""The gate: what keeps it shut, what a sign-off is over, and what leaves."""

import hashlib
import json
import re
import shutil
import zipfile
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
import yaml

from shoal.auditor.dossier.context import text_fields
from shoal.auditor.signatures import new_key
from shoal.auditor.verify import verify
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.web.project import COPIES, PACK
from shoal.web.routes_of_release import OWN_NAMES
from shoal.web.sign_off import Overlap, context_of
from web.test_page import draft
from web.visitor import Visitor
from web.walk import acceptances
from web.written import others_in


def gate(visitor: Visitor) -> dict[str, bool]:
    """The conditions as the page shows them, and whether they are met."""
    rows = visitor.get("/release").text.partition('id="gate"')[2].partition("</table>")[0]
    found = {}
    for row in rows.split("<tr>")[1:]:
        words = Visitor.words_of(row)
        found[words.split(" ", 1)[1]] = words.startswith("✓")
    return found


def answered(visitor) -> None:
    """Every answer that the gate asks for, and the attacks."""
    page = visitor.get("/release")
    assert not re.search(r'name="other"[^>]* checked', page.text)  # nobody is answered for
    names = [f"why-{number}" for number in range(1, 8)]
    visitor.send(
        "answers",
        who="Health services",
        purpose="Waiting times",
        controls="No linking",
        review_by="2031-01-01",
        other="none",
        **dict.fromkeys(names, "needed"),
    )
    visitor.send("attack-form")
    visitor.until("/release", "✓ Attacks tried")
    visitor.get("/release")
    visitor.send("answers", **acceptances(visitor.last.text))


def released(visitor, **form) -> Path:
    """Signs the draft off and releases it; the folder of the one release that there is."""
    visitor.send("sign-form", name="Ada", decision="accept")
    visitor.send("release-form", **form)
    visitor.until("/release", "✓ Released:")
    (place,) = (visitor.server.project.folder / "releases").iterdir()
    return place


@pytest.mark.long
def test_a_release_leaves_whole_after_every_condition_and_a_touched_file_shuts_the_gate(
    opened, tables
):
    name = draft(opened, k="4")
    project = opened.server.project
    assert sum(gate(opened).values()) == 3
    refused = opened.post("/release", do="release", run=name)
    assert refused.status == 422
    assert not (project.folder / "releases").exists()
    answered(opened)
    assert [text for text, met in gate(opened).items() if not met] == ["Signed off not yet"]
    said = next(text for text in gate(opened) if text.startswith("Attacks tried"))
    assert "3 of 10 attacks were tried, and one may find several things" in said
    assert "not tried: homogeneity, " in said
    assert "skewness (not asked for); intersection (needs another release of" in said
    # a refusal is kept, and shuts the gate; an approval over the same bytes opens it
    opened.send("sign-form", name="Ada", role="data protection", decision="reject")
    assert [text for text, met in gate(opened).items() if not met] == ["Signed off refused"]
    # four eyes: who asks can't sign off
    opened.send("ask-form", asker=" BEN ")
    opened.send("sign-form", name="Ben", role="head of study", decision="accept")
    assert "Signed off by somebody else by who asked for it" in gate(opened)
    assert "does not count: they asked somebody else" in opened.get("/release").words
    given = yaml.safe_load((opened.server.project.folder / "release.yaml").read_text())
    assert [one["name"] for one in given["sign_off"]] == ["Ada"]
    opened.send("ask-form", asker="")
    assert all(gate(opened).values())
    # another recipient than was signed for, or other findings of attacks, shut it again
    signed_for = opened.last
    opened.send("answers", who="Everybody")
    assert not gate(opened)["Signed off something has changed since; sign off again"]
    assert opened.post("/release", do="release", run=name).status == 422
    opened.last = signed_for
    stale = opened.send("sign-form", name="Ada", decision="accept")
    assert stale.status == 422
    opened.get("/release")
    opened.send("answers", who="Health services")
    assert all(gate(opened).values())
    tried = project.run(name).folder / "certificate.json"
    found = tried.read_bytes()
    stated = json.loads(found)
    stated["attacks"]["skipped"] = {"linkability": "nothing"}
    tried.write_text(json.dumps(stated))
    assert not gate(opened)["Signed off something has changed since; sign off again"]
    tried.write_bytes(found)
    # the table, the policy and the data are what was signed, or the gate names them
    path = tables / "patients.csv"
    original = path.read_bytes()
    path.write_bytes(original + original.splitlines(keepends=True)[1])
    shut = gate(opened)
    assert not shut["Table, policy and hierarchies unchanged since table changed"]
    path.write_bytes(original)
    opened.post("/table", again="1")
    opened.edit("k", k="5")
    assert not gate(opened)["Table, policy and hierarchies unchanged since policy changed"]
    opened.edit("k", k="4")
    tree = project.folder / "hierarchies" / "new.csv"
    tree.parent.mkdir()
    tree.write_text("a;*\n")
    text = "Table, policy and hierarchies unchanged since hierarchies changed"
    assert not gate(opened)[text]
    tree.unlink()
    data = project.run(name).folder / "data.csv"
    whole = data.read_bytes()
    data.write_bytes(whole.replace(b"female", b"male  ", 1))
    assert not gate(opened)[
        f"Every promise holds on the file draft {int(name)}: its file was changed"
    ]
    assert "(over something else)" in opened.last.words
    data.write_bytes(whole)
    assert all(gate(opened).values())
    # what somebody refuses while it is made ready does not leave
    shown = opened.get("/release")
    opened.send("release-form")
    opened.last = shown
    opened.send("sign-form", name="Ada", decision="reject")
    opened.until("/release", "Nothing was released")
    assert not [*(project.folder / "releases").iterdir()]
    opened.send("sign-form", name="Ada", decision="accept")
    # a decision over an earlier draft is none over this one, though release.yaml names it
    context = yaml.safe_load((project.folder / "release.yaml").read_text())
    context["sign_off"].insert(0, {"name": "Eve", "role": None, "decision": "accept"})
    (project.folder / "release.yaml").write_text(yaml.safe_dump(context))
    # all of it leaves together, byte for byte
    opened.get("/release")
    opened.send("release-form", copy=[copy.name for copy in COPIES])
    opened.until("/release", "✓ Released:")
    (place,) = (project.folder / "releases").iterdir()
    assert {p.name for p in place.iterdir()} == {
        "data.csv", "data.csv.certificate.json", "report.html", "policy.yaml", "dossier.html",
        "dossier.json", "data.xlsx", "data-semicolons.csv", "data.parquet", PACK,
    }  # fmt: skip
    # what is handed on in one file holds all but the dossier, which stays
    with zipfile.ZipFile(place / PACK) as pack:
        kept = {"dossier.html", "dossier.json", PACK}
        assert {*pack.namelist()} == {p.name for p in place.iterdir()} - kept
        assert pack.read("data.csv") == whole
    cells = files.read(place / "data.csv").frame
    assert all(files.read(place / copy.name).frame.equals(cells) for copy in COPIES)
    assert (place / "data-semicolons.csv").read_bytes().startswith(b"\xef\xbb\xbfage;sex;")
    for name in ("dossier", "report"):
        assert f'href="/releases/{place.name}/{name}"' in opened.last.text
        page = opened.request("GET", f"/releases/{place.name}/{name}")
        assert page.body == (place / f"{name}.html").read_bytes()
        assert page.headers["content-security-policy"].startswith("sandbox;")
    table = opened.request("GET", f"/releases/{place.name}/data.csv")
    assert table.body == whole
    assert table.headers["content-disposition"].startswith("attachment")
    for name in (
        "../policy.yaml",
        f"{place.name}/..",
        f"{place.name}/data",
        f"{place.name}/policy",
        "../report",
        "%2e%2e/dossier",
    ):
        assert opened.request("GET", f"/releases/{name}").status == 404
    assert (place / "data.csv").read_bytes() == whole
    assert all(check.ok is not False for check in verify(place / "data.csv"))
    found = json.loads((place / "dossier.json").read_text())
    decided = [(s["name"], s["decision"]) for s in found["context"]["sign_off"]]
    assert decided == [("Ada", "reject"), ("Ben", "accept"), ("Ada", "reject"), ("Ada", "accept")]
    assert found["released"]["sha256"] == hashlib.sha256(whole).hexdigest()
    given = yaml.safe_load((project.folder / "release.yaml").read_text())
    assert given["recipient"]["who"] == "Health services"
    # nothing else was written
    assert others_in(project.folder) == []
    # whoever gets it checks it on the page, too
    name = place.relative_to(tables) / "data.csv"
    page = opened.get("/check")
    assert str(name) in page.words
    opened.send("check-form", path=str(name))
    page = opened.until("/check", "No check fails")
    assert "shoal verify releases/" in page.words
    assert "policy.yaml" in page.text.partition('id="command"')[2].partition("</pre>")[0]
    assert "Policy is the one certified" in page.words
    assert "Not that its promises hold: that is stated, and was not measured again" in page.words
    assert "Not who made it" in page.words
    (place / "data.csv").write_bytes(whole + b"\n")
    page = opened.get("/check")
    assert "A file has changed since it was checked" in page.words
    assert "No check fails" not in page.words
    opened.send("check-form", typed=str(name))
    opened.until("/check", "Do not rely on this file")
    opened.get("/check")
    opened.send("check-form", typed="patients.csv")
    opened.until("/check", "It could not be checked")
    assert opened.post("/check", typed="../elsewhere.csv").status == 404


@pytest.mark.long
def test_a_second_release_of_the_same_people_is_judged_together_with_the_first(opened, monkeypatch):
    draft(opened, k="4")
    answered(opened)
    opened.send("sign-form", name="Ada", decision="accept")
    full = OSError(28, "No space left on device")
    with monkeypatch.context() as patched:  # what can't be judged together later does not leave
        patched.setattr("shoal.web.server.shutil.copyfile", mock.Mock(side_effect=full))
        opened.send("release-form", copy="data.xlsx")
        page = opened.until("/release", "Nothing was released: No space left")
        at_button = page.text.partition('id="release-form"')[2].partition("</form>")[0]
        assert 'id="not-released" tabindex="-1" data-arrival' in at_button
        assert 'value="data.xlsx" checked' in at_button
        assert "Release nothing was released" in opened.get("/columns").words
    assert not [*(opened.server.project.folder / "releases").iterdir()]
    opened.get("/release")
    page = opened.send("release-form", copy=[])
    assert re.search("disabled>Releasing …</button>", page.text)
    page = opened.until("/release", "✓ Released:")
    assert "<button data-opens>Release it once more</button>" in page.text
    assert 'id="undo"' not in page.text  # a sign-off can't be undone
    assert len(re.findall('/(?:dossier|report)" target="_blank"', page.text)) >= 2
    listed = Visitor.words_of(page.text.partition('id="releases"')[2].partition("</table>")[0])
    assert re.search(r"[\d-]{10} 300 275 dossier , report", listed)
    assert '<a class="button" href="/open">Open another table</a>' in page.text
    assert "republish" not in opened.get("/help").words
    (kept,) = opened.server.released_people().glob("*.npz")
    assert kept.stat().st_mode & 0o777 == 0o600
    # a draft with the same bytes is not released because another one was
    draft(opened)
    one, other = opened.server.project.runs
    assert one.data.read_bytes() == other.data.read_bytes()
    assert "✓ Released:" not in opened.get("/release").words
    assert "It is not released yet" in opened.get("/result").words
    assert "It was released as" in opened.get(f"/result/{other.name}").words
    draft(opened, k="3")
    page = opened.get("/release")
    assert "people of this draft are in it" in page.words
    assert "other_releases" not in context_of(opened.server.project)
    assert 'value="none"' not in page.text  # "nothing that we know of" would be false
    state = next(text for text in gate(opened) if text.startswith("Other releases"))
    assert "try attacks to judge them together" in state
    opened.send("attack-form")
    page = opened.until("/release", "people in both")
    shown = re.search(
        r"this draft, releases/[\d-]+ together: of (\d+) people in both, (\d+) hide"
        r" among fewer than k = 3",
        page.words,
    )
    assert "keep this draft back" in page.words
    # as grave as any finding: in the gate, and above the button
    found = re.findall("! this draft, releases/[^<]+", page.text)
    assert len({*found}) == len(found) > 0
    assert "people in both" in page.text.partition('id="goes-out"')[2].partition("</div>")[0]
    assert re.search(r"releases/\d{4}-\d\d-\d\d-2/", page.text)
    assert "A new folder: what was released earlier today stays as it is." in page.words
    assert "a promise is broken: Release says which" in opened.get("/result").words
    project = opened.server.project
    stated = project.runs[0].certificate["beside"]
    assert shown
    assert [int(n) for n in shown.groups()] == [stated["people"], stated["below_k"]]
    assert stated["below_k"] > 0
    # names of people stay in their table, hashed or not
    names = (project.folder.parent / "patients.csv").read_text().splitlines()[1].split(",")[0]
    kept = b"".join(place.read_bytes() for place in project.folder.rglob("*.npz"))
    assert names.encode() not in kept


@pytest.mark.long
def test_each_column_that_leaves_in_plain_sight_is_accepted_by_its_name_in_words_of_its_own(
    opened, monkeypatch
):
    monkeypatch.setattr("shoal.reports.attacks.MOST_RANKED", 2)
    project = opened.server.project
    for name in ("name", "ward"):
        opened.give(name, "plain")
    draft(opened, k="4")
    page = opened.get("/promises").words
    assert "Not protected, since they are published as in the table: name, ward ." in page
    assert "Other grave findings accepted in words waits for the attacks" in gate(opened)
    sentence = "Accepted that {} leaves as it is, not protected"
    assert {sentence.format(name) + " not yet" for name in ("name", "ward")} < {*gate(opened)}
    answered(opened)
    assert {sentence.format(name) for name in ("name", "ward")} < {*gate(opened)}
    page = opened.get("/release")
    assert re.search(r"7 of \d+ findings; the others stand in the report", page.words)
    assert "“Much” is more than 10 % of people;" in page.words
    assert 'minlength="15" title="say why in at least 15 characters"' in page.text
    own = page.text.partition('id="accept"')[2].partition("</form>")[0]
    for name in ("name", "ward"):
        assert own.count(f"{name} leaves as it is in your table") == 1
        assert f"&#39;{name}&#39; is not protected: " in own
    accepted = context_of(project)["accepted"]
    fields = ("accept-1", "accept-2")
    for words, lacks in (
        (("ok", "ward: yes"), "“name” is not accepted: say why in at least 15 characters"),
        (("a" * 20,) * 2, "say why in at least 15 characters"),
        (("needed by the study",) * 2, "name name, and say why it may leave"),
        (("name and ward: needed by the study",) * 2, "the same words stand at another line"),
        (("name: for the study", "ward: for the study"), "the same words stand at another line"),
    ):
        opened.get("/release")
        answer = opened.send("answers", purpose=words[0], **dict(zip(fields, words, strict=True)))
        assert (answer.status, lacks in answer.words) == (422, True)
    assert context_of(project)["purpose"] == words[0]  # all else is saved
    assert {*context_of(project)["accepted"]} == {*accepted}
    opened.get("/release")
    opened.send("answers", **{"accept-1": ""})
    assert sentence.format("name") + " not yet" in gate(opened)


def ledger_of_patients(opened, tables, k: int, **method) -> None:
    """A watched ledger of the people of the draft, `led`, whose classes hold k of them."""
    asked = {**opened.server.project.policy, "method": {"name": "crp", **method}}
    asked.pop("render", None)
    asked["attributes"] = {
        name: {key: value for key, value in settings.items() if key != "round"}
        for name, settings in asked["attributes"].items()
    }
    asked["promises"] = [{"model": "k-anonymity", "k": k}]
    (tables / "l.yaml").write_text(yaml.safe_dump(asked))
    assert status_of("republish patients.csv -p l.yaml --ledger led -q".split()) == 0
    opened.post("/watch", kind="ledger", path="led")


def beside(visitor) -> tuple[str, bool]:
    """What the gate says of other releases, and whether that is met."""
    rows = gate(visitor).items()
    return next((text, met) for text, met in rows if text.startswith("Other releases"))


@pytest.mark.long
def test_a_release_of_a_watched_ledger_that_breaks_k_together_with_a_draft_shuts_the_gate(
    opened, tables, monkeypatch
):
    monkeypatch.chdir(tables)
    ledger_of_patients(opened, tables, 4)
    draft(opened, k="4")
    state, met = beside(opened)
    assert "ledger led: try attacks to judge them together" in state
    assert not met
    answered(opened)
    state, met = beside(opened)
    assert "ledger led together: of" in state
    assert "hide among fewer than k = 4" in state
    assert not met
    page = opened.last
    assert re.search(r"ledger led: (\d+) of \1 people of this draft are in it", page.words)
    assert 'value="none"' not in page.text


@pytest.mark.long
def test_a_harmless_ledger_is_listed_with_who_is_shared_and_the_gate_opens(
    opened, tables, monkeypatch
):
    monkeypatch.chdir(tables)
    patients = files.read("patients.csv").frame
    everybody = patients["patient"].n_unique()  # in one class, so nobody is in two
    ledger_of_patients(opened, tables, everybody)
    opened.edit("k", k=f"{everybody}")
    draft(opened)
    answered(opened)
    state, met = beside(opened)
    assert met, state
    assert "ledger led: together they hold" in state
    place = released(opened)
    found = json.loads((place / "dossier.json").read_text())
    assert found["context"]["other_releases"] == ["../led/0001/certificate.json"]
    stated = found["certificate"]["beside"]["releases"][1]["sha256"]
    assert found["other_certificates"][0]["certificate_sha256"] == stated
    assert "together they hold" in (place / "dossier.html").read_text()
    # a further release of the ledger was judged by nobody
    patients.with_columns(pl.col("patient") + "b").write_csv("more.csv")
    assert status_of("republish more.csv -p l.yaml --ledger led -q".split()) == 0
    assert "try attacks to judge them together" in beside(opened)[0]


@pytest.mark.long
def test_a_ledger_that_can_not_be_judged_has_to_be_accepted_in_words(opened, tables, monkeypatch):
    monkeypatch.chdir(tables)
    ledger_of_patients(opened, tables, 4)
    draft(opened, k="4")
    (tables / "led").rename(tables / "gone")
    assert "ledger led: try attacks" in beside(opened)[0]
    opened.send("attack-form")
    page = opened.until("/release", "✓ Attacks tried")
    words = "ledger led: was not judged together with this release: its folder is not there"
    assert words in page.words
    assert 'value="none"' not in page.text
    answered(opened)
    assert beside(opened)[1]
    (tables / "gone").rename(tables / "led")
    shutil.rmtree(tables / "led.private")
    opened.send("attack-form")
    opened.until("/release", "private part, which knows whose row is whose, is missing")


@pytest.mark.long
def test_an_answer_about_a_column_that_was_left_out_since_keeps_nothing_from_leaving(opened):
    project = opened.server.project
    draft(opened, k="4")
    opened.get("/release")
    opened.send("answers", **{f"why-{number}": "needed" for number in range(1, 8)})
    opened.give("age", "drop")
    draft(opened)
    answered(opened)
    released(opened)
    assert context_of(project)["attributes"]["age"]["why"]  # for when it comes back


def test_answers_that_are_saved_by_the_same_click_are_signed_with_the_others(opened):
    draft(opened)
    before = opened.get("/release")
    saved = opened.send("answers", purpose="Waiting times")
    base = re.search(r'name="release_base" value="(\w+)"', saved.text)[1]
    opened.last = before
    asked = {"name": "Ada", "decision": "accept"}
    assert opened.send("sign-form", **asked).status == 422  # changed in another window
    opened.last = before
    opened.send("sign-form", **asked, release_base=base)  # as the script sends it on
    assert gate(opened)["Signed off by Ada"]


@pytest.mark.long
def test_a_draft_beside_an_earlier_release_stays_signed(opened, monkeypatch):
    draft(opened)
    place = opened.server.project.folder / "releases" / "2031-01-01"
    earlier = Overlap("releases/2031-01-01", place, 300, 300, "0" * 64)
    monkeypatch.setattr("shoal.web.routes_of_release.others_of", lambda *_: [earlier])
    opened.get("/release")
    opened.send("sign-form", name="Ada", decision="accept")
    assert gate(opened)["Signed off by Ada"]


@pytest.mark.long
def test_every_answer_of_a_dossier_has_a_field(opened):
    draft(opened)
    page = opened.get("/release")
    for field in text_fields():
        assert f'name="{OWN_NAMES.get(field, field)}"' in page.text, field
    answers = {"controller.name": "Ward 5", "threshold.max": "0.2", "review_triggers": "a; b"}
    opened.send(
        "answers", **answers, **{"replicable-1": "high", "expert.valid_until": "2031-01-01"}
    )
    page = opened.get("/release")
    lacking = page.text.partition('id="lacking"')[2].partition("</ul>")[0]
    assert '<a href="#who" data-field="controller">Controller</a>' in lacking  # its contact
    # who releases it is asked once, beside the recipient
    who = page.text.partition('id="who"')[2].partition("</details>")[0]
    assert all(f'name="controller.{part}"' in who for part in ("name", "contact"))
    assert page.text.count('name="controller.') == 2
    assert "Grade (GB/T 42460): level" in page.words
    given = context_of(opened.server.project)
    assert given["controller"]["name"] == "Ward 5"
    assert given["threshold"]["max"] == 0.2
    assert given["review_triggers"] == ["a", "b"]
    assert given["attributes"]["age"]["replicable"] == "high"
    assert 'name="controller.name" value="Ward 5"' in opened.get("/release").text
    assert opened.send("answers", **{"threshold.max": "much"}).status == 422


@pytest.mark.long
def test_a_release_is_signed_with_a_key_and_its_signature_checked_on_the_page(opened, tables):
    pytest.importorskip("cryptography")
    new_key(str(tables / "ward"), "a long passphrase")
    draft(opened)
    answered(opened)
    opened.send("sign-form", name="Ada", role="data protection", decision="accept")
    opened.send("release-form", private_key="ward.pem", passphrase="another one")
    opened.until("/release", "the passphrase is wrong")
    opened.send("release-form", private_key="ward.pem", passphrase="a long passphrase")
    opened.until("/release", "✓ Released:")
    (place,) = (opened.server.project.folder / "releases").iterdir()
    assert (place / "dossier.json.sig").is_file()
    assert "by the key in ward.pub.pem, SHA256:" in (place / "dossier.html").read_text("utf-8")
    opened.get("/check")
    name = str(place.relative_to(tables) / "data.csv")
    opened.send("check-form", path=name, trust="ward.pub.pem")
    page = opened.until("/check", "No check fails")
    assert "Signature by the key in" in page.words


@pytest.mark.long
def test_one_reason_serves_several_columns_and_what_the_table_shows_is_filled_in(opened):
    draft(opened, k="4")
    page = opened.get("/release")
    rated = page.text.partition('name="available-1"')[2].partition("</select>")[0]
    assert '"high" selected' in rated  # others could know it, as Columns says
    same = {f"same-{number}": "on" for number in range(2, 8)}
    own = {"why-1": "needed", "replicable-1": "low", "available-2": "medium"}
    opened.send("answers", **own, **same)
    given = context_of(opened.server.project)["attributes"]
    assert len(given) == 7
    assert {(one["why"], one["replicable"]) for one in given.values()} == {("needed", "low")}
    assert [one["available"] for one in given.values()][:2] == ["high", "medium"]
    before = opened.get("/release").text.partition('<div id="why">')[0]
    assert before.rpartition("<details")[2].startswith(' class="card">')  # answered, so folded
    assert gate(opened)["A reason for every column"]


@pytest.mark.long
def test_the_dossier_asks_by_the_profile_that_somebody_chose(opened):
    draft(opened)
    opened.get("/release")
    page = opened.send("answers", profile="hipaa-expert")
    assert '<option value="hipaa-expert" selected>' in page.text
    assert 'name="expert.name"' in page.text.partition('id="asked"')[2].partition("</details>")[0]
    lacking = page.text.partition('id="lacking"')[2].partition("</ul>")[0]
    assert ">Expert</a>" in lacking
    assert "--profile hipaa-expert" in page.words
    assert opened.send("answers", profile="none").status == 422
