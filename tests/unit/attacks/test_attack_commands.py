"""Attacks from the command line: certificates, thresholds, reports and what is refused."""

import json
import re
from pathlib import Path

import pytest
import yaml

import shoal
from sample_policies import PATIENTS
from shoal.cli.main import status_of
from shoal.data.certificate import Certificate
from shoal.reports.attacks import (
    MOST_RANKED,
    NO_DIFFERENCE,
    NO_MORE,
    NOTHING,
    SOME,
    TOO_FEW,
    Row,
    attack_lines,
    grounds,
    much_found,
    must_be_accepted,
    page_content,
    ranked,
    rows_of,
)
from shoal.samples import patients

ALL = "singling-out linkability inference skewness minimality membership homogeneity".split()


@pytest.fixture
def folder(folder):
    """A folder with invented patients, their policy and a release of them."""
    patients.generate(300, 7).write_csv("patients.csv")
    Path("policy.yaml").write_text(PATIENTS + "render: {order: input}\n")
    run("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv", "-q")
    return folder


def run(*words: object, expect: int = 0) -> None:
    assert status_of([str(word) for word in words]) == expect


def policy_with(**more):
    Path("strict.yaml").write_text(
        yaml.safe_dump(yaml.safe_load(Path("policy.yaml").read_text()) | more)
    )
    return "strict.yaml"


def section(path="certificate.json"):
    return json.loads(Path(path).read_text())["attacks"]


def test_publishing_states_attacks_in_the_certificate_and_changes_nothing_published(folder):
    publish = "publish patients.csv -p policy.yaml -o new.csv --attack all --report r.html -q"
    run(*publish.split())
    certificate = Certificate.load("new.csv.certificate.json")
    found = certificate["attacks"]
    assert [name for name in found if name in ALL] == ALL
    assert found["control"]["kind"] == "republished"
    assert set(found["skipped"]) == {"intersection", "population"}
    assert Path("new.csv").read_bytes() == Path("out.csv").read_bytes()
    parts = page_content(certificate)
    assert [part["question"].split()[-1] for part in parts][:3] == ["out?", "person?", "inferred?"]
    assert any(row["word"] == "not measured" for part in parts for row in part["rows"])
    assert "Attacks try; they don&#39;t prove." in Path("r.html").read_text()
    assert next(iter(attack_lines(certificate))) == "Attacks try; they don't prove."
    assert rows_of(Certificate.load("out.csv.certificate.json")) == []
    judged = {"measure": "alone", "attribute": None, "at_most": 0.1, "measured": 0.2, "upper": 0.3}
    forged = certificate.extended(attacks=found | {"accept": [judged | {"holds": False}]})
    Path("new.csv.certificate.json").write_text(forged.to_json())
    run("verify", "new.csv", expect=1)


def test_an_audit_compares_with_an_earlier_release_and_a_list(folder):
    run("publish", "patients.csv", "-p", "policy.yaml", "-o", "old.csv", "--k", 15, "-q")
    Path("others.yaml").write_text("releases: [{release: old.csv}]")
    arguments = ["--others", "others.yaml", "--external", "patients.csv", "-o", "certificate.json"]
    original = ["--original", "patients.csv", "--attack", "intersection,linkability"]
    run("attack", "out.csv", "-p", "policy.yaml", *original, *arguments, "-q")
    found = section()
    assert found["intersection"]["linked"]["below_k"]["share"] > 0
    assert found["linkability"]["order"][0]["agree"]["share"] == 1
    assert found["linkability"]["external"]["success"]["share"] > 0


def test_a_release_on_which_an_attack_finds_too_much_is_withheld_with_advice(folder, capsys):
    limits = {"charge": 0.001, "ward": 0.0001, "disease": 0.0001}
    strict = policy_with(accept={"alone": limits, "homogeneous": {"disease": 1}})
    run("publish", "patients.csv", "-p", strict, "-o", "new.csv", expect=1)
    assert not Path("new.csv").exists()
    stated = capsys.readouterr().err
    worst = r"accept 'alone' of 'charge': at most 0.001, an attack finds up to 0\.\d+; raise k"
    assert re.search(worst, stated)
    assert "homogeneous" not in stated
    lines = stated.splitlines()
    advice = {name: line for line in lines for name in ("ward", "disease") if f"'{name}'" in line}
    assert "drop the column, or make it a quasi-identifier" in advice["ward"]
    assert "raise k, coarsen its values" in advice["disease"]


def test_what_is_accepted_is_published_with_its_verdict(folder):
    strict = policy_with(accept={"homogeneous": 0.5})
    run("publish", "patients.csv", "-p", strict, "-o", "new.csv", "-q")
    rows = section("new.csv.certificate.json")["accept"]
    judged = [(row["attribute"], row["holds"]) for row in rows]
    assert judged == [("disease", True), ("charge", True)]


def test_a_measure_that_could_not_be_made_withholds_the_release(folder, capsys):
    strict = policy_with(accept={"marketer": 0.5})
    run("publish", "patients.csv", "-p", strict, "-o", "new.csv", expect=2)
    assert "population" in capsys.readouterr().err
    assert not Path("new.csv").exists()


def test_an_audit_judges_thresholds_and_leaves_them_open_without_the_original(folder, capsys):
    strict = policy_with(accept={"alone": 0.001})
    run("audit", "out.csv", "-p", strict, "--original", "patients.csv", "-q", expect=1)
    run("audit", "out.csv", "-p", strict, "-o", "certificate.json")
    assert section()["accept"][0]["holds"] is None
    assert "not judged; give --original" in capsys.readouterr().err


def test_a_population_makes_the_risks_true_ones(folder):
    policy = policy_with(population={"fraction": 0.5})
    run("publish", "patients.csv", "-p", policy, "-o", "new.csv", "-q")
    certificate = Certificate.load("new.csv.certificate.json")
    assert 0 < certificate["risk"]["marketer"] < certificate["risk"]["prosecutor_mean"]
    assert certificate["risk"]["journalist_max"] < certificate["risk"]["prosecutor_max"]
    found = certificate["attacks"]["population"]
    assert (found["estimator"], found["uniques"]) == ("pitman", 0.0), "nobody is alone at k = 10"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give RELEASED, --policy and --original, or --ledger"),
        (["--original", "patients.csv", "--person", "1", "--folds", "2"], "--folds cannot be used"),
        (["--original", "patients.csv", "--attack", "guessing"], "unknown"),
        (["--original", "patients.csv", "--attack", "population"], "population"),
    ],
)
def test_what_can_not_be_tried_is_refused(folder, capsys, words, said):
    run("attack", "out.csv", "-p", "policy.yaml", *words, expect=2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"accept": {"inferense_gain": 0.1}}, "did you mean 'inference_gain'"),
        ({"accept": {"alone": {"age": 0.1}}}, "must have the role 'sensitive' or 'plain'"),
        ({"accept": {"linkage": {"age": 0.1}}}, "one number for the release"),
        ({"accept": {"linkage": 7}}, "a share from 0 to 1"),
        ({"population": {"table": "a.csv", "fraction": 0.1}}, "exactly one"),
        ({"population": {"frequencies": "a.csv"}}, "needs 'column' and 'people'"),
        ({"population": {"fraction": 0.1, "people": 5}}, "belong to it alone"),
    ],
)
def test_a_policy_that_asks_for_what_no_attack_measures_is_refused(more, said):
    with pytest.raises(shoal.InputError, match=said):
        shoal.Policy.from_dict(yaml.safe_load(PATIENTS) | more)


# Words


@pytest.mark.parametrize(
    ("share", "ci", "word"),
    [
        (0.002, [-0.01, 0.01], NOTHING),
        (-0.1, [-0.15, -0.05], NOTHING),
        (0.02, [-0.01, 0.05], NO_DIFFERENCE),
        (0.178, [-0.001, 0.337], TOO_FEW),
        (-0.05, [-0.3, 0.2], TOO_FEW),
        (0.005, [0.001, 0.009], NOTHING),
        (0.05, [0.02, 0.08], SOME),
        (0.2, [0.1, 0.3], "much"),
        (None, None, "not measured"),
    ],
)
def test_a_gain_in_a_word(share, ci, word):
    assert Row("", "", "", chance=0.1, gain={"share": share, "ci": ci}).word == word


def test_a_gain_over_others_is_never_named_after_chance_and_none_found_whoever_is_right_of_nobody():
    gain = {"share": 0.002, "ci": [-0.01, 0.01]}
    assert Row("", "", "", 0.42, control=0.34, chance=0.18, gain=gain).word == NO_MORE
    assert Row("", "", "", 0, chance=0.1, gain={"share": 0.2, "ci": [-0.1, 0.5]}).word == "none"


@pytest.mark.parametrize(
    ("share", "word"), [(0.0, "none"), (0.1, SOME), (0.11, "much"), (None, "not measured")]
)
def test_a_share_in_a_word(share, word):
    assert Row("", "", "", share).word == word


def test_shares_are_in_percent_of_those_who_were_tried():
    none, few = ({"share": share, "ci": None, "of": 556} for share in (0.0, 0.009))
    said = Row("", "", "they are found", none, control=0.5, chance=few).says
    assert said.startswith("0 % of 556 people: they are found;")
    assert said.endswith(", 50 %; by chance, 0.9 %")


def test_no_more_than_others_is_no_finding_and_says_how_much_it_may_be():
    gain = {"share": 0.01, "ci": [-0.02, 0.044]}
    row = Row("", "", "they are guessed", 0.98, control=0.97, chance=0.98, gain=gain)
    assert (row.word, row.may_be_much) == ("no difference shown", False)
    assert row.says.endswith("97 %; by chance, 98 %; at most 4.4 points more")
    assert row.difference == "no better than for people who are not in the release"


# 33 against 15 %, on 46 people each
FEW_TRIED = {"share": 0.178, "ci": [-0.001, 0.337]}


def guessed(gain, accept=()) -> Certificate:
    shares = {"member": {"share": 0.33, "ci": None}, "control": {"share": 0.152, "ci": None}}
    one = GUESSED | {"certain": {"share": 0, "ci": None}, "attackers": {"b": shares}, "gain": gain}
    return found_by(inference={"ill": one}, accept=[*accept])


def test_a_large_gain_on_few_people_must_be_accepted_in_words():
    found = ranked(guessed(FEW_TRIED), {})[0]
    assert (found.word, found.state) == (TOO_FEW, "open")
    assert "more people" in found.remedy
    assert "(1 tried) is “much”, or may be" in much_found(guessed(FEW_TRIED))
    says = must_be_accepted(guessed(FEW_TRIED))[0].says
    accepted = ranked(guessed(FEW_TRIED), {says})[0]
    assert (accepted.state, accepted.remedy) == ("accepted", "")


def test_a_gain_needs_no_words_that_is_small_or_that_a_policy_judges_by_its_upper_end():
    for ci in ([-0.1, 0.2], [-0.01, 0.09]):
        small = guessed({"share": 0.05, "ci": ci})
        assert not must_be_accepted(small)
        assert [one.state for one in ranked(small, {})] == ["", ""]
    judged = {"measure": "inference_gain", "attribute": "ill", "at_most": 0.2, "upper": 0.337}
    assert not must_be_accepted(guessed(FEW_TRIED, [judged | {"holds": False}]))


SHARE = {"share": 0.5, "ci": None}
NONE_FOUND = {"share": None, "ci": None}
ENDS = {
    "univariate": {"share": 0.1, "ci": None},
    "univariate_baseline": NONE_FOUND,
    "isolate": NONE_FOUND,
    "interior": NONE_FOUND,
    "control": None,
    "gain": None,
    "alone": {"ward": SHARE, "pay": {"share": 0.02, "ci": None}},
}
GUESSED = {"certain": NONE_FOUND, "baseline": SHARE, "attackers": None, "gain": None}


def found_by(**attacks) -> Certificate:
    return Certificate({"attacks": {"seed": 1, **attacks}, "promises": []})


def test_certain_values_are_measured_though_nothing_says_which_are_similar():
    found = {"people": {"share": 0.2, "of": None, "ci": None, "how": "exact"}, "similar": None}
    found |= {"classes": 1, "chance": None, "why": "no hierarchy"}
    (row,) = rows_of(found_by(homogeneity={"ill": found}))
    assert row.is_measured
    assert row.why is None


def test_an_attack_that_was_not_measured_says_why_in_words():
    certificate = found_by(
        **{"singling-out": ENDS | {"why": "no published range holds three different numbers"}},
        inference={"pay": GUESSED | {"why": "trying each value takes too long"}},
    )
    lines = [*attack_lines(certificate)]
    why = "no published range holds three different numbers"
    assert f"the end of a range: {why} [not measured]" in lines
    assert "guessing pay: trying each value takes too long [not measured]" in lines
    assert not [line for line in lines if "in not measured" in line or "for not measured" in line]
    shown = [row for part in page_content(certificate) for row in part["rows"]]
    assert not [row for row in shown if row["why"] and row["why"] in row["sentence"]]


def test_a_number_is_guessed_within_a_part_of_its_range_and_compared_with_strangers():
    within = {"best": "b", "tolerance": 9.0, "tolerance_share": 0.05}
    right = {"b": {"member": SHARE, "control": None}}
    (row, *_) = rows_of(found_by(inference={"pay": GUESSED | {"attackers": right} | within}))
    assert "50 % of people: whoever knows all that others could know" in row.says
    assert "guesses their pay, give or take 5 % of its range, correctly" in row.says
    guesses = {"attackers": {"b": {"member": SHARE, "control": SHARE}}, "best": "b"}

    def words(name, certain, gain, more):
        one = GUESSED | guesses | {"certain": certain, "gain": gain} | more
        return [row.word for row in rows_of(found_by(inference={name: one}))]

    small = {"share": 0.05, "ci": [0.01, 0.09]}
    assert words("pay", SHARE, small, within) == ["some", "some"]
    assert words("ill", SHARE, small, {}) == ["some", "much"]
    large, few = ({"share": share, "ci": None} for share in (0.2, 0.01))
    assert words("pay", few, large, within) == ["much", "some"]


NO_GAIN = {"share": 0.005, "ci": [0.0, 0.01]}


@pytest.mark.parametrize(
    ("control", "said", "word"),
    [
        (0.45, "for people who are not in the release, 45 %; by chance, 40 %", NO_MORE),
        (None, "by chance, 40 %", NOTHING),
    ],
)
def test_certainty_judged_by_guesses_says_what_these_were_compared_with(control, said, word):
    control = None if control is None else {"share": control, "ci": None}
    one = GUESSED | {"attackers": {"b": {"member": SHARE, "control": control}}, "best": "b"}
    one |= {"baseline": {"share": 0.4, "ci": None}, "tolerance": 9.0, "tolerance_share": 0.05}
    judged = found_by(inference={"pay": one | {"certain": SHARE, "gain": NO_GAIN}})
    certain = rows_of(judged)[1]
    assert certain.says.endswith(f"; judged by how often a guess is right: 50 %; {said}")
    assert certain.word == word
    assert certain.difference.endswith(said.partition(",")[0])
    by_itself = found_by(inference={"ill": GUESSED | {"certain": SHARE, "gain": NO_GAIN}})
    assert "judged" not in rows_of(by_itself)[1].says


def test_certainty_says_what_is_counted_and_names_holder_share():
    def certain(**more):
        tried = found_by(inference={"ill": GUESSED | {"certain": SHARE}})
        kept = {"promises": [{"model": "l-diversity", "attributes": ["ill"]}]}
        found = ranked(Certificate({**tried, **kept, "people": "known", **more}))
        return next(one for one in found if "nearly certain" in one.says)

    once = certain(subjects=100, records={"out": 100})
    assert once.says.endswith("at least 90 % of the class have the same.")
    assert once.remedy == "Promise holder-share."  # l asks for other values, however few
    often = certain(subjects=100, records={"out": 250})
    assert often.says.endswith(
        "90 % of the people in the class have the same in one of their rows at least."
    )
    assert often.remedy == "Promise holder-share."


def test_findings_are_ranked_much_first_each_with_what_to_do():
    attacks = {"singling-out": ENDS, "skipped": {"population": "needs the population"}}
    found = ranked(found_by(**attacks))
    assert [one.word for one in found] == ["much", "some", "some", "not measured", "not measured"]
    assert found[0].says.startswith("50 % of people: whoever also knows their ")
    assert found[0].remedy == "Drop the column, or make it a quasi-identifier."
    assert all(one.remedy for one in found if one.word in ("much", "some"))
    many = {"alone": {f"c{number}": SHARE for number in range(20)}}
    assert len(ranked(found_by(**{"singling-out": ENDS | many}))) == MOST_RANKED


def test_who_is_in_is_judged_by_a_difference_that_its_sentence_says():
    advantage = {"share": 0.11, "ci": [0.10, 0.12]}
    (row,) = [row for row in rows_of(found_by(membership={"advantage": advantage})) if row.says]
    assert (row.word, row.measure) == ("much", "membership")
    assert "; tossing a coin, 50 %. The answer “is in it” is 11 points more frequent" in row.says
    assert row.says.startswith("56 % of people: ")
    below = found_by(membership={"advantage": {"share": -0.02, "ci": [-0.05, 0.01]}})
    assert "is 0 points more frequent" in rows_of(below)[0].says


def test_a_list_that_finds_nobody_more_than_chance_does_finds_none():
    words = []
    for share, chance in ((2 / 3000, 1 / 3000), (0.002, 0.003), (0.004, 0.001)):
        shares = {"success": SHARE | {"share": share}, "baseline": SHARE | {"share": chance}}
        words.append(rows_of(found_by(linkability={"known": ["age"], **shares}))[0].word)
    assert words == ["none", "none", "some"]


def test_what_is_found_is_counted_in_what_the_certificate_counts():
    def units(people):
        found = found_by(
            **{"singling-out": ENDS, "membership": {"advantage": SHARE, "accuracy": SHARE}},
            control={"kind": "given", "people": 1},
        )
        certificate = Certificate({**found, "people": people})
        said = "\n".join([*(row.says for row in rows_of(certificate)), *grounds(certificate)])
        return {*re.findall(r"(?:\d|of) (people|persons?|records?|rows?|tries)\b", said)}

    assert units("known") == {"people", "person", "tries"}
    assert units("assumed") == {"records", "record", "tries"}
    assert units("unknown") == {"rows", "row", "tries"}
