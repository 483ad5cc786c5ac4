"""What a forger changes in a certificate is found, refused, or named as not measured again."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import threading
from pathlib import Path

import polars as pl
import pytest
import yaml

import shoal
from shoal.auditor.checks import Stated, contradictions
from shoal.auditor.measured_again import WORDS
from shoal.cli.main import status_of
from shoal.data.certificate_shape import shape_findings
from shoal.errors import InputError
from shoal.reports.attacks import attack_lines, page_content, ranked, rows_of
from thorough import every, in_turn, long_where

POLICY = {
    "version": 1,
    "attributes": {
        "patient": {"role": "subject"},
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 100], "round": 5},
        "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
        "sex": {"role": "quasi"},
        "disease": {"role": "sensitive"},
        "ward": {"role": "plain"},
    },
    "promises": [
        {"model": "k-anonymity", "k": 4},
        {"model": "l-diversity", "attribute": "disease", "l": 2, "kind": "distinct"},
    ],
    "other": "drop",
    "write": {"numbers": ["lo", "hi"]},
    "method": {"name": "mondrian"},
    "seed": 3,
}
"""A policy with all that columns can be; its release does not hold its people."""
WORDS_OF_ALL = {"quasi": ["age", "zip", "sex"], "sensitive": "disease", "k": 4, "l": 2} | {
    "subject": "patient",
    "other": "plain",
}
WITHOUT_SUBJECT = {"version", "attributes", "promises", "other", "method", "seed"}
ONLY_ITS_AUTHOR = {"schema", "shoal", "build", "date", "verb", "method", "seed", "seconds", "scale"}


def _people() -> pl.DataFrame:
    """80 people, every fourth with two records; a note that the policy drops."""
    chance = random.Random(5)
    rows = []
    for person in range(80):
        one = {
            "patient": f"p{person}",
            "name": f"n{person}",
            "age": str(chance.randint(18, 90)),
            "zip": f"1{chance.randint(0, 4)}{chance.randint(0, 9)}",
            "sex": chance.choice("fm"),
            "disease": chance.choice(["flu", "asthma", "ulcer"]),
            "ward": chance.choice("abc"),
            "note": f"x{person}",
        }
        rows += [one] * (2 if person % 4 == 0 else 1)
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A folder with the table, its policy, a release and its certificate."""
    folder = tmp_path_factory.mktemp("forged")
    _people().write_csv(folder / "in.csv")
    (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    command = ["publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", "--trace", "t.jsonl"]
    assert status_of([*(str(folder / c) if "." in c else c for c in command), "-q"]) == 0
    return folder


@pytest.fixture
def folder(released, tmp_path) -> Path:
    shutil.copytree(released, tmp_path / "copy")
    return tmp_path / "copy"


def content_of(folder: Path) -> dict:
    return json.loads((folder / "out.csv.certificate.json").read_text())


def forge(folder: Path, change) -> None:
    content = content_of(folder)
    change(content)
    (folder / "out.csv.certificate.json").write_text(json.dumps(content))


def checked(folder: Path, *, policy=True, original=True) -> dict[str, shoal.Check]:
    found = shoal.verify(
        folder / "out.csv",
        policy=folder / "policy.yaml" if policy else None,
        original=folder / "in.csv" if original else None,
        trace=folder / "t.jsonl" if original else None,
    )
    return {check.name: check for check in found}


def failed(checks: dict[str, shoal.Check]) -> list[str]:
    return [name for name, check in checks.items() if check.ok is False]


def setting(*path_and_value):
    """A change of one key: the way down to it, then the forged value."""
    *path, last, value = path_and_value

    def change(content):
        for key in path:
            content = content[key]
        content[last] = value

    return change


def test_an_honest_certificate_passes_with_all_that_can_be_given(released):
    for given in ({}, {"original": False}, {"original": False, "policy": False}):
        checks = checked(released, **given)
        assert failed(checks) == []
    assert checked(released)["measured again"].ok is True


# Every key: found, refused, or named


def leaves(value, path=()):
    """The paths to all single values, and to lists of them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for index, one in enumerate(value):
            yield from leaves(one, (*path, index))
    else:
        yield path


def at(content, path):
    for key in path:
        content = content[key]
    return content


def other_than(value):
    """Values of the same kind: what a forger would write, since its shape does not give it away."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(value - 1, 0) if value else 2]
    if isinstance(value, float):
        return [value * 0.9]
    if isinstance(value, str):
        known = {"interval": "node", "quasi": "plain", "plain": "sensitive", "number": "category"}
        is_hash = len(value) == 64
        return ["0" * 64] if is_hash else [known.get(value, value + "x")]
    return [["age"]] if isinstance(value, list) else [0.5]


@pytest.mark.parametrize(
    "given",
    long_where(lambda g: not g, [{}, {"original": False}, {"original": False, "policy": False}]),
    ids=["all", "policy", "nothing"],
)
def test_no_key_is_passed_over_in_silence(folder, given):
    """Whatever is changed: a check fails, or the key is among those that were not measured."""
    honest = content_of(folder)
    silent = []
    step = 3 if given else 1
    for number, path in every(step, enumerate(leaves(honest))):
        for forged in in_turn(number, other_than(at(honest, path))):
            content = copy.deepcopy(honest)
            setting(*path, forged)(content)
            if forged == at(honest, path):
                continue
            (folder / "out.csv.certificate.json").write_text(json.dumps(content))
            try:
                checks = checked(folder, **given)
            except InputError:
                continue
            is_named = WORDS.get(path[0], path[0]) in checks["not measured again"].text
            unasked = path[0] in ("policy", "input") and checks[path[0]].ok is None
            if not failed(checks) and not is_named and not unasked:
                silent.append((path, forged))
            if not given and not failed(checks):
                # a finding may be in the words of an earlier version
                is_wording = path[0] == "warnings" and path[-1] == "text"
                assert is_wording or path[0] in ONLY_ITS_AUTHOR, path
    assert silent == []


def test_with_everything_at_hand_only_its_author_s_words_are_left(released):
    text = checked(released)["not measured again"].text
    words = (
        "version of Shoal, date, versions of libraries, command, method, seed of random numbers,"
        " run time, threads and memory"
    )
    assert text == f"{words} (what only its author knows)"


def test_a_method_that_shoal_does_not_have_is_said_to_be_unknown(folder):
    forge(folder, setting("method", "name", "magic"))
    assert "method (not one of Shoal's)" in checked(folder)["not measured again"].text


def test_what_needs_the_original_is_named(released):
    text = checked(released, original=False)["not measured again"].text
    assert "how many people there are" in text
    assert "part of the figures of columns" in text
    assert "(needs the original)" in text


# Where nobody can count people: rows bound them


def with_k(k: int):
    """A certificate whose every figure about groups says k, and is consistent in it."""

    def change(content):
        out = content["records"]["out"]
        count = out // k
        sizes = {"count": count, "min": k, "mean": float(k), "max": k}
        content["classes"] = dict(sizes)
        content["subjects"] = max(content["subjects"], count * k)
        promise = content["promises"][0]
        promise |= {"measured": k, "classes": dict(sizes), "risk": {"max": 1 / k, "mean": 1 / k}}
        risk = content["risk"]
        risk |= dict.fromkeys(risk, 1 / k)
        content["together"] |= {"min": k, "alone": 0, "below": 0, "people": count * k}
        content["utility"] |= {"average_class_size": k / 4, "discernibility": out * out}

    return change


@pytest.mark.parametrize("given", [{}, {"policy": False}], ids=["policy", "nothing"])
def test_a_forged_k_is_found_without_the_original(folder, given):
    forge(folder, with_k(50))
    assert not list(contradictions(Stated(shoal.Certificate(content_of(folder)))))
    checks = checked(folder, original=False, **given)
    assert failed(checks) == ["measured again"]
    assert "classes" in checks["measured again"].text


def added(model: str, measured: float, **more):
    """A promise that nobody asked, in the words of one that was kept."""
    one = {"model": model, "attributes": ["disease"], "asked": measured, "measured": measured}
    return lambda content: content["promises"].append(one | {"holds": True} | more)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["promises"][1].update(asked=9, measured=9),  # there are three diseases
        added("p-sensitive-k-anonymity", 4, k=4, k_measured=4),
        added("t-closeness", 0.0),
        added("beta-likeness", 0.0),
    ],
)
def test_figures_that_no_people_behind_the_rows_could_have_are_found_from_the_file(folder, change):
    forge(folder, change)
    assert failed(checked(folder, policy=False, original=False)) == ["measured again"]


def test_groups_of_rows_can_not_be_fewer_people_than_there_are(folder):
    content = content_of(folder)
    least = content["classes"]["min"]
    forge(folder, with_k(least))  # no more people than rows, but another number of groups
    assert "measured again" in failed(checked(folder, original=False, policy=False))


# What a certificate's own figures deny


ACCEPTED = {
    "measure": "certain",
    "attribute": None,
    "at_most": 0.1,
    "measured": 0.2,
    "upper": 0.3,
}
CONTRADICTIONS = {
    "fewer came in than went out": setting("records", "in", 1),
    "more came in than went out": setting("records", "in", 1000),
    "more suppressed than published": setting("records", "suppressed", 5000),
    "a part withheld": lambda c: c["records"].update(suppressed=4, withheld=2),
    "more people than records": setting("subjects", 5000),
    "rows that are said to be people": setting("counted", "rows"),
    "each record a person, but fewer people": setting("people", "assumed"),
    "more people alike than records": setting("promises", 0, "measured", 5000),
    "mean below the smallest": setting("classes", "mean", 1.0),
    "mean beyond all numbers": setting("classes", "mean", 1e308),
    "no whole number of people": setting("classes", "mean", 4.777),
    "risk of other groups": setting("risk", "prosecutor_max", 0.01),
    "journalist is not prosecutor": setting("risk", "journalist_max", 0.01),
    "mean risk": setting("risk", "prosecutor_mean", 0.01),
    "groups of a promise": setting("promises", 0, "classes", "min", 30),
    "risk of a promise": setting("promises", 0, "risk", "max", 0.01),
    "holds though too few": lambda c: c["promises"][1].update(asked=9, measured=2),
    "together asks another k": setting("together", "asked", 2),
    "together has another least": setting("together", "min", 40),
    "more people together than there are": setting("together", "people", 5000),
    "nobody together": setting("together", "people", 0),
    "fewer people together than in one group": setting("together", "people", 3),
    "alone, but groups are large": setting("together", "alone", 3),
    "below, but groups are large": setting("together", "below", 3),
    "discernibility of one group": setting("utility", "discernibility", 1),
    "more labels wrong than records": setting("utility", "classification", 5000),
    "a column twice": lambda c: c["columns"].append(c["columns"][0]),
    "more values than records": setting("columns", 0, "distinct_out", 5000),
    "a loss of what is published as it was": setting("columns", 5, "loss", 0.5),
    "a share of what was removed": setting("columns", -1, "alone_in", 0.5),
    "derived from nothing": setting("columns", 1, "derived_from", "gone"),
    "derived by role alone": setting("columns", 0, "role", "derived"),
    "an identifier is published": setting("columns", 5, "role", "identifier"),
    "a promise about no column": setting("promises", 1, "attributes", ["gone"]),
    "together about other columns": setting("together", "attributes", ["age"]),
    "assumed though known": setting("warnings", [{"code": "people-assumed", "text": "x"}]),
    "few withheld, none are": setting("warnings", [{"code": "withheld-few", "text": "x"}]),
    "together below, none are": setting("warnings", [{"code": "together-below-k", "text": "x"}]),
    "single ends": setting("columns", 0, "single_ends", 0.9),
    "an attack above its limit": setting("attacks", {"accept": [{**ACCEPTED, "holds": True}]}),
    "an attack that nobody judged": setting("attacks", {"accept": [{**ACCEPTED, "holds": None}]}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_its_own_figures_deny_is_found_with_nothing_but_the_certificate(folder, name):
    assert list(contradictions(Stated(shoal.Certificate(content_of(folder))))) == []
    forge(folder, CONTRADICTIONS[name])
    checks = checked(folder, policy=False, original=False)
    assert "figures" in failed(checks), [str(check) for check in checks.values()]


def test_many_contradictions_are_one_short_line(folder):
    forge(folder, lambda c: [change(c) for change in list(CONTRADICTIONS.values())[:6]])
    text = str(checked(folder, policy=False, original=False)["figures"])
    assert len(text) < 400
    assert "more" in text
    assert "\n" not in text


# What the policy and the file deny


DENIED = {
    "another dialect": setting("output", "dialect", "decimal", ","),
    "another mark": setting("output", "dialect", "mark", "?"),
    "another interval": setting("output", "dialect", "intervals", "{lo}..{hi}"),
    "no dates": setting("output", "dialect", "dates", "%d.%m.%Y"),
    "another round": setting("columns", 0, "round", 10.0),
    "a removed column is left out": lambda c: c["columns"].pop(),
    "a removed column has another role": setting("columns", -1, "role", "plain"),
    "a removed column is invented": lambda c: c["columns"].append(
        {**c["columns"][-1], "name": "gone"}
    ),
    "a file of the policy": setting("policy", "files", []),
}


@pytest.mark.parametrize("name", [*DENIED][:-1])
def test_what_policy_and_original_deny_is_found(folder, name):
    forge(folder, DENIED[name])
    assert failed(checked(folder))


@pytest.fixture
def warned(tmp_path) -> Path:
    """A release whose certificate warns: nobody is named, and some cells read as formulas."""
    rows = _people().with_columns(ward=pl.lit("=1+0"))
    rows.write_csv(tmp_path / "in.csv")
    asked = {key: POLICY[key] for key in WITHOUT_SUBJECT}
    asked["attributes"] = {**POLICY["attributes"], "patient": {"role": "drop"}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(asked))
    command = "publish in.csv -p policy.yaml -o out.csv --trace t.jsonl -q".split()
    assert status_of([str(tmp_path / c) if "." in c else c for c in command]) == 0
    return tmp_path


def test_a_finding_in_the_words_of_an_earlier_version_is_still_that_finding(warned):
    policy = warned / "policy.yaml"
    policy.write_text(policy.read_text().replace("    round: 5\n", ""))
    command = ["publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", "--trace", "t.jsonl"]
    assert status_of([*(str(warned / c) if "." in c else c for c in command), "--replace"]) == 0
    honest = content_of(warned)["warnings"]
    (ends,) = (one for one in honest if one["code"] == "single-ends")
    share = re.search(r"In (\d+) of 100 ranges", ends["text"])[1]
    others = [one for one in honest if one is not ends]
    for stated, is_kept in ((share, True), ("1", False)):
        text = f"age: {stated} % of published ends are one person's true value; 'round: 5' hides"
        earlier = {"code": "single-ends", "severity": "open", "text": f"{text} them"}
        forge(warned, setting("warnings", [*others, earlier]))
        assert failed(checked(warned)) == ([] if is_kept else ["measured again"])


def test_warnings_that_are_left_out_changed_or_invented_are_found(warned):
    honest = content_of(warned)["warnings"]
    codes = {one["code"] for one in honest}
    assert codes == {"people-assumed", "formula-cells", "quasi-left-out"}
    assert failed(checked(warned)) == []
    for index, warning in enumerate(honest):
        others = honest[:index] + honest[index + 1 :]
        changed = [{**warning, "text": "none"}, {**warning, "severity": "grave"}]
        for forged in (others, *([*others, one] for one in changed), [*honest, warning]):
            forge(warned, setting("warnings", forged))
            assert failed(checked(warned)) == ["measured again"]


WRITTEN = {
    "bytes": setting("output", "bytes", 7),
    "no bytes": setting("output", "bytes", None),
    "format": setting("output", "format", "parquet"),
    "packed": setting("output", "format", "csv.gz"),
    "newline": setting("output", "dialect", "newline", "\r\n"),
    "bom": setting("output", "dialect", "bom", True),
    "encoding": setting("output", "dialect", "encoding", "utf-16"),
    "delimiter": setting("output", "dialect", "delimiter", ";"),
    "no delimiter": setting("output", "dialect", "delimiter", None),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_how_the_file_is_written_is_found_from_the_file_alone(folder, name):
    forge(folder, WRITTEN[name])
    assert failed(checked(folder, policy=False, original=False))


def test_an_encoding_that_reads_one_text_from_several_bytes_is_refused(folder):
    """In UTF-7 `A` and `+AEE-` are one letter, so two groups of cells could look like one."""
    text = (folder / "out.csv").read_bytes()
    (folder / "out.csv").write_bytes(text.replace(b",f,", b",+AGY-,", 1))
    content = (folder / "out.csv").read_bytes()
    digest = hashlib.sha256(content).hexdigest()

    def change(certificate):
        certificate["output"] |= {"sha256": digest, "bytes": len(content)}
        certificate["output"]["dialect"]["encoding"] = "utf-7"

    forge(folder, change)
    checks = checked(folder)
    assert "output" in failed(checks)


@pytest.mark.parametrize("verb", ["fuse", "stream", "republish", "audit", "invented"])
def test_no_other_verb_excuses_what_does_not_fit(folder, verb):
    forge(folder, setting("verb", verb))
    with pytest.raises(InputError, match="certificate"):
        checked(folder)


def test_a_fusion_must_have_the_policy_that_it_names(folder):
    def change(content):
        content |= {"verb": "fuse", "fusion": {}, "input": None}
        content["records"]["in"] = None
        content["policy"]["sha256"] = "0" * 64
        content["subjects"] = content["records"]["out"]

    forge(folder, change)
    checks = checked(folder, original=False)
    assert "policy" in failed(checks)
    assert "name its agreement" in checks["policy"].text


def test_an_original_that_is_not_named_must_be_matched_record_by_record(folder):
    forge(folder, setting("input", None))
    checks = checked(folder)
    assert checks["input"].ok is None
    assert checks["measured again"].ok is True
    _people().reverse().write_csv(folder / "in.csv")
    assert {"input", "measured again"} <= {*failed(checked(folder))}


def test_an_audit_without_a_policy_does_not_pass_for_one_by_the_policy_that_is_given(folder):
    command = ["audit", folder / "out.csv", "--column", "quasi=age,zip,sex", "--k", "2", "-q"]
    command += ["-o", folder / "out.csv.certificate.json", "--replace"]
    assert status_of([str(part) for part in command]) == 0
    assert failed(checked(folder, policy=False, original=False)) == []
    assert "policy" in failed(checked(folder, original=False))


# Its shape


SHAPES = {
    "columns": (None, "'columns' must be a list"),
    "classes": (5, "'classes' must be an object"),
    "promises": ({}, "'promises' must be a list"),
    "together": (None, "'together' must be an object"),
    "people": (None, "'people' must be one of assumed, known"),
    "utility": ({}, "'utility.gcp' is missing"),
    "risk": ({}, "'risk.marketer' is missing"),
    "warnings": ([{"code": 1, "text": "x"}], "'warnings[0].code' must be a text"),
    "seed": (1.5, "'seed' must be a whole number of at least 0"),
    "method": ("mondrian", "'method' must be an object"),
    "verb": ("sell", "'verb' must be one of publish, stream, republish, fuse, audit"),
    "date": ("yesterday", "'date' must be a time in UTC"),
    "faults": ([], "'faults' must be an object"),
    "policy": (None, "'policy' must be an object"),
}


@pytest.mark.parametrize("key", SHAPES)
def test_what_is_no_certificate_is_refused_in_a_line_that_names_the_key(folder, key):
    forged, told = SHAPES[key]
    forge(folder, setting(key, forged))
    with pytest.raises(InputError) as refused:
        checked(folder)
    first = str(refused.value)
    assert told in first
    assert "fetch it again" in first.splitlines()[0]


def test_all_that_is_wrong_is_named_at_once(folder, capsys):
    def change(content):
        content["records"]["out"] = "many"
        content["classes"] = 5
        content["output"]["dialect"]["encoding"] = "bogus"
        content["promises"][0]["risk"] = None

    forge(folder, change)
    assert status_of(["verify", str(folder / "out.csv")]) == 2
    told = capsys.readouterr().err
    for key in ("records.out", "classes", "output.dialect.encoding", "promises[0].risk"):
        assert f"'{key}' must be" in told
    assert "many" not in told
    assert "bogus" not in told


def test_a_number_that_is_none_is_refused(folder):
    path = folder / "out.csv.certificate.json"
    path.write_text(path.read_text().replace('"seed": 3', '"seed": NaN'))
    with pytest.raises(InputError, match="not a certificate of Shoal"):
        checked(folder)


def to_schema_1(content):
    content["schema"] = "shoal.certificate/1"
    for key in ("date", "build", "policy", "columns", "people", "together", "warnings"):
        content.pop(key, None)
    content["records"].pop("withheld")
    content["output"] = {"sha256": content["output"]["sha256"]}
    content["promises"][0].pop("classes")
    content["promises"][0].pop("risk")


def test_the_schema_before_is_compared_as_far_as_it_says_something(folder):
    forge(folder, to_schema_1)
    checks = checked(folder)
    assert failed(checks) == []
    for name in ("columns", "policy"):
        assert checks[name].text == "a certificate of schema 1 names none"
    loaded = shoal.Certificate.load(folder / "out.csv.certificate.json")
    assert loaded["date"] is loaded["columns"] is loaded["policy"] is None
    forge(folder, setting("classes", "min", 30))
    assert "measured again" in failed(checked(folder))


@pytest.mark.parametrize(
    "change",
    [
        setting("together", {}),
        setting("records", "withheld", 3),
        setting("people", "known"),
        setting("output", "bytes", 3),
    ],
)
def test_the_schema_before_has_no_newer_keys(folder, change):
    forge(folder, to_schema_1)
    forge(folder, change)
    with pytest.raises(InputError, match="does not belong there"):
        checked(folder)


def test_every_key_that_is_taken_away_is_missed(folder):
    honest = content_of(folder)
    for taken in honest.keys() - {"schema", "input", "scale", "starred"}:
        content = {key: value for key, value in honest.items() if key != taken}
        assert shape_findings(content, False), taken


# What the reader is told


def test_a_file_that_can_not_be_read_is_said_once(folder):
    (folder / "out.csv").write_bytes(b"age,zip\n\xff\xfe,1\n")
    found = [str(check) for check in checked(folder).values()]
    assert sum("UTF-8" in line for line in found) == 1
    assert not any("--read" in line for line in found)


def test_the_policy_of_another_table_is_said_to_be_that(folder, capsys):
    other = {
        "version": 1,
        "attributes": {"height": {"role": "quasi"}},
        "promises": [{"model": "k-anonymity", "k": 4}],
        "read": {"encoding": "utf-16"},
    }
    (folder / "other.yaml").write_text(yaml.safe_dump(other))
    assert status_of(["verify", str(folder / "out.csv"), "-p", str(folder / "other.yaml")]) == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert [line.split(":")[0] for line in wrong] == ["FAIL policy", "FAIL measured again"]
    assert "does not fit the file" in wrong[1]
    assert not any("--read" in line or "encoding" in line for line in wrong)


@pytest.mark.parametrize("length", [0, 10, 65])
def test_a_signature_of_another_length_is_named(folder, length):
    (folder / "out.csv.certificate.json.sig").write_bytes(b"x" * length)
    check = checked(folder)["signature"]
    assert check.ok is False
    assert check.text == f"has {length} bytes, a signature has 64; fetch it again"


def test_a_signature_that_never_ends_is_not_read(folder):
    os.mkfifo(folder / "out.csv.certificate.json.sig")
    with pytest.raises(InputError, match="is not a regular file"):
        checked(folder)


def test_much_that_differs_is_one_short_line(folder):
    def change(content):
        for column in content["columns"][:5]:
            column["distinct_out"] = 1
        content["utility"] |= {"squared_error": 1.0, "generalized_loss": 0.1}

    forge(folder, change)
    text = str(checked(folder)["measured again"])
    assert len(text) < 250


# Options that the release was published with


def run(folder, capsys, *words: str) -> tuple[int, str]:
    paths = {name: str(folder / name) for name in ("in.csv", "policy.yaml", "o.csv", "t.jsonl")}
    status = status_of([paths.get(word, word) for word in words])
    found = capsys.readouterr()
    return status, found.out + found.err


def test_what_was_published_with_options_is_verified_with_the_same(folder, capsys):
    publish = ("publish", "in.csv", "-p", "policy.yaml", "-o", "o.csv", "-q", "--k", "3")
    assert run(folder, capsys, *publish, "--write", "delimiter=;")[0] == 0
    verify = ("verify", "o.csv", "-p", "policy.yaml", "--original", "in.csv")
    status, told = run(folder, capsys, *verify)
    assert status == 1
    assert "FAIL policy: is not the one certified" in told
    assert "with the options that it was published with, such as --k 3" in told
    status, told = run(folder, capsys, *verify, "--k", "3", "--write", "delimiter=;")
    assert status == 0, told
    assert "ok   policy" in told


def test_options_without_a_policy_are_refused(folder, capsys):
    status, told = run(folder, capsys, "verify", "out.csv", "--k", "3")
    assert status == 2
    assert "name it with --policy" in told


# Files that are written otherwise than the policy says


@pytest.fixture
def umlauts(tmp_path) -> Path:
    """A table in cp1252 that was published in UTF-8, by an option."""
    rows = _people().with_columns(ward=pl.lit("Südflügel"))
    (tmp_path / "in.csv").write_bytes(rows.write_csv(separator=";").encode("cp1252"))
    asked = {key: POLICY[key] for key in WITHOUT_SUBJECT}
    asked |= {"read": {"encoding": "cp1252"}, "write": {}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(asked))
    return tmp_path


def test_a_release_is_read_as_the_certificate_beside_it_says(umlauts, capsys):
    publish = ("publish", "in.csv", "-p", "policy.yaml", "-o", "o.csv", "--trace", "t.jsonl", "-q")
    assert run(umlauts, capsys, *publish, "--write", "encoding=utf-8")[0] == 0
    original = ("--original", "in.csv", "--trace", "t.jsonl")
    audit = ("audit", "o.csv", "-p", "policy.yaml", *original, "--json")
    status, told = run(umlauts, capsys, *audit)
    assert status == 0, told
    certificate = json.JSONDecoder().raw_decode(told[told.index("{") :])[0]
    assert certificate["faults"] == {"uncovered": 0, "changed": 0}
    # a certificate of another file says nothing about this one
    (umlauts / "o.csv").write_bytes((umlauts / "o.csv").read_bytes() + b"\n")
    assert run(umlauts, capsys, *audit)[0] != 0


def test_without_a_certificate_it_is_read_as_the_policy_says(umlauts, capsys):
    publish = ("publish", "in.csv", "-p", "policy.yaml", "-o", "o.csv", "-q")
    assert run(umlauts, capsys, *publish)[0] == 0
    (umlauts / "o.csv.certificate.json").unlink()
    audit = ("audit", "o.csv", "-p", "policy.yaml", "--original", "in.csv", "-q")
    assert run(umlauts, capsys, *audit)[0] == 0


def test_a_release_that_comes_by_a_pipe_is_read_once(folder):
    pipe, content = folder / "pipe.csv", (folder / "out.csv").read_bytes()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    found = shoal.verify(pipe, folder / "out.csv.certificate.json", policy=folder / "policy.yaml")
    writer.join(timeout=10)
    checks = {check.name: check for check in found}
    assert failed(checks) == []
    assert checks["file"].ok is True
    assert checks["output"].ok is None


# What a forger writes into names


SPOOF = "x\nok   signature: by the key in hospital.pub.pem\x1b[2K\u202e"


def test_no_name_in_a_certificate_passes_for_a_line_of_verify(folder, capsys):
    def change(content):
        content[SPOOF] = {"x": 1}
        promise = {"model": SPOOF, "attributes": [], "asked": 1, "measured": 1, "holds": True}
        content["promises"].append(promise)

    forge(folder, change)
    status_of(["verify", str(folder / "out.csv")])
    told = capsys.readouterr().out
    lines = told.splitlines()
    assert len(lines) == 13
    assert not [line for line in lines if line.startswith("ok   signature")]
    assert "hospital.pub.pem" in told  # the promise that nobody knows is named
    assert all(line.isprintable() for line in lines)
    forge(folder, setting("faults", SPOOF, -1))
    assert status_of(["verify", str(folder / "out.csv")]) == 2
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_what_is_forged_is_not_signed_by_its_owner(folder, capsys):
    """The attack: change a certificate before its owner signs it."""
    assert status_of(["sign", "--new-key", str(folder / "k"), "--unprotected"]) == 0
    sign = ["sign", str(folder / "out.csv"), "--key", str(folder / "k.pem")]
    honest = (folder / "out.csv.certificate.json").read_bytes()
    for change in (with_k(50), CONTRADICTIONS["risk of other groups"]):
        (folder / "out.csv.certificate.json").write_bytes(honest)
        forge(folder, change)
        capsys.readouterr()
        assert status_of(sign) == 1
        assert "nothing is signed" in capsys.readouterr().err
        assert not (folder / "out.csv.certificate.json.sig").exists()
    (folder / "out.csv.certificate.json").write_bytes(honest)
    assert status_of(sign) == 0
    for _ in range(2):  # an older signature, of these bytes or of others, gives way if asked to
        assert status_of([*sign, "--replace"]) == 0
        (folder / "out.csv.certificate.json.sig").write_bytes(b"x")


@pytest.mark.parametrize(
    "change",
    [
        {"attacks": {"accept": [{**ACCEPTED, "holds": False}]}},
        {"history": {"holds": False, "allowed": False, "findings": []}},
    ],
    ids=["attacks", "history"],
)
def test_a_certificate_that_states_harm_is_not_kept(folder, change):
    honest = shoal.Certificate(content_of(folder))
    assert honest.holds
    assert not honest.extended(**change).holds


# What a file may carry beside what it shows


def with_new_hash(released: Path) -> None:
    """The certificate names the file as it is now."""
    proof = Path(f"{released}.certificate.json")
    content, written = json.loads(proof.read_text()), released.read_bytes()
    content["output"] |= {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}
    proof.write_text(json.dumps(content))


def test_a_column_that_only_says_that_it_is_derived_is_found_without_the_policy(folder):
    """The attack: true ages in `age_lo`, which no reader without the policy computes again."""
    rows = pl.read_csv(folder / "out.csv", infer_schema=False)
    true = pl.read_csv(folder / "in.csv", infer_schema=False)["age"]
    rows.with_columns(true.alias("age_lo")).write_csv(folder / "out.csv")
    with_new_hash(folder / "out.csv")
    checks = checked(folder, policy=False, original=False)
    assert failed(checks) == ["measured again"]
    assert "column 'age_lo': tells more than" in checks["measured again"].text


@pytest.mark.long
def test_findings_of_attacks_that_are_none_are_refused_where_they_are_read():
    """Their shapes are their attacks' own, so the certificate's rules do not know them."""
    frame = _people().drop("name")
    honest = shoal.publish(frame, **WORDS_OF_ALL, attack="all").certificate
    assert all(row.word for row in rows_of(honest))
    odd = [None, "*", [], {}, [None], -1, 10**400, {"share": "*", "ci": None}]
    refusals = []
    # the shape of `accept` is known
    paths = [path for path in inner(honest["attacks"]) if path[0] != "accept"]
    for path, value in zip(paths * 3, itertools.cycle(odd)):
        forged = copy.deepcopy(dict(honest["attacks"]))
        at(forged, path[:-1])[path[-1]] = value
        try:
            list(attack_lines(honest.extended(attacks=forged)))
            page_content(honest.extended(attacks=forged))
            ranked(honest.extended(attacks=forged))
        except InputError as refusal:
            refusals.append(str(refusal))
    assert refusals
    assert all("'attacks' says what no attack" in said for said in refusals)


def inner(value, path=()):
    """The path to each part of a value, however deep."""
    is_list = isinstance(value, list)
    for key in range(len(value)) if is_list else value if isinstance(value, dict) else ():
        yield (*path, key)
        yield from inner(value[key], (*path, key))
