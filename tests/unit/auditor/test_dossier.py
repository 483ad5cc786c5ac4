"""The dossier: what is answered, what is open, and what it never says."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from jsonschema import Draft202012Validator

import shoal as library
from certified_cases import run
from page_text import on_one_line
from republish_cases import POLICY as WEARERS
from republish_cases import append, grown, wearers
from republish_cases import policy as leaking
from sample_policies import content_of
from shoal.auditor.dossier.context import Context, json_schema, template
from shoal.auditor.dossier.dossier import (
    Answers,
    Roles,
    initial_risk,
    profile_names,
    read_profiles,
    residual_risk,
)
from shoal.data.certificate import Certificate
from shoal.errors import InputError, PromiseError
from shoal.policy import registry
from shoal.reports.attacks import MUCH, TOO_FEW, Row, much_found, must_be_accepted, worst_first
from shoal.reports.dossier import _answer, summary, write_dossier
from shoal.reports.in_short import in_short
from shoal.reports.limits import linked_rows

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
CLAIMS = re.compile(r"\banonymous|\bcompliant", re.IGNORECASE)
RATED = {"why": "asked for", "replicable": "high", "available": "low", "distinguishing": "medium"}
CONTEXT = {
    "version": 1,
    "controller": {"name": "A", "contact": "B"},
    "threshold": {"max": 0.5, "why": "a closed circle"},
    "attributes": dict.fromkeys("age sex zip education disease charge ward".split(), RATED),
}


def read_page(folder: Path, name: str = "d.html") -> str:
    return on_one_line((folder / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A folder with patients, their policy and two releases with certificates: out.csv, and
    attacked.csv, on which every attack was tried.
    """
    folder = tmp_path_factory.mktemp("dossier")
    commands = [
        "sample patients -n 300 -o in.csv -q",
        "publish in.csv -p in.policy.yaml -o out.csv --method mondrian -q",
        "publish in.csv -p in.policy.yaml -o attacked.csv --method mondrian --attack all -q",
    ]
    assert [run(folder, command) for command in commands] == [0, 0, 0]
    (folder / "release.yaml").write_text(yaml.safe_dump(CONTEXT))
    return folder


@pytest.fixture(scope="module")
def attacked(released) -> Certificate:
    """The certificate with what all attacks found."""
    return Certificate.load(released / "attacked.csv.certificate.json")


def dossier(folder: Path, certificate: Path | None = None, name: str = "out.csv", **more):
    """The dossier of a release. more: of the context, or how it is made."""
    policy = library.Policy.load(folder / "in.policy.yaml").with_method("mondrian", {})
    how = {key: more.pop(key) for key in ("original", "output", "profiles") if key in more}
    context = more.pop("context", CONTEXT | more)
    return library.dossier(folder / name, certificate, context=context, policy=policy, **how)


def states(found) -> dict[str, str]:
    return {clause["field"]: clause["state"] for clause in found.content["clauses"]}


def answers(columns: tuple[dict, ...] = (), counted: str = "subjects", **context) -> Answers:
    """Of a release with a risk of 0.2 at most, on 2026-11-22."""
    shown = {"risk": {"prosecutor_max": 0.2}, "counted": counted, "columns": [*columns]}
    certificate = Certificate(shown)
    stated, risk = Context.model_validate({"version": 1, **context}), residual_risk(certificate)
    roles = Roles.of(certificate, None) if columns else Roles(False)
    return Answers(certificate, stated, None, risk, roles, date(2026, 11, 22))


def test_what_is_filled_in_is_answered_and_of_the_rest_what_the_certificate_states(released):
    empty = states(dossier(released, context=yaml.safe_load(template())))
    answered = {field for field, state in empty.items() if state == "answered"}
    assert all(field.startswith("certificate.") for field in answered)
    assert "certificate.promises" in answered
    found = states(dossier(released))
    assert [found[f] for f in ("controller", "threshold", "attributes")] == ["answered"] * 3
    assert found["purpose"] == "open"


@pytest.mark.parametrize("subject", [("who",), ("house", "q0")])
def test_initial_risk_by_hand(tmp_path, subject):
    """(1,x) and (1,y) are alone, two people are (2,x), one of them with two records."""
    rows = ["p,1,1,1,x", "q,1,2,1,y", "r,2,1,2,x", "s,2,2,2,x", "s,2, 2,2,x"]
    (tmp_path / "in.csv").write_text("\n".join(["who,house,q0,a,b", *rows]) + "\n")
    roles = Roles(True, ("a", "b"), ("a", "b"), subject)
    assert initial_risk(str(tmp_path / "in.csv"), roles) == {"alone": 0.5, "mean": 0.75, "max": 1.0}


def test_whoever_has_rows_in_several_classes_is_one_of_the_people_before_a_release(tmp_path):
    """p alone is (1,x), and all three are (2,x): means are by place, as those of a release."""
    (tmp_path / "in.csv").write_text("who,a,b\np,1,x\np,2,x\nq,2,x\nr,2,x\n")
    roles = Roles(True, ("a", "b"), ("a", "b"), ("who",))
    found = initial_risk(str(tmp_path / "in.csv"), roles)
    assert found == {"alone": 1 / 3, "mean": 2 / 4, "max": 1.0}


def test_initial_and_residual_risk_stand_side_by_side(released):
    found = dossier(released, original=released / "in.csv").content
    assert found["initial_risk"]["max"] == 1.0
    risk = found["certificate"]["risk"]["prosecutor_max"]
    assert found["residual_risk"]["max"] == risk
    assert found["threshold"]["max"] == {"accepted": 0.5, "residual": risk, "within": True}


SIGNED = {"name": "Ada", "role": "B", "date": "2099-01-01", "decision": "accept"}
EXPERT = dict.fromkeys(["name", "qualification", "opinion"], "x")


@pytest.mark.parametrize(
    ("field", "value", "lacks"),
    [
        ("threshold", {"max": 0.1, "why": "x"}, "above the greatest risk"),
        ("threshold", {"max": 0.2, "why": "x"}, ""),
        ("threshold", {"max": 0.2}, "the reason is missing"),
        ("review_by", "2026-11-21", "is over"),
        ("review_by", "2026-11-22", ""),
        ("controller", {"name": "A"}, "lacks contact"),
        ("controller", {"name": "A", "contact": " "}, "lacks contact"),
        ("other_releases", "none-known", ""),
        ("other_releases", [], "empty"),
        ("sign_off", [{"name": "A", "role": "B"}], "lacks date, decision"),
        ("sign_off", [SIGNED], ""),
        ("expert.valid_until", EXPERT, "empty"),
    ],
    ids=str,
)
def test_what_an_answer_lacks(field, value, lacks):
    found = answers(**{field.partition(".")[0]: value}).lacks(field)
    assert bool(found) == bool(lacks)
    assert lacks in found


@pytest.mark.parametrize(
    ("counted", "limits", "within", "lacks"),
    [
        ("subjects", {"mean": 0.5}, None, "not known of people: the mean risk"),
        ("subjects", {"max": 0.5, "mean": 0.5}, True, "not known of people: the mean risk"),
        ("rows", {"max": 0.5}, None, "not known of people: the greatest risk, as rows were"),
        ("rows", {"max": 0.1}, False, "above the greatest risk"),
    ],
    ids=str,
)
def test_a_limit_is_kept_only_by_a_risk_of_people_that_is_known(counted, limits, within, lacks):
    found = answers(counted=counted, threshold={"why": "x", **limits})
    assert found.threshold()["max"]["within"] is within
    assert lacks in found.lacks("threshold")


@pytest.mark.parametrize("name", profile_names())
def test_every_field_of_a_profile_is_one_that_can_be_answered(name):
    (profile,) = read_profiles([name])
    assert profile.title
    assert profile.document
    assert re.search(r"\b20\d\d\b", profile.date)  # of the document
    assert "memory" not in profile.document
    asked = answers()
    for clause in profile.clauses:
        for field in clause.fields:
            assert isinstance(asked.lacks(field), str)


def test_the_gdpr_alone_is_asked_by_default_and_its_criteria_are_answered_by_attacks(released):
    found = dossier(released)
    assert {clause["profile"] for clause in found.content["clauses"]} == {"gdpr"}
    asked = [f"certificate.attacks.{name}" for name in ("singling-out", "linkability", "inference")]
    assert [states(found)[field] for field in asked] == ["open"] * 3
    texts = {one["about"]: one["text"] for one in found.open}
    assert texts[asked[0]] == "Attack: singling out: was not tried on the release"


def test_an_unknown_column_or_key_is_refused(released):
    with pytest.raises(InputError, match="'agee' is not a published column"):
        dossier(released, attributes={"agee": RATED})
    with pytest.raises(InputError, match="context, purpos: is not a known key; did you mean"):
        dossier(released, purpos="x")


def test_the_template_fits_the_schema_and_the_schema_is_one():
    schema = json.loads(json_schema())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(
        {key: value for key, value in yaml.safe_load(template()).items() if value is not None}
    )


def test_page_and_json_claim_nothing_show_no_value_and_quote_the_owner_as_text(released, tmp_path):
    page = tmp_path / "d.html"
    asked = {"purpose": "<script>x</script>"}
    dossier(released, original=released / "in.csv", output=page, **asked)
    html_text, json_text = (path.read_text() for path in (page, page.with_suffix(".json")))
    assert not CLAIMS.search(html_text + json_text + template())
    diseases = pl.read_csv(released / "in.csv")["disease"].unique()
    assert not [disease for disease in diseases if disease in html_text + json_text]
    assert json.loads(json_text)["schema"] == "shoal.dossier/1"
    assert "<script>" not in html_text
    assert "&lt;script&gt;" in html_text


def open_points(found, *findings: str):
    """A dossier as of a certificate with more findings."""
    warnings = [{"code": "x", "severity": "grave", "text": text} for text in findings]
    points = [{"kind": "grave", "about": "x", "text": text, "clauses": []} for text in findings]
    certificate = found.content["certificate"] | {"warnings": warnings}
    content = found.content | {"certificate": certificate, "open": [*points, *found.open]}
    return replace(found, content=content)


def test_open_points_are_counted_and_named_first(released, tmp_path):
    found = open_points(dossier(released), "column 'ward' names people")
    write_dossier(found, tmp_path / "d.html")
    page = read_page(tmp_path)
    first = page.partition('<div class="verdict amber">')[2]
    assert re.match(r"\s*<p><strong>\d+ points are open: \d+ grave findings?, ", first)
    named = page.partition('<section id="open">')[2].partition("</section>")[0]
    assert "<strong>Grave:</strong>column &#39;ward&#39; names people." in named
    assert "legal basis" in named
    assert "legal_basis" not in page.partition('id="appendix"')[0]
    asked = dict(
        re.findall(r'<th scope="row">(\S+ \S+)</th>(.*?)</tr>', page.split('id="gdpr"')[1])
    )
    told = [clause for clause, answered in asked.items() if answered.count(" grave finding") == 2]
    assert told == ["Article 4(1)", "recital 26"]  # by what answers it, and by what is open


def test_the_front_of_a_dossier_is_at_most_two_pages(released, attacked, tmp_path):
    """However much was found and answered: with long answers, many findings, every attack, of
    which all that found much are accepted.
    """
    long = dict.fromkeys(("purpose", "legal_basis"), "a long answer, " * 30)
    long |= {"controls": {"agreement": "signed by each of them, " * 30}}
    long |= {"sign_off": [SIGNED | {"comment": "a comment, " * 30}] * 3}
    much = [row.says for row in must_be_accepted(attacked)]
    long |= {"accepted": dict.fromkeys(much, "they may not match lists, " * 10)}
    found = dossier(released, name="attacked.csv", original=released / "in.csv", **long)
    write_dossier(open_points(found, *["a finding, " * 20] * 30), tmp_path / "d.html")
    page = read_page(tmp_path)
    front, _, rest = page.partition('<section id="appendix">')
    front += rest[rest.index("</main>") :]
    assert len(re.sub(r"<style.*?</style>|<[^>]+>|\s+", " ", front, flags=re.DOTALL)) < 9000
    if BROWSER is None:
        pytest.skip("no browser that prints")
    (tmp_path / "front.html").write_text(front, "utf-8")
    where = [f"--print-to-pdf={tmp_path / 'front.pdf'}", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [BROWSER, "--headless", "--no-pdf-header-footer", *FLAGS, *where]
    subprocess.run(
        [*command, (tmp_path / "front.html").as_uri()], check=True, capture_output=True, timeout=120
    )
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "front.pdf").read_bytes())) <= 2


def test_a_point_stands_once_under_its_state_beside_what_is_agreed(
    released, attacked, tmp_path, monkeypatch, shoal
):
    row = next(row for row in worst_first(attacked) if row.word == MUCH)
    grave = {"code": "x", "severity": "grave", "text": "column 'ward' names people"}
    path = certified(attacked, tmp_path, monkeypatch, warnings=[grave])
    words = "they may match lists"
    found = dossier(
        released,
        path,
        "attacked.csv",
        accepted={grave["text"]: words, row.says: words},
        controls={"no_reidentification": "forbidden, section 4"},
        sign_off=[SIGNED],
    )
    write_dossier(found, tmp_path / "d.html")
    front = html.unescape(read_page(tmp_path).partition('id="appendix"')[0])
    assert texts(found, "grave") == []
    assert "; 2 accepted in words." in front
    assert '<div class="verdict amber">' in front
    assert "<strong>Grave, accepted: column 'ward' names people.</strong>" in front
    assert [front.count(point) for point in (grave["text"], row.says)] == [2, 1]
    assert f"<strong>much, accepted:</strong>{row.says}" in front
    section = front.partition('<section id="accepted">')[2].partition("</section>")[0]
    assert f"“{words}”, signed off by Ada, 2099-01-01:" in section
    assert "grave: column 'ward'" in section
    assert f"what attacks found, by its name in the appendix: {row.label}" in section
    assert "forbidden, section 4" in section
    checked = shoal("verify", tmp_path / "d.json").out.splitlines()
    assert checked[0] == "!    grave finding: column 'ward' names people"
    assert "--   accepted in words: 2; signed off by Ada, 2099-01-01" in checked


def test_each_signature_and_each_promise_is_named_by_what_it_is_of(released, tmp_path):
    dossier(released, output=tmp_path / "d.html")
    page = html.unescape(read_page(tmp_path))
    assert "signature of the certificate</th>" in page
    assert "Whoever signs this dossier signs d.json, which holds the hash of this page" in page
    assert "l-diversity of disease (distinct)</th>" in page


def test_who_is_found_comes_before_what_is_learned_and_that_before_cells(attacked):
    found = [row.question for row in worst_first(attacked) if row.word == MUCH]
    assert len({*found}) > 1
    assert found == sorted(found, key=lambda question: question.harm)


@pytest.mark.parametrize(("share", "colour"), [(0.5, "bad"), (0.05, "partly"), (0, "answered")])
def test_a_criterion_has_the_colour_of_the_worst_that_was_found(share, colour):
    linked = {"known": ["age"], "success": share, "baseline": 0.01}
    certificate = Certificate({"attacks": {"seed": 1, "linkability": linked}})
    assert _answer(certificate, "certificate.attacks.linkability")[1] == colour


def test_what_attacks_found_is_counted_and_open_until_somebody_accepts_it(
    released, attacked, shoal
):
    rows = must_be_accepted(attacked)
    assert {row.word for row in rows} == {MUCH, TOO_FEW}
    found = dossier(released, name="attacked.csv")
    assert len(texts(found, MUCH)) == len(rows) > 1
    accepted = dict.fromkeys([row.says for row in rows], "they may match lists")
    assert texts(dossier(released, name="attacked.csv", accepted=accepted), MUCH) == []
    tried = len({*registry.attacks()} & {*attacked["attacks"]})
    said = f"{len(rows)} findings of attacks ({tried} tried) are “much”, or may be: see below."
    assert much_found(attacked) == said
    assert "of attacks are “much”" in shoal("verify", released / "attacked.csv").out


def certified(honest: Certificate, tmp_path: Path, monkeypatch, **more) -> Path:
    """A certificate with other parts, which `verify` is not asked about."""
    monkeypatch.setattr("shoal.auditor.dossier.dossier.verify_by", lambda *_: [])
    path = tmp_path / "other.certificate.json"
    path.write_text(honest.extended(**more).to_json())
    return path


@pytest.fixture
def own(released) -> Certificate:
    """The certificate of the release that no attack was tried on."""
    return Certificate.load(released / "out.csv.certificate.json")


def texts(found, kind: str) -> list[str]:
    return [one["text"] for one in found.open if one["kind"] == kind]


@pytest.mark.parametrize("stop", ["", "."])
def test_a_printed_line_closes_its_point_in_accepted_with_or_without_a_full_stop(released, stop):
    lines = [line for line in summary(dossier(released, name="attacked.csv")) if '"' in line]
    assert len(lines) > 1
    pasted = yaml.safe_load("\n".join(f"{line.removeprefix('open')} fine" for line in lines))
    accepted = {sentence + stop: words for sentence, words in pasted.items()}
    found = dossier(released, name="attacked.csv", accepted=accepted)
    assert {one["kind"] for one in found.open} == {"question"}


BESIDE = {"k": 5, "attacker": "presence", "releases": [], "people": 40, "below_k": 7}
BESIDE |= {"alone": 1, "least": 1, "holds": False}
BESIDE |= {"attributes": [{"names": ["disease", "illness"], "releases": [1, 2], "people": 40}]}
BESIDE["attributes"][0] |= {"asked": 2, "below": 4, "certain": 3, "none": 1, "least": 0}
FEW = "7 are left among fewer than 5, 1 of these alone"
VALUES = "disease = illness is certain for 3, and has fewer than 2 possible values for 4"


def test_what_fails_with_other_releases_is_open_whatever_is_accepted(
    released, own, tmp_path, monkeypatch, shoal
):
    path = certified(own, tmp_path, monkeypatch, beside=BESIDE)
    checked = shoal("verify", released / "out.csv", path, status=1)
    assert "FAIL other releases:" in checked.out
    text = f"Beside other releases: of 40 people in several of them, {FEW}, and {VALUES}"
    assert text.partition(": ")[2] in checked.out
    page = tmp_path / "red.html"
    found = dossier(released, path, accepted={text: "they agreed"}, output=page)
    assert texts(found, "fails") == [text]
    facts = page.read_text().partition("other releases</th>")[2].partition("</tr>")[0]
    assert FEW in facts
    assert VALUES in facts
    assert "1 of them for something that fails" in shoal("verify", page.with_suffix(".json")).out


def test_a_release_that_leaks_by_leave_fails_verify_is_red_and_is_not_signed(folder, shoal):
    pytest.importorskip("cryptography")
    shoal("sign", "--new-key", "k", "--unprotected", status=0)
    ledger = grown(folder / "L", 1, 40, leaking("static-2"))
    release = ledger / "0002" / "data.csv", ledger / "0002" / "certificate.json"
    wearers(40, 2).write_csv("in.csv")
    Path("p.json").write_text(json.dumps(WEARERS))
    asked = ("in.csv", "-p", "p.json", "--ledger", "L", "--allow-leaks", "-q")
    for command in (("republish", *asked, "--sign"), ("sign", *release, "--key")):
        assert "nothing is signed" in shoal(*command, "k.pem", status=1).err
    assert [*release[1].parent.glob("*.sig")] == []
    certificate = Certificate.load(release[1])
    assert certificate["history"]["allowed"]
    assert (certificate.holds, certificate.light) == (False, "red")
    checked = shoal("verify", *release, status=1).out
    text = "Beside earlier releases: comparing them gives people away, "
    assert f"FAIL other releases: the certificate states that it fails b{text[1:]}" in checked
    found = library.dossier(*release, context={"version": 1}, output=folder / "d.html")
    (said,) = texts(found, "fails")
    assert said.startswith(text)
    assert " by 'specificity'" in said
    page = html.unescape((folder / "d.html").read_text())
    assert 'class="verdict red"' in page
    assert f"together they fail: b{said[1:]}" in page
    accepted = {"version": 1, "accepted": {said: "they agreed"}}
    assert texts(library.dossier(*release, context=accepted), "fails") == [said]
    shoal("ledger", "verify", "L", status=0)
    assert append(ledger, wearers(20, 3)).release == 3


def test_what_is_accepted_and_was_not_found_is_open(released):
    sentence = "90 % of people: whoever also knows their ward identifies them"
    found = dossier(released, accepted={sentence: "they agreed"})
    assert texts(found, "unmatched") == [f"Accepted, but matches no finding: {sentence}"]
    assert "accepted in words" not in next(iter(summary(found)))


def test_another_release_that_was_not_judged_is_as_grave_as_one_that_fails(
    released, own, tmp_path, monkeypatch
):
    """Words accept it only where the context says why it could not be judged."""
    page = tmp_path / "d.html"
    named = {"other_releases": [str(released / "out.csv.certificate.json")]}
    found = dossier(released, **named, output=page)
    (text,) = texts(found, "fails")
    assert "audit --others" in text
    assert "Fails: Not judged together with" in page.read_text()
    assert 'class="verdict red"' in page.read_text()
    (other,) = found.content["other_certificates"]
    assert other["released_sha256"] == own["output"]["sha256"]
    accepted = dossier(released, **named, accepted={text: "of other people"})
    assert texts(accepted, "fails") == [text]
    named["not_judged"] = "its original is deleted"
    (reason,) = texts(dossier(released, **named, output=page), "grave")
    assert reason.endswith(": its original is deleted")
    assert "Open: Not judged together with" in page.read_text()
    accepted = dossier(released, **named, accepted={reason: "of other people"}, output=page)
    assert texts(accepted, "grave") == texts(accepted, "fails") == []
    assert "Accepted: Not judged together with" in page.read_text()
    del named["not_judged"]
    for kind, sha256 in (("ledger", "certificate_sha256"), ("table", "released_sha256")):
        one = {"kind": kind, "sha256": other[sha256], "people": 9, "classes": 1}
        judged = BESIDE | {"releases": [one], "people": 9, "below_k": 0, "alone": 0, "holds": True}
        path = certified(own, tmp_path, monkeypatch, beside=judged | {"least": 9})
        assert texts(dossier(released, path, **named), "fails") == []
    assert any("names none" in text for text in texts(dossier(released, path), "open"))


def test_of_other_releases_a_ledgers_history_judges_its_own_alone(released, tmp_path):
    grown(tmp_path / "L", 3, 20)
    grown(tmp_path / "M", 1, 21)
    first, second, third, of_other = (
        tmp_path / part / "certificate.json" for part in ("L/0001", "L/0002", "L/0003", "M/0001")
    )
    table = released / "out.csv.certificate.json"

    def fails(judged, *others):
        context = {"version": 1, "other_releases": [*map(str, others)]}
        return texts(
            library.dossier(judged.with_name("data.csv"), judged, context=context), "fails"
        )

    assert fails(second, first, third) == fails(third, first) == fails(first, third) == []
    for other in (of_other, table):
        (said,) = fails(third, second, other)
        assert said.startswith(
            f"Not judged together with {other}; 'shoal audit --ledger --others' judges"
        )


def test_a_column_that_others_have_and_that_is_published_as_it_is_is_open(released):
    rated = CONTEXT["attributes"] | {"ward": RATED | {"available": "high"}}
    (first, *_) = texts(dossier(released, attributes=rated), "open")
    assert first.startswith("Column 'ward' is published as it is, though rated as one that others")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"date": "2024-01-01"}, "that of Ada is dated 2024-01-01, before the certificate of 20"),
        ({"release": "0" * 64}, "that of Ada names another release"),
        ({"decision": "reject"}, "Rejected by Ada, B"),
        ({}, ""),
    ],
)
def test_a_rejection_or_another_releases_sign_off_is_open(more, said, released, own, shoal):
    """Whoever asks."""
    signed = SIGNED | {"release": own["output"]["sha256"].upper()} | more
    asked = {"profiles": ["hipaa-expert"], "accepted": {"x": "y"}, "output": released / "s.html"}
    found = dossier(released, sign_off=[signed], **asked)
    points = [one["text"] for one in found.open if one["about"] == "sign_off"]
    assert (len(points), said in "".join(points)) == (bool(said), True)
    front = html.unescape(read_page(released, "s.html").partition('id="appendix"')[0])
    assert (said in front, "1 rejection" in front) == (True, "decision" in more)
    assert "A typed name proves nothing by itself; a signature (<code>shoal sign</code>)" in front
    assert ("signed off by Ada" in shoal("verify", released / "s.json").out) is not bool(said)


STARTS, ENDS = ("Al", "Ber", "Dan", "Kel", "Mar", "Tor"), ("man", "ez", "sen", "ski")
SURNAMES = [f"{start}{end}" for start in STARTS for end in ENDS]
STAYS = {
    "person": "subject",
    "surname": "plain",
    "birth_year": {"role": "quasi", "type": "number", "domain": [1925, 2015]},
    "postcode": "plain",
    "days": {"role": "sensitive", "type": "number"},
}


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Stays of 250 people, two of each, published with surname, postcode and days as they are; the
    published rows with whose they are.
    """
    rng = np.random.default_rng(5)
    people = pl.DataFrame(
        {
            "person": [f"P{i}" for i in range(250)],
            "surname": rng.choice(SURNAMES, 250),
            "postcode": [f"80{i:03}" for i in rng.integers(100, 130, 250)],
        }
    )
    stays = pl.concat([people, people]).with_columns(
        birth_year=rng.integers(1930, 2010, 500), days=rng.integers(1, 15, 500)
    )
    stays = stays.select(*STAYS)
    asked = ["linkability", "singling-out"]
    publication = library.publish(stays, content_of(STAYS, 40, seed=7), attack=asked)
    shown = publication.data.with_columns(person=stays["person"].gather(publication.trace))
    return shown, publication


def test_a_list_with_all_columns_that_name_people_finds_who_is_alone_with_all_of_them(named):
    """Not who is alone with the one that tells most, nor with other columns that are plain."""
    shown, publication = named
    key = ["birth_year", "surname", "postcode"]
    groups = shown.group_by(key).agg(pl.col("person").unique())
    alone = groups.filter(pl.col("person").list.len() == 1)
    count = alone["person"].explode().n_unique()
    rows = {row.label: row for row in must_be_accepted(publication.certificate)}
    assert round(rows["finding a person by surname and postcode"].member["share"] * 250) == count
    assert publication.certificate["columns"][0]["alone_if_known"] < count < 250


def test_people_whose_rows_are_linked_by_plain_columns_are_counted_among_who_is_left(named):
    """By hand: who is in every class in which there is a row with this surname and postcode."""
    shown, publication = named
    members = {c: {*p} for c, p in shown.group_by("birth_year").agg("person").iter_rows()}
    groups = shown.group_by("surname", "postcode").agg("person", "birth_year")
    left = {
        people[0]: len(set.intersection(*(members[label] for label in labels)))
        for _, _, people, labels in groups.iter_rows()
        if len({*people}) == 1 and len({*labels}) > 1
    }
    few = sum(people < 40 for people in left.values())
    alone = sum(people == 1 for people in left.values())
    (found,) = [one for one in publication.warnings if one.code == "rows-linked"]
    assert found.severity == "grave"
    assert f"{few} of 250 people are then left among fewer than 40, {alone} of them" in found.text
    assert few > 100


def test_people_with_rows_in_several_classes_are_counted_where_nothing_is_promised(named):
    """By hand: whose rows do not all show one range of years."""
    shown, publication = named
    several = shown.group_by("person").agg(pl.col("birth_year").n_unique())
    count = several.filter(pl.col("birth_year") > 1).height
    said = f"{count} of 250 people have rows in several classes"
    lines = dict(in_short(publication.certificate))
    assert [name for name, says in lines.items() if said in says] == ["Not promised"]
    assert "Whoever knows birth_year of one row of a person, but" in lines["Protected"]


def test_close_to_all_a_share_is_of_those_who_were_tried():
    row = Row("", "", "they are found", member={"share": 0.9989, "of": 917, "ci": None})
    assert row.says == "99.9 % of 917 people: they are found"


def test_columns_that_name_people_link_records_and_the_rows_of_one_person(named):
    certificate = named[1].certificate
    said, colour = _answer(certificate, "certificate.attacks.linkability")
    assert said == "attack: linkability [much] by surname and postcode, published as they are"
    assert colour == "bad"
    assert linked_rows(certificate).startswith("yes: 'surname' and 'postcode' link the rows")


def test_reasons_are_asked_of_sensitive_and_plain_columns_too():
    columns = (
        {"name": name, "role": role, "technique": "kept"}
        for name, role in (("age", "quasi"), ("charge", "sensitive"), ("name", "plain"))
    )
    assert answers(tuple(columns)).lacks("attributes").endswith("missing (age, charge, name)")


def test_a_signature_of_the_json_is_of_the_page_as_well(released, folder, shoal):
    pytest.importorskip("cryptography")
    from shoal.auditor.signatures import read_trusted

    assert shoal("sign", "--new-key", "k", "--unprotected").status == 0
    command = ["dossier", released / "out.csv", "--context", released / "release.yaml", "-q"]
    assert shoal(*command, "--sign", "k.pem").status == 2
    assert shoal(*command, "-o", "d.html", "--sign", "k.pem").status == 0
    (key,) = read_trusted(["k.pub.pem"])
    assert key.accepts(Path("d.json.sig").read_bytes(), Path("d.json").read_bytes())
    assert shoal("verify", "d.json", "--trust", "k.pub.pem", status=0).out.count("ok") == 2
    page = Path("d.html").read_text()
    Path("d.html").write_text(page.replace("open", "closed", 1))
    assert shoal("verify", "d.json", "--trust", "k.pub.pem").status == 1
    assert shoal(*command, "-o", "d.html", "--replace").status == 0
    assert not Path("d.json.sig").exists()  # it was about the dossier before


def test_the_json_of_a_dossier_that_is_nested_deep_is_refused(tmp_path):
    (tmp_path / "d.json").write_text('{"schema": "shoal.dossier/1", "page": ' + "[" * 200_000)
    with pytest.raises(InputError, match="names no page; give the JSON that"):
        library.verify(tmp_path / "d.json")


def test_trust_gives_no_dossier_of_a_release_that_none_of_the_keys_signed(released, folder, shoal):
    pytest.importorskip("cryptography")
    for name in ("out.csv", "out.csv.certificate.json"):
        shutil.copy(released / name, folder / name)
    assert [shoal("sign", "--new-key", name, "--unprotected").status for name in "ab"] == [0, 0]
    command = ["dossier", "out.csv", "--context", released / "release.yaml", "-o", "d.html"]
    unsigned = shoal(*command, "--trust", "a.pub.pem", status=1)
    assert "signature: --trust asks for one, there is none" in unsigned.err
    assert shoal("sign", "out.csv", "--key", "a.pem").status == 0
    assert shoal(*command, "--trust", "b.pub.pem").status == 1
    assert not Path("d.html").exists()
    assert shoal(*command, "--trust", "a.pub.pem", "--trust", "b.pub.pem").status == 0
    assert "by the key in a.pub.pem" in Path("d.html").read_text()


def test_the_original_needs_to_be_the_certified_one(released, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text((released / "in.csv").read_text().replace("asthma", "ulcer", 1))
    with pytest.raises(PromiseError, match="fails verify"):
        dossier(released, original=other)


@pytest.mark.parametrize("named", [[], ["-p", "in.policy.yaml"]], ids=["alone", "with a policy"])
def test_lines_that_a_stream_set_aside_are_no_part_of_its_risk_before(named, folder, shoal):
    shoal(*"sample purchases -n 300 --seed 1 -o in.csv -q".split())
    Path("bad.csv").write_text(Path("in.csv").read_text() + 'a,b\nx,"y\n')
    Path("c.json").write_text(json.dumps(CONTEXT | {"attributes": {}}))
    found = []
    for source in ("in", "bad"):
        stream = f"stream {source}.csv -p in.policy.yaml -o {source}.out.csv -q"
        assert shoal(*stream.split()).status == 0
        command = f"dossier {source}.out.csv --context c.json --original {source}.csv -q"
        assert shoal(*command.split(), *named, "-o", f"{source}.html").status == 0
        found.append(json.loads(Path(f"{source}.json").read_text())["initial_risk"])
    assert found[0] == found[1]


def test_people_whom_a_stream_has_not_counted_are_not_said_to_be_none(
    own, released, tmp_path, monkeypatch
):
    """As they are where it was measured release by release."""
    unknown = dict.fromkeys(("subjects", "together"))
    made = {"verb": "stream", "stream": {}, "measured": "release by release", "people": "known"}
    records = dict.fromkeys(("held", "dropped", "rejected", "waiting"), 0) | own["records"]
    hidden = [column for column in own["columns"] if column["role"] != "plain"]
    parts = made | unknown | {"records": records, "columns": hidden, "warnings": []}
    path = certified(own, tmp_path, monkeypatch, **parts)
    dossier(released, path, attributes={}, output=tmp_path / "d.html")
    page = read_page(tmp_path)
    assert ": people who were not counted, 300 records" in page
    assert "no column marks them (300 rows of people who were not counted), but whoever" in page


# What attacks found

WP216 = ("singled out?", "linked to a person?", "value be inferred?")


def test_a_dossier_says_that_no_attack_was_tried(released, tmp_path):
    dossier(released, output=tmp_path / "d.html")
    page = read_page(tmp_path)
    section = page[page.index('id="attacks"') :]
    assert "Attacks try; they don&#39;t prove.</strong>None was tried" in section
    assert [section.count(question) for question in WP216] == [1, 1, 1]
    assert section.count("not measured") >= 6


def test_a_limit_that_nobody_judged_is_open_and_no_attack_that_was_tried(
    own, released, tmp_path, monkeypatch
):
    """As an audit without the original leaves it."""
    row = {"measure": "linkage", "attribute": None, "at_most": 0.1}
    row |= dict.fromkeys(("measured", "upper", "holds"))
    path = certified(own, tmp_path, monkeypatch, attacks={"accept": [row]})
    found = dossier(released, path, profiles=["iso-27559", "gdpr"])
    assert states(found)["certificate.attacks"] == "open"
    text = "Accept 'linkage': was not judged; audit the release with its original"
    assert text in texts(found, "open")


def test_what_attacks_found_is_ranked_before_the_appendix_and_whole_in_it(released, tmp_path):
    page = tmp_path / "d.html"
    found = dossier(released, name="attacked.csv", output=page)
    shown = on_one_line(page.read_text())
    front = shown.partition('id="appendix"')[0].partition('id="found"')[2]
    words = re.findall(r"<li><strong>(\w+)", front)
    places = {"much": 0, "too": 1, "some": 2, "no": 3, "none": 4, "nothing": 4, "not": 5}
    assert words == sorted(words, key=places.__getitem__)
    assert 0 < len(words) <= 10
    helped = re.findall(r"<li><strong>(?:much|too|some)\b", front)
    assert len(helped) == front.count("<em>")
    assert states(found)["certificate.attacks.singling-out"] == "answered"
    assert "attack: singling out [" in shown
    section = shown[shown.index('id="attacks"') :]
    places = [section.index(question) for question in (*WP216, "in the release?")]
    assert places == sorted(places)
    assert section.index("Attacks try") < section.index("<svg") < places[0]
    assert "could know of them guesses their disease correctly" in section
    assert "Whiskers: intervals at 95 %" in section
    assert found.content["certificate"]["attacks"]["people"] > 200
