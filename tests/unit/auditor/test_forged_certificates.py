"""What a forger changes in a certificate is found, refused, or named as not measured again."""

import copy
import itertools
import json
import os
import re
import threading

import polars as pl
import pytest
import yaml

import shoal
from certified_cases import (
    POLICY,
    PUBLISH,
    alone,
    checked,
    content_of,
    failed,
    forge,
    people,
    publish,
    run,
    setting,
    with_new_hash,
)
from shoal.auditor.checks import Stated, contradictions
from shoal.auditor.measured_again import WORDS
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import shape_findings
from shoal.errors import InputError
from shoal.reports.attacks import attack_lines, page_content, ranked, rows_of
from thorough import every, in_turn

WORDS_OF_ALL = {"quasi": ["age", "zip", "sex"], "sensitive": "disease", "k": 4, "l": 2} | {
    "subject": "patient",
    "other": "plain",
}
WITHOUT_SUBJECT = {"version", "attributes", "promises", "other", "method", "seed"}
ONLY_ITS_AUTHOR = {"schema", "shoal", "build", "date", "verb", "method", "seed", "seconds", "scale"}


def test_an_honest_certificate_passes_and_what_was_not_compared_is_named(certified):
    everything = checked(certified)
    without_original = checked(certified, original=False)
    for checks in (everything, without_original, alone(certified)):
        assert failed(checks) == []
    assert everything["measured again"].ok is True
    assert everything["not measured again"].text == (
        "version of Shoal, date, versions of libraries, command, method, seed of random numbers,"
        " run time, threads and memory (what only its author knows); attacks (none was tried: what"
        " they would find is unknown)"
    )
    text = without_original["not measured again"].text
    assert "number of people" in text
    assert "figures of columns (in part)" in text
    assert "(needs the original)" in text


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


@pytest.mark.parametrize("turn", range(3), ids=["all", "policy", "nothing"])
def test_no_key_is_passed_over_in_silence(copied, turn):
    """Whatever is changed: a check fails, or the key is among those that were not measured."""
    honest = content_of(copied)
    silent = []
    given = [{}, {"original": False}, {"original": False, "policy": False}][turn]
    for number, path in every(6, enumerate(leaves(honest)), first=2 * turn):
        for forged in in_turn(number, other_than(at(honest, path))):
            content = copy.deepcopy(honest)
            setting(*path, forged)(content)
            if forged == at(honest, path):
                continue
            (copied / "out.csv.certificate.json").write_text(json.dumps(content))
            try:
                checks = checked(copied, **given)
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


def parts(value, path=()):
    """The paths to whatever may be taken out: keys at any depth, and places of lists."""
    below = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in below if isinstance(value, dict | list) else ():
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from parts(one, (*path, key))


def test_no_figure_is_taken_out_in_silence(copied):
    """A check fails, or the part is among what is not measured again or not stated."""
    honest = content_of(copied)
    silent = []
    for path in every(4, parts(honest)):
        content = copy.deepcopy(honest)
        above = at(content, path[:-1])
        is_told_by_code = path[0] == "warnings" and path[-1] == "severity"
        if path[0] in ONLY_ITS_AUTHOR or is_told_by_code or above[path[-1]] in (None, []):
            continue
        del above[path[-1]]
        (copied / "out.csv.certificate.json").write_text(json.dumps(content))
        try:
            checks = checked(copied)
        except InputError:
            continue
        is_named = WORDS.get(path[0], path[0]) in checks["not measured again"].text
        is_unnamed = path[0] == "input" and "names none" in checks["input"].text
        if not failed(checks) and not is_named and not is_unnamed:
            silent.append(path)
    assert silent == []


def test_a_method_that_shoal_does_not_have_is_said_to_be_unknown(copied):
    forge(copied, setting("method", "name", "magic"))
    assert "method (not one of Shoal's)" in checked(copied)["not measured again"].text


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


@pytest.mark.parametrize("policy", [True, False])
def test_a_forged_k_is_found_without_the_original(copied, policy):
    forge(copied, with_k(50))
    assert not list(contradictions(Stated(Certificate(content_of(copied)))))
    checks = checked(copied, original=False, policy=policy)
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
        lambda c: with_k(c["classes"]["min"])(c),  # no more people, but another number of groups
    ],
    ids=["l", "p", "t", "beta", "groups"],
)
def test_figures_that_no_people_behind_the_rows_could_have_are_found_from_the_file(copied, change):
    forge(copied, change)
    assert "measured again" in failed(alone(copied))


# What a certificate's own figures deny


ACCEPTED = {"measure": "certain", "attribute": None, "at_most": 0.1, "measured": 0.2, "upper": 0.3}
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
def test_what_its_own_figures_deny_is_found_with_nothing_but_the_certificate(certified, name):
    content = content_of(certified)
    assert list(contradictions(Stated(Certificate(content)))) == []
    CONTRADICTIONS[name](content)
    forged = Certificate.parsed(json.dumps(content).encode(), "certificate.json")
    assert list(contradictions(Stated(forged))) != []


def test_much_that_is_wrong_is_one_short_line(copied):
    forge(copied, lambda c: [change(c) for change in list(CONTRADICTIONS.values())[:6]])
    text = str(alone(copied)["figures"])
    assert text.startswith("FAIL")
    assert len(text) < 400
    assert "more" in text
    assert "\n" not in text
    assert len(str(checked(copied)["measured again"])) < 250


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
}
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


@pytest.mark.parametrize("name", [*DENIED, *WRITTEN])
def test_what_policy_and_original_deny_is_found_or_how_it_is_written_from_the_file(copied, name):
    forge(copied, (DENIED | WRITTEN)[name])
    assert failed(checked(copied) if name in DENIED else alone(copied))


@pytest.fixture
def warned(tmp_path):
    """A release whose certificate warns: nobody is named, and some cells read as formulas."""
    asked = {key: POLICY[key] for key in WITHOUT_SUBJECT}
    asked["attributes"] = {**POLICY["attributes"], "patient": {"role": "drop"}}
    return publish(tmp_path, people().with_columns(ward=pl.lit("=1+0")), asked)


def test_a_finding_in_the_words_of_an_earlier_version_is_still_that_finding(warned):
    policy = warned / "policy.yaml"
    policy.write_text(policy.read_text().replace("    round: 5\n", ""))
    assert run(warned, PUBLISH) == 0
    honest = content_of(warned)["warnings"]
    (ends,) = (one for one in honest if one["code"] == "single-ends")
    share = re.search(r"(\d+) % of the ends", ends["text"])[1]
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


def test_an_encoding_that_reads_one_text_from_several_bytes_is_refused(copied):
    """In UTF-7 `A` and `+AEE-` are one letter, so two groups of cells could look like one."""
    text = (copied / "out.csv").read_bytes()
    (copied / "out.csv").write_bytes(text.replace(b",f,", b",+AGY-,", 1))
    with_new_hash(copied / "out.csv")
    forge(copied, setting("output", "dialect", "encoding", "utf-7"))
    assert "output" in failed(checked(copied))


def test_a_fusion_must_have_the_policy_that_it_names(copied):
    def change(content):
        content |= {"verb": "fuse", "fusion": {}, "input": None}
        content["records"]["in"] = None
        content["policy"]["sha256"] = "0" * 64
        content["subjects"] = content["records"]["out"]

    forge(copied, change)
    checks = checked(copied, original=False)
    assert "policy" in failed(checks)
    assert "name its agreement" in checks["policy"].text


def test_an_original_that_is_not_named_must_be_matched_record_by_record(copied):
    forge(copied, setting("input", None))
    checks = checked(copied)
    assert checks["input"].ok is None
    assert checks["measured again"].ok is True
    people().reverse().write_csv(copied / "in.csv")
    assert {"input", "measured again"} <= {*failed(checked(copied))}


def test_an_audit_without_a_policy_does_not_pass_for_one_by_the_policy_that_is_given(copied):
    audit = "audit out.csv --column quasi=age,zip,sex --k 2 -q -o out.csv.certificate.json"
    assert run(copied, f"{audit} --replace") == 0
    assert failed(alone(copied)) == []
    assert "policy" in failed(checked(copied, original=False))


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
def test_what_is_no_certificate_is_refused_in_a_line_that_names_the_key(certified, key):
    forged, said = SHAPES[key]
    content = json.dumps(content_of(certified) | {key: forged})
    with pytest.raises(InputError) as refused:
        Certificate.parsed(content.encode(), "certificate.json")
    assert said in str(refused.value)
    assert "fetch it again" in str(refused.value).splitlines()[0]


@pytest.mark.parametrize("odd", [10**400, -(2**63), "x\ud800", {"\ud800": 1}, [[1 << 63]]])
@pytest.mark.parametrize("key", ["k_measured", "model"])
def test_no_number_or_text_that_nothing_can_hold_gets_past_the_reading(certified, key, odd):
    content = content_of(certified)
    content["promises"][0][key] = odd
    with pytest.raises(InputError, match=rf"'promises\[0\].{key}' must be"):
        Certificate.parsed(json.dumps(content).encode(), "certificate.json")


def test_all_that_is_wrong_is_named_at_once(copied, capsys):
    def change(content):
        content["records"]["out"] = "many"
        content["classes"] = 5
        content["output"]["dialect"]["encoding"] = "bogus"
        content["promises"][0]["risk"] = None

    forge(copied, change)
    assert run(copied, "verify out.csv") == 2
    shown = capsys.readouterr().err
    for key in ("records.out", "classes", "output.dialect.encoding", "promises[0].risk"):
        assert f"'{key}' must be" in shown
    assert "many" not in shown
    assert "bogus" not in shown


def to_schema_1(content):
    content["schema"] = "shoal.certificate/1"
    for key in ("date", "build", "policy", "columns", "people", "together", "warnings"):
        content.pop(key, None)
    content["records"].pop("withheld")
    content["output"] = {"sha256": content["output"]["sha256"]}
    content["promises"][0].pop("classes")
    content["promises"][0].pop("risk")


def test_the_schema_before_is_compared_as_far_as_it_says_something(copied):
    forge(copied, to_schema_1)
    checks = checked(copied)
    assert failed(checks) == []
    for name in ("columns", "policy"):
        assert checks[name].text == "a certificate of schema 1 names none"
    loaded = Certificate.load(copied / "out.csv.certificate.json")
    assert loaded["date"] is loaded["columns"] is loaded["policy"] is None
    honest = content_of(copied)
    forge(copied, setting("classes", "min", 30))
    assert "measured again" in failed(checked(copied))
    for change in (
        setting("together", {}),
        setting("records", "withheld", 3),
        setting("people", "known"),
        setting("output", "bytes", 3),
    ):
        newer = copy.deepcopy(honest)
        change(newer)
        with pytest.raises(InputError, match="does not belong there"):
            Certificate.parsed(json.dumps(newer).encode(), "certificate.json")


def test_every_key_that_is_taken_away_is_missed(certified):
    honest = content_of(certified)
    for taken in honest.keys() - {"schema", "input", "scale", "starred"}:
        content = {key: value for key, value in honest.items() if key != taken}
        assert shape_findings(content, False), taken


# What the reader is told


def test_a_signature_that_never_ends_is_not_read(copied):
    os.mkfifo(copied / "out.csv.certificate.json.sig")
    with pytest.raises(InputError, match="is not a regular file"):
        checked(copied)


# Options that the release was published with


def test_what_was_published_with_options_is_verified_with_the_same(copied, capsys):
    assert run(copied, "publish in.csv -p policy.yaml -o o.csv -q --k 3 --write delimiter=;") == 0
    verify = "verify o.csv -p policy.yaml --original in.csv"
    assert run(copied, verify) == 1
    said = capsys.readouterr().out
    assert "FAIL policy: is not the one certified" in said
    assert "with the options that it was published with, such as --k 3" in said
    assert run(copied, f"{verify} --k 3 --write delimiter=;") == 0
    assert "ok   policy" in capsys.readouterr().out
    assert run(copied, "verify out.csv --k 3") == 2
    assert "name it with --policy" in capsys.readouterr().err


# Files that are written otherwise than the policy says


def test_a_release_is_read_as_its_certificate_says_and_without_one_as_the_policy_does(
    tmp_path, capsys
):
    """A table in cp1252 that was published in UTF-8, by an option."""
    rows = people().with_columns(ward=pl.lit("Südflügel"))
    (tmp_path / "in.csv").write_bytes(rows.write_csv(separator=";").encode("cp1252"))
    asked = {key: POLICY[key] for key in WITHOUT_SUBJECT}
    asked |= {"read": {"encoding": "cp1252"}, "write": {}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(asked))
    assert run(tmp_path, f"{PUBLISH} --write encoding=utf-8") == 0
    audit = "audit out.csv -p policy.yaml --original in.csv"
    capsys.readouterr()
    assert run(tmp_path, f"{audit} --trace t.jsonl --json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["faults"] == {"uncovered": 0, "changed": 0}
    # a certificate of another file says nothing about this one
    (tmp_path / "out.csv").write_bytes((tmp_path / "out.csv").read_bytes() + b"\n")
    assert run(tmp_path, f"{audit} --trace t.jsonl") != 0
    assert run(tmp_path, PUBLISH) == 0
    (tmp_path / "out.csv.certificate.json").unlink()
    assert run(tmp_path, f"{audit} -q") == 0


def test_a_release_that_comes_by_a_pipe_is_read_once(copied):
    pipe, content = copied / "pipe.csv", (copied / "out.csv").read_bytes()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    found = shoal.verify(pipe, copied / "out.csv.certificate.json", policy=copied / "policy.yaml")
    writer.join(timeout=10)
    checks = {check.name: check for check in found}
    assert failed(checks) == []
    assert checks["file"].ok is True
    assert checks["output"].ok is None


# What a forger writes into names


SPOOF = "x\nok   signature: by the key in hospital.pub.pem\x1b[2K\u202e"


def test_no_name_in_a_certificate_passes_for_a_line_of_verify(copied, capsys):
    def change(content):
        content[SPOOF] = {"x": 1}
        promise = {"model": SPOOF, "attributes": [], "asked": 1, "measured": 1, "holds": True}
        content["promises"].append(promise)

    forge(copied, change)
    run(copied, "verify out.csv")
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert len(lines) == 14
    assert not [line for line in lines if line.startswith("ok   signature")]
    assert "hospital.pub.pem" in shown  # the promise that nobody knows is named
    assert all(line.isprintable() for line in lines)
    forge(copied, setting("faults", SPOOF, -1))
    assert run(copied, "verify out.csv") == 2
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize(
    "change",
    [
        {"attacks": {"accept": [{**ACCEPTED, "holds": False}]}},
        {"history": {"holds": False, "allowed": False, "findings": []}},
    ],
    ids=["attacks", "history"],
)
def test_a_certificate_that_states_harm_is_not_kept(copied, change):
    honest = Certificate(content_of(copied))
    assert honest.holds
    assert not honest.extended(**change).holds


# What a file may carry beside what it shows


def test_a_column_that_only_says_that_it_is_derived_is_found_without_the_policy(copied):
    """The attack: true ages in `age_lo`, which no reader without the policy computes again."""
    rows = pl.read_csv(copied / "out.csv", infer_schema=False)
    true = pl.read_csv(copied / "in.csv", infer_schema=False)["age"]
    rows.with_columns(true.alias("age_lo")).write_csv(copied / "out.csv")
    with_new_hash(copied / "out.csv")
    checks = alone(copied)
    assert failed(checks) == ["measured again"]
    assert "column 'age_lo': tells more than" in checks["measured again"].text


@pytest.mark.long
def test_findings_of_attacks_that_are_none_are_refused_where_they_are_read():
    """Their shapes are their attacks' own, so the certificate's rules do not know them."""
    frame = people().drop("name")
    honest = shoal.publish(frame, **WORDS_OF_ALL, attack="all").certificate
    assert all(row.word for row in rows_of(honest))
    odd = [None, "*", [], {}, [None], -1, 10**400, {"share": "*", "ci": None}]
    refusals = []
    # the shapes of these two are known
    paths = [path for path in inner(honest["attacks"]) if path[0] not in ("accept", "skipped")]
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


@pytest.mark.parametrize("stated", [{"models": {}}, {"query_error": 1}, {"query_error": {}}])
def test_downstream_losses_that_are_none_are_refused_where_they_are_read(stated):
    honest = shoal.publish(people().drop("name"), **WORDS_OF_ALL).certificate
    with pytest.raises(InputError, match="'downstream' says what this version does not measure"):
        repr(honest.extended(downstream=stated))


def inner(value, path=()):
    """The path to each part of a value, however deep."""
    is_list = isinstance(value, list)
    for key in range(len(value)) if is_list else value if isinstance(value, dict) else ():
        yield (*path, key)
        yield from inner(value[key], (*path, key))
