"""The dossier: what is answered, what is open, and what it never says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest
import yaml
from jsonschema import Draft202012Validator

import shoal as shoal_package
from shoal.auditor.dossier.context import Context, json_schema, template
from shoal.auditor.dossier.dossier import (
    Answers,
    Roles,
    initial_risk,
    profile_names,
    read_profiles,
    residual_risk,
)
from shoal.cli.main import status_of
from shoal.errors import InputError, PromiseError
from shoal.policy import registry
from shoal.reports.attacks import MUCH, found_much, much_found, rows_of, worst_first
from shoal.reports.dossier import _answer, summary, write_dossier
from shoal.reports.in_short import linked_rows

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


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A folder with patients, their policy, a release and its certificate."""
    folder = tmp_path_factory.mktemp("dossier")
    sample = ["sample", "patients", "-n", "300", "-o", str(folder / "in.csv"), "-q"]
    assert status_of(sample) == 0
    publish = ["publish", folder / "in.csv", "-p", folder / "in.policy.yaml", "-q"]
    publish += ["-o", folder / "out.csv", "--method", "mondrian"]
    assert status_of([str(argument) for argument in publish]) == 0
    (folder / "release.yaml").write_text(yaml.safe_dump(CONTEXT))
    return folder


@pytest.fixture(scope="module")
def attacked(released, tmp_path_factory) -> tuple[Path, Path]:
    """The folder, and a release on which every attack was tried."""
    path = tmp_path_factory.mktemp("attacked") / "out.csv"
    publish = ["publish", released / "in.csv", "-p", released / "in.policy.yaml", "-q"]
    publish += ["-o", path, "--method", "mondrian", "--attack", "all"]
    assert status_of([str(argument) for argument in publish]) == 0
    return released, path


def dossier(folder: Path, **more):
    asked = {"policy": _policy(folder), "context": CONTEXT}
    return shoal_package.dossier(folder / "out.csv", **asked | more)


def _policy(folder: Path) -> shoal_package.Policy:
    return shoal_package.Policy.load(folder / "in.policy.yaml").with_method("mondrian", {})


def states(found) -> dict[str, str]:
    return {clause["field"]: clause["state"] for clause in found.content["clauses"]}


def answers(**context) -> Answers:
    """Of a release with a risk of 0.2 at most, on 2026-11-22."""
    certificate = shoal_package.Certificate({"risk": {"prosecutor_max": 0.2}})
    stated = Context.model_validate({"version": 1, **context})
    day = date(2026, 11, 22)
    return Answers(certificate, stated, None, residual_risk(certificate), Roles(False), day)


def test_of_an_empty_context_everything_is_open_that_the_certificate_does_not_state(released):
    found = dossier(released, context=yaml.safe_load(template()))
    answered = {field for field, state in states(found).items() if state == "answered"}
    assert all(field.startswith("certificate.") for field in answered)
    assert "certificate.promises" in answered


def test_what_is_filled_in_is_answered(released):
    found = states(dossier(released))
    assert [found[f] for f in ("controller", "threshold", "attributes")] == ["answered"] * 3
    assert found["purpose"] == "open"


def test_a_file_that_fails_verify_gets_no_dossier(released, tmp_path, shoal):
    changed = tmp_path / "out.csv"
    changed.write_text((released / "out.csv").read_text().replace("asthma", "ulcer", 1))
    proof = released / "out.csv.certificate.json"
    page = tmp_path / "d.html"
    context = released / "release.yaml"
    result = shoal("dossier", changed, proof, "--context", context, "-o", page)
    assert result.status == 1
    assert "fails verify, file: is not the one certified" in result.err
    assert not page.exists()
    assert not page.with_suffix(".json").exists()


@pytest.mark.parametrize("subject", [("who",), ("house", "q0")])
def test_initial_risk_by_hand(tmp_path, subject):
    """(1,x) and (1,y) are alone, two people are (2,x), one of them with two records."""
    rows = ["p,1,1,1,x", "q,1,2,1,y", "r,2,1,2,x", "s,2,2,2,x", "s,2, 2,2,x"]
    (tmp_path / "in.csv").write_text("\n".join(["who,house,q0,a,b", *rows]) + "\n")
    roles = Roles(True, ("a", "b"), ("a", "b"), subject)
    assert initial_risk(str(tmp_path / "in.csv"), roles) == {"alone": 0.5, "mean": 0.75, "max": 1.0}


def test_initial_and_residual_risk_stand_side_by_side(released):
    found = dossier(released, original=released / "in.csv").content
    assert found["initial_risk"]["max"] == 1.0
    assert found["residual_risk"]["max"] == found["certificate"]["risk"]["prosecutor_max"]
    assert found["threshold"]["max"] == {
        "accepted": 0.5,
        "residual": found["residual_risk"]["max"],
        "within": True,
    }


@pytest.mark.parametrize(
    ("context", "field", "lacks"),
    [
        ({"threshold": {"max": 0.1, "why": "x"}}, "threshold", "above the greatest risk"),
        ({"threshold": {"max": 0.2, "why": "x"}}, "threshold", ""),
        ({"threshold": {"max": 0.2}}, "threshold", "lacks the reason"),
        ({"review_by": "2026-11-21"}, "review_by", "is over"),
        ({"review_by": "2026-11-22"}, "review_by", ""),
        ({"controller": {"name": "A"}}, "controller", "lacks contact"),
        ({"controller": {"name": "A", "contact": " "}}, "controller", "lacks contact"),
        ({"other_releases": "none-known"}, "other_releases", ""),
        ({"other_releases": []}, "other_releases", "empty"),
        ({"sign_off": [{"name": "A", "role": "B"}]}, "sign_off", "lacks date, decision"),
        (
            {"sign_off": [{"name": "A", "role": "B", "date": "2026-01-01", "decision": "reject"}]},
            "sign_off",
            "rejected",
        ),
        (
            {"sign_off": [{"name": "A", "role": "B", "date": "2026-01-01", "decision": "accept"}]},
            "sign_off",
            "",
        ),
        (
            {"expert": dict.fromkeys(["name", "qualification", "opinion"], "x")},
            "expert.valid_until",
            "empty",
        ),
    ],
    ids=str,
)
def test_what_an_answer_lacks(context, field, lacks):
    found = answers(**context).lacks(field)
    assert bool(found) == bool(lacks)
    assert lacks in found


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
    assert texts[asked[0]] == "attack: singling out: was not tried on the release"


def test_an_unknown_profile_column_or_key_is_refused_with_a_suggestion(released):
    with pytest.raises(InputError, match="profile 'iso-2755': unknown; did you mean"):
        dossier(released, profiles=["iso-2755"])
    with pytest.raises(InputError, match="'agee' is not a published column"):
        dossier(released, context=CONTEXT | {"attributes": {"agee": RATED}})
    with pytest.raises(InputError, match="context, purpos: is not a known key; did you mean"):
        dossier(released, context=CONTEXT | {"purpos": "x"})


def test_the_template_fits_the_schema_and_the_schema_is_one():
    schema = json.loads(json_schema())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(
        {key: value for key, value in yaml.safe_load(template()).items() if value is not None}
    )


def test_page_and_json_claim_nothing_and_show_no_value(released, tmp_path):
    page = tmp_path / "d.html"
    dossier(released, original=released / "in.csv", output=page)
    text = page.read_text("utf-8") + page.with_suffix(".json").read_text("utf-8")
    assert not CLAIMS.search(text)
    assert not CLAIMS.search(template())
    diseases = pl.read_csv(released / "in.csv")["disease"].unique()
    assert not [disease for disease in diseases if disease in text]
    assert json.loads(page.with_suffix(".json").read_text())["schema"] == "shoal.dossier/1"


def test_what_an_owner_writes_is_shown_as_text(released, tmp_path):
    page = tmp_path / "d.html"
    dossier(released, context=CONTEXT | {"purpose": "<script>x</script>"}, output=page)
    assert "<script>" not in page.read_text("utf-8")
    assert "&lt;script&gt;" in page.read_text("utf-8")


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
    page = (tmp_path / "d.html").read_text("utf-8")
    first = page.partition('<div class="verdict red">')[2]
    assert re.match(r"\s*<p><strong>\d+ points are open: \d+ grave findings?, ", first)
    named = page.partition('<section id="open">')[2].partition("</section>")[0]
    assert "<strong>Grave:</strong> column &#39;ward&#39; names people." in named
    assert "legal basis" in named
    assert "legal_basis" not in page.partition('id="appendix"')[0]


def test_the_front_of_a_dossier_is_at_most_two_pages(attacked, tmp_path):
    """However much was found and answered: with long answers, many findings, every attack, of
    which all that found much are accepted.
    """
    folder, certified = attacked
    long = dict.fromkeys(("purpose", "legal_basis"), "a long answer, " * 30)
    context = CONTEXT | long | {"controls": {"agreement": "signed by each of them, " * 30}}
    sign_off = {"name": "A", "role": "B", "date": "2026-01-01", "decision": "accept"}
    context |= {"sign_off": [sign_off | {"comment": "a comment, " * 30}] * 3}
    certificate = shoal_package.Certificate.load(f"{certified}.certificate.json")
    much = [row.says for row in worst_first(certificate) if row.word == MUCH]
    context |= {"accepted": dict.fromkeys(much, "they may not match lists, " * 10)}
    asked = {"policy": _policy(folder), "context": context, "original": folder / "in.csv"}
    found = open_points(shoal_package.dossier(certified, **asked), *["a finding, " * 20] * 30)
    write_dossier(found, tmp_path / "d.html")
    page = (tmp_path / "d.html").read_text("utf-8")
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


def test_a_point_stands_once_under_its_state_beside_what_is_agreed(attacked, tmp_path, monkeypatch):
    folder, certified = attacked
    asked = {"policy": _policy(folder), "context": CONTEXT}
    certificate = shoal_package.Certificate.load(f"{certified}.certificate.json")
    row = next(row for row in worst_first(certificate) if row.word == MUCH)
    finding = row.says
    grave = {"code": "x", "severity": "grave", "text": "column 'ward' names people"}
    path = tmp_path / "out.csv.certificate.json"
    path.write_text(certificate.extended(warnings=[grave]).to_json())
    monkeypatch.setattr("shoal.auditor.dossier.dossier.verify_by", lambda *_: [])
    words = "they may match lists"
    context = CONTEXT | {
        "accepted": {grave["text"]: words, finding: words},
        "controls": {"no_reidentification": "forbidden, section 4"},
        "sign_off": [{"name": "Ada", "decision": "accept"}],
    }
    found = shoal_package.dossier(certified, path, **asked | {"context": context})
    write_dossier(found, tmp_path / "d.html")
    front = html.unescape((tmp_path / "d.html").read_text("utf-8").partition('id="appendix"')[0])
    assert [one["kind"] for one in found.open if one["kind"] == "grave"] == []
    assert "; 2 accepted in words." in front
    assert '<div class="verdict red">' in front
    assert "<strong>Grave, accepted: column 'ward' names people.</strong>" in front
    assert [front.count(point) for point in (grave["text"], finding)] == [2, 1]
    assert f"<strong>much, accepted:</strong> {finding}" in front
    section = front.partition('<section id="accepted">')[2].partition("</section>")[0]
    assert f"“{words}”, signed off by Ada:" in section
    assert "grave: column 'ward'" in section
    assert f"what attacks found, above: {row.label}" in section
    assert "forbidden, section 4" in section


@pytest.mark.parametrize(("share", "colour"), [(0.5, "bad"), (0.05, "partly"), (0, "answered")])
def test_a_criterion_has_the_colour_of_the_worst_that_was_found(share, colour):
    linked = {"known": ["age"], "success": share, "baseline": 0.01}
    certificate = shoal_package.Certificate({"attacks": {"seed": 1, "linkability": linked}})
    assert _answer(certificate, "certificate.attacks.linkability")[1] == colour


def test_what_attacks_found_much_of_is_open_until_somebody_accepts_it(attacked):
    folder, certified = attacked
    certificate = shoal_package.Certificate.load(f"{certified}.certificate.json")
    much = [row.says for row in worst_first(certificate) if row.word == MUCH]
    asked = {"policy": _policy(folder), "context": CONTEXT}
    found = shoal_package.dossier(certified, **asked)
    assert len([one for one in found.open if one["kind"] == MUCH]) == len(much) > 0
    asked["context"] = CONTEXT | {"accepted": dict.fromkeys(much, "they may match lists")}
    found = shoal_package.dossier(certified, **asked)
    assert not [one for one in found.open if one["kind"] == MUCH]


def test_findings_are_counted_beside_the_attacks_that_were_tried(attacked):
    certificate = shoal_package.Certificate.load(f"{attacked[1]}.certificate.json")
    tried = len({*registry.attacks()} & {*certificate["attacks"]})
    count = len(found_much(certificate))
    assert count > 1
    said = f"{count} findings of attacks ({tried} tried) are “much”: see below."
    assert much_found(certificate) == said


def test_verify_says_that_attacks_found_much(attacked, shoal):
    assert "of attacks are 'much'" in shoal("verify", attacked[1]).out


def naming(certificate):
    """The certificate of a release that shows wards, which name people."""
    columns = [
        c | ({"alone_if_known": 90, "role": "plain"} if c["name"] == "ward" else {})
        for c in certificate["columns"]
    ]
    warning = {"code": "plain-names-people", "severity": "grave", "text": "x", "column": "ward"}
    together = certificate["together"] | {"people": 100, "alone_if_known": 90}
    return certificate.extended(columns=columns, warnings=[warning], together=together)


def test_columns_that_name_people_link_records_and_the_rows_of_one_person(attacked):
    certificate = shoal_package.Certificate.load(f"{attacked[1]}.certificate.json")
    field = "certificate.attacks.linkability"
    assert "as they are" not in _answer(certificate, field)[0]
    said, colour = _answer(naming(certificate), field)
    assert said == "attack: linkability [much] by ward, published as they are"
    assert colour == "bad"
    assert linked_rows(naming(certificate)) == "yes, by ward, published as they are"
    texts = [row.says for row in found_much(naming(certificate))]
    assert any("a list with their ward, published as in" in text for text in texts)


def test_a_gain_says_what_it_is_compared_with(attacked):
    certificate = shoal_package.Certificate.load(f"{attacked[1]}.certificate.json")
    gains = {row.label: row.difference for row in rows_of(certificate)}
    assert gains["one value alone"].endswith("by chance")
    assert gains["finding it by its place"].endswith("for somebody else of their class")
    assert gains["guessing disease"].endswith("for people who are not in the release")


def test_reasons_are_asked_of_sensitive_and_plain_columns_too():
    stated = Context.model_validate({"version": 1})
    certificate, day = shoal_package.Certificate({}), date(2026, 11, 22)
    columns = [
        {"name": name, "role": role, "technique": "kept"}
        for name, role in (("age", "quasi"), ("charge", "sensitive"), ("name", "plain"))
    ]
    roles = Roles.of(shoal_package.Certificate({"columns": columns}), None)
    asked = Answers(certificate, stated, None, residual_risk(certificate), roles, day)
    assert asked.lacks("attributes").endswith("missing (age, charge, name)")


def test_open_questions_are_grouped_by_what_answers_them(released):
    found = dossier(released)
    asked = [one for one in found.open if one["kind"] == "question"]
    lines = [line for line in summary(found) if "question" in line and line.startswith("open")]
    assert len(asked) > 10
    assert [line.split(":")[0] for line in lines] == [
        "open  3 questions for attacks",
        "open  1 question for whoever decides",
        f"open  {len(asked) - 4} questions for the context file",
    ]


def test_complete_ends_with_status_1_while_something_is_open(released, shoal):
    command = ["dossier", released / "out.csv", "--context", released / "release.yaml", "-q"]
    assert shoal(*command).status == 0
    assert shoal(*command, "--complete").status == 1


def test_a_release_named_as_another_one_is_recognized_by_its_hashes(released):
    context = CONTEXT | {"other_releases": [str(released / "out.csv.certificate.json")]}
    (other,) = dossier(released, context=context).content["other_certificates"]
    content = json.loads((released / "out.csv.certificate.json").read_text())
    assert other["released_sha256"] == content["output"]["sha256"]


def test_sign_signs_the_json(released, tmp_path, shoal, monkeypatch):
    pytest.importorskip("cryptography")
    from shoal.auditor.signatures import read_trusted

    monkeypatch.chdir(tmp_path)
    assert shoal("sign", "--new-key", "k", "--unprotected").status == 0
    command = ["dossier", released / "out.csv", "--context", released / "release.yaml", "-q"]
    assert shoal(*command, "--sign", "k.pem").status == 2
    assert shoal(*command, "-o", "d.html", "--sign", "k.pem").status == 0
    (key,) = read_trusted(["k.pub.pem"])
    assert key.accepts(Path("d.json.sig").read_bytes(), Path("d.json").read_bytes())
    assert shoal(*command, "-o", "d.html", "--replace").status == 0
    assert not Path("d.json.sig").exists()  # it was about the dossier before


def test_trust_gives_no_dossier_of_a_release_that_none_of_the_keys_signed(
    released, tmp_path, shoal, monkeypatch
):
    pytest.importorskip("cryptography")
    monkeypatch.chdir(tmp_path)
    assert [shoal("sign", "--new-key", name, "--unprotected").status for name in "ab"] == [0, 0]
    for name in ("out.csv", "out.csv.certificate.json"):
        shutil.copy(released / name, tmp_path / name)
    command = ["dossier", "out.csv", "--context", released / "release.yaml", "-o", "d.html"]
    unsigned = shoal(*command, "--trust", "a.pub.pem")
    assert unsigned.status == 1
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


# What attacks found

WP216 = ("singled out?", "linked to a person?", "value be inferred?")


def test_a_dossier_says_that_no_attack_was_tried(released, tmp_path):
    dossier(released, output=tmp_path / "d.html")
    page = (tmp_path / "d.html").read_text()
    section = page[page.index('id="attacks"') :]
    assert "Attacks try; they don&#39;t prove.</strong> None was tried" in section
    assert [section.count(question) for question in WP216] == [1, 1, 1]
    assert section.count("not measured") >= 6


def test_what_attacks_found_is_ranked_before_the_appendix_and_whole_in_it(attacked, tmp_path):
    released, certified = attacked
    page = tmp_path / "d.html"
    asked = {"policy": _policy(released), "context": CONTEXT, "output": page}
    found = shoal_package.dossier(certified, **asked)
    front = page.read_text().partition('id="appendix"')[0].partition('id="found"')[2]
    words = re.findall(r"<li><strong>(\w+)", front)
    places = {"much": 0, "some": 1, "none": 2, "nothing": 2, "not": 3}
    assert words == sorted(words, key=places.__getitem__)
    assert 0 < len(words) <= 10
    assert words.count("much") + words.count("some") == front.count("<em>")
    assert states(found)["certificate.attacks.singling-out"] == "answered"
    assert "attack: singling out [" in page.read_text()
    section = page.read_text()[page.read_text().index('id="attacks"') :]
    places = [section.index(question) for question in (*WP216, "in the release?")]
    assert places == sorted(places)
    assert section.index("Attacks try") < section.index("<svg") < places[0]
    assert "could know of them guesses their disease rightly" in section
    assert "Whiskers: intervals at 95 %" in section
    assert found.content["certificate"]["attacks"]["people"] > 200
