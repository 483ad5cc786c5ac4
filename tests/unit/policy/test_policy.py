"""Policies: read, proposed, checked, described."""

from __future__ import annotations

import contextlib
import cProfile
import json
import pstats
import warnings
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import PATIENTS, content_of
from shoal.advise.check import sound_part
from shoal.advise.propose import propose
from shoal.auditor.verdict import of_cells
from shoal.connectors import files
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError
from shoal.policy.binding.table import bind
from shoal.policy.loading import SafeLoader, json_schema
from shoal.policy.plug_ins import COMPARATORS
from shoal.policy.policy import Policy
from shoal.samples import patients


def test_in_python_a_sample_gets_a_proposal_that_checks_and_names_methods_that_exist():
    frame = shoal.sample("patients", n=200, seed=3)
    policy = Policy.from_dict(yaml.safe_load(shoal.propose(frame, k=5)))
    assert policy.required_k == 5
    (open_question,) = shoal.check(policy, frame)
    assert "'charge': has an open question" in open_question.message
    policy = Policy.from_dict(answered(yaml.safe_load(shoal.propose(frame, k=5))))
    assert shoal.check(policy, frame) == []
    assert [finding.message for finding in shoal.check(policy, frame.drop("age"))]
    assert {"tcloseness", "rounded-partition"} <= {method["name"] for method in shoal.methods()}
    with pytest.raises(shoal.InputError, match="no such generator"):
        shoal.sample("nobody")


def test_json_and_toml_say_the_same_as_yaml(tmp_path):
    content = content_of({"age": {"role": "quasi", "type": "number", "domain": [0, 9]}}, 3)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "p.json").write_text(json.dumps(content))
    (tmp_path / "p.toml").write_text(
        'version = 1\n[attributes.age]\nrole = "quasi"\ntype = "number"\ndomain = [0, 9]\n'
        '[[promises]]\nmodel = "k-anonymity"\nk = 3\n'
    )
    models = [Policy.load(tmp_path / f"p.{suffix}").model for suffix in ("yaml", "json", "toml")]
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize(("name", "text"), [("p.yaml", "a: [1"), ("p.json", "{"), ("p.toml", "=")])
def test_broken_syntax_is_one_clear_line(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(shoal.InputError, match=r"line 1|the file can't"):
        Policy.load(tmp_path / name)


def test_schema_accepts_the_samples_policy_and_refuses_nonsense():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    good = yaml.safe_load(PATIENTS)
    assert not list(validator.iter_errors(good))
    assert list(validator.iter_errors(good | {"promises": [{"model": "k-anonymity", "k": 1}]}))
    assert list(
        validator.iter_errors(good | {"method": {"name": "rounded-partition", "cut": "crooked"}})
    )
    assert list(validator.iter_errors(good | {"colour": "red"}))


def test_schema_on_the_command_line_is_json(shoal):
    result = shoal("policy", "check", "--schema")
    assert result.status == 0
    assert json.loads(result.out)["title"] == "Shoal policy"


def test_paths_are_relative_to_the_policy_file(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "town.csv").write_text("x;*\ny;*\n")
    content = content_of({"town": {"role": "quasi", "hierarchy": "town.csv"}}, 2)
    (tmp_path / "sub" / "p.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.chdir(tmp_path)
    published = shoal.publish(pl.DataFrame({"town": ["x", "y"]}), Policy.load("sub/p.yaml"))
    assert published.data["town"].to_list() == ["*", "*"]


def test_other_columns_are_plain_or_dropped():
    frame = pl.DataFrame({"age": ["1", "2"], "extra": ["a", "b"]})
    content = content_of({"age": {"role": "quasi", "type": "number"}}, 2)
    assert shoal.publish(frame, Policy.from_dict(content | {"other": "plain"})).data.columns == [
        "age",
        "extra",
    ]
    assert shoal.publish(frame, Policy.from_dict(content | {"other": "drop"})).data.columns == [
        "age"
    ]


def test_order_by_frequency_puts_the_most_frequent_first():
    frame = pl.DataFrame({"town": ["b"] * 5 + ["a"] * 3 + ["c"] * 3})
    content = content_of({"town": {"role": "quasi", "order": "frequency"}}, 11)
    assert set(shoal.publish(frame, Policy.from_dict(content)).data["town"]) == {"[b, c]"}


def test_keyed_pseudonyms_link_records_without_naming_anybody(monkeypatch):
    frame = pl.DataFrame({"name": ["ann", "bob", "ann"], "age": ["1", "2", "3"]})
    content = content_of(
        {
            "name": {"role": "identifier", "pseudonym": "keyed"},
            "age": {"role": "quasi", "type": "number"},
        },
        3,
        render={"order": "input"},
    )
    policy = Policy.from_dict(content)
    for none in ("", " " * 20, f"{' ' * 20}short"):
        monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", none)
        with pytest.raises(shoal.InputError, match="SHOAL_PSEUDONYM_KEY"):
            shoal.publish(frame, policy)
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of the owner")
    first = shoal.publish(frame, policy).data["name"].to_list()
    assert first[0] == first[2] != first[1]
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "another secret altogether")
    assert shoal.publish(frame, policy).data["name"].to_list() != first


def test_equal_identifiers_of_two_columns_have_pseudonyms_that_nobody_can_join(monkeypatch):
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of the owner")
    frame = pl.DataFrame({"name": ["7"] * 3, "room": ["7"] * 3, "age": ["1", "2", "3"]})
    keyed = {"role": "identifier", "pseudonym": "keyed"}
    age = {"role": "quasi", "type": "number"}
    policy = Policy.from_dict(content_of({"name": keyed, "room": keyed, "age": age}, 3))
    shown = shoal.publish(frame, policy).data
    assert shown["name"].n_unique() == shown["room"].n_unique() == 1
    assert shown["name"][0] != shown["room"][0]


def test_the_secret_of_pseudonyms_is_asked_for_before_a_table_is_read(tmp_path, monkeypatch, shoal):
    monkeypatch.delenv("SHOAL_PSEUDONYM_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    keyed, quasi = {"role": "identifier", "pseudonym": "keyed"}, {"role": "quasi"}
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"name": keyed, "town": quasi}, 2)))
    checked = shoal("policy", "check", "p.yaml")
    assert checked.status == 0
    assert "identifier 'name': publish needs a secret in SHOAL_PSEUDONYM_KEY" in checked.err
    refused = shoal(*"publish absent.csv -p p.yaml -o out.csv".split())
    assert refused.status == 2
    assert "identifier 'name': a keyed pseudonym needs a secret" in refused.err


def test_proposal_for_the_sample_is_sound_and_publishes():
    frame = patients.generate(400, 2)
    text = propose(Table(frame), 5)
    content = yaml.safe_load(text)
    roles = {name: a["role"] for name, a in content["attributes"].items()}
    assert roles["name"] == "identifier"
    assert roles["patient"] == "subject"
    assert roles["age"] == roles["zip"] == "quasi"
    assert roles["disease"] == "sensitive"
    with pytest.raises(shoal.InputError, match="'charge': has an open question"):
        shoal.publish(frame, content)
    assert shoal.publish(frame, answered(content)).certificate.holds


def answered(content: dict) -> dict:
    """The policy without its questions."""
    for attribute in content["attributes"].values():
        attribute.pop("ask", None)
    return content


def test_proposal_overwrites_no_policy(workplace, shoal):
    result = shoal("policy", "init", "patients.csv", "-o", "policy.yaml")
    assert result.status == 2
    assert "exists" in result.err
    assert shoal("policy", "init", "patients.csv", "-o", "new.yaml").status == 0
    assert shoal("policy", "check", "new.yaml", "patients.csv").status == 2
    answer("new.yaml")
    assert shoal("policy", "check", "new.yaml", "patients.csv").status == 0


def answer(path: str) -> None:
    """Deletes the questions of a policy file."""
    content = answered(yaml.safe_load(Path(path).read_text()))
    Path(path).write_text(yaml.safe_dump(content, sort_keys=False))


def test_doctor_lists_everything_and_shows_values_only_when_asked(workplace, shoal):
    (workplace / "sex.csv").write_text("male;a;*\nmale;b;*\n")
    (workplace / "ward.csv").write_text("north;*\n")
    policy = yaml.safe_load((workplace / "policy.yaml").read_text())
    policy["attributes"]["sex"]["hierarchy"] = "sex.csv"
    policy["attributes"]["ward"] = {"role": "quasi", "hierarchy": "ward.csv"}
    (workplace / "policy.yaml").write_text(yaml.safe_dump(policy))
    result = shoal("policy", "check", "policy.yaml", "patients.csv")
    assert result.status == 2
    assert "'sex'" in result.err
    assert "male" not in result.err + result.out
    (workplace / "sex.csv").write_text("male;*\n")
    hidden = shoal("policy", "check", "policy.yaml", "patients.csv")
    shown = shoal("policy", "check", "policy.yaml", "patients.csv", "--show-values")
    assert "'sex'" in hidden.err
    assert "'ward'" in hidden.err
    assert "female" not in hidden.err + hidden.out
    assert "female" in shown.out
    assert "south" in shown.out


def test_methods_as_text_and_as_json(shoal):
    text, as_json = shoal("methods").out, json.loads(shoal("methods", "--json").out)
    names = {m["name"] for m in as_json["methods"]}
    assert names >= {"rounded-partition", "mondrian", "lattice-peeling", "fads", "crp"}
    assert all(name in text for name in names)
    assert {p["model"] for p in as_json["promises"]} >= {
        "k-anonymity",
        "l-diversity",
        "t-closeness",
    }


def test_comparators_are_listed_when_all_methods_are_asked_for(shoal):
    chosen, every = (
        {m["name"] for m in json.loads(shoal("methods", *more, "--json").out)["methods"]}
        for more in ((), ("--all",))
    )
    assert every - chosen == set(COMPARATORS)
    assert "datafly  (publish)" in shoal("methods", "--all").out


def test_samples_are_the_same_for_the_same_seed(tmp_path, shoal):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        shoal("sample", "patients", "-n", "50", "--seed", seed, "-o", tmp_path / f"{name}.csv")
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_unknown_sample_lists_the_known(tmp_path, shoal):
    result = shoal("sample", "nonesuch", "-o", tmp_path / "x.csv")
    assert result.status == 2
    assert "patients" in result.err


def test_doctor_names_promises_that_can_not_hold(workplace, shoal):
    text = (workplace / "policy.yaml").read_text().replace("l: 3", "l: 30")
    (workplace / "policy.yaml").write_text(text)
    result = shoal("policy", "check", "policy.yaml", "patients.csv")
    assert result.status == 2
    assert "l = 30" in result.err


def test_a_check_marks_what_publish_calls_grave_and_counts_it_last(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    emails = [f"p{number}@mail.example" for number in range(40)]
    pl.DataFrame({"age": range(20, 60), "email": emails}).write_csv("d.csv")
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"age": age, "email": "plain"}, 2)))
    said = shoal("policy", "check", "p.yaml", "d.csv").err.splitlines()
    assert said[0].startswith("shoal: grave: 'email' is not protected")
    assert said[-1] == "the policy is sound and fits the data; 1 grave finding"


def test_doctor_shows_labels_outside_an_order(workplace, shoal):
    text = (workplace / "policy.yaml").read_text().replace("doctorate]", "phd]")
    (workplace / "policy.yaml").write_text(text)
    assert (
        "doctorate" in shoal("policy", "check", "policy.yaml", "patients.csv", "--show-values").out
    )


def test_bare_command_shows_help_and_nothing_else(shoal):
    result = shoal()
    assert "Usage" in result.out + result.err
    assert "shoal: ;" not in result.err


def test_proposal_takes_the_number_that_repeats_for_the_person():
    frame = pl.DataFrame(
        {
            "encounter_id": ["1", "2", "3", "4"],
            "patient_nbr": ["7", "7", "8", "9"],
            "age": ["1", "2", "3", "4"],
        }
    )
    roles = {
        n: a["role"] for n, a in yaml.safe_load(propose(Table(frame), 2))["attributes"].items()
    }
    assert roles == {"encounter_id": "identifier", "patient_nbr": "subject", "age": "quasi"}


def test_proposal_sees_dates_missing_values_and_missing_headers():
    frame = pl.DataFrame({"born": ["2001-02-03", "?", "1999-01-01"], "town": ["a", "b", "NA"]})
    content = yaml.safe_load(propose(Table(frame), 2))
    assert content["attributes"]["born"]["hierarchy"] == {
        "dates": ["day", "month", "quarter", "year", "decade"]
    }
    within_one = yaml.safe_load(
        propose(frame.with_columns(born=pl.Series(["2001-02-03", "2003-01-01", "2009-12-31"])), 2)
    )
    assert within_one["attributes"]["born"]["hierarchy"] == {
        "dates": ["day", "month", "quarter", "year"]
    }
    assert content["missing_values"] == ["", "?", "NA"]
    with pytest.raises(shoal.InputError, match="look like data"):
        propose(Table(pl.DataFrame({"39": ["50"], "Private": ["Private"]})), 2)


YEARS = {"pupil": [f"S{i}" for i in range(60)], "school": ["A", "B"] * 30}
YEARS |= {str(year): ["1", "2", "3"] * 20 for year in (2019, 2020, 2021)}


def test_names_that_are_numbers_are_said_and_not_refused():
    """Three of five names may be years; they may be the first record as well."""
    frame = pl.DataFrame(YEARS)
    text = propose(frame, 2)
    assert text.count("its name looks like a value") == 3
    assert yaml.safe_load(text)["attributes"]["2019"]["role"] == "quasi"
    asked = content_of({"school": "quasi", "pupil": "identifier"}, 2, other="plain")
    with pytest.warns(UserWarning, match="columns: 3 that the policy does not name") as caught:
        shoal.publish(frame, asked)
    assert not any("2019" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="columns: ")
        shoal.publish(frame, asked | {"other": "drop"})


def test_a_first_record_is_said_and_not_shown_where_the_policy_names_most_of_its_cells():
    cells = {"39": ["39", "50"] * 10, "m": ["m", "f"] * 10, "1945-08-17": ["1961-01-05"] * 20}
    frame = pl.DataFrame({**cells, "Ann Kay": [f"Ann {i}" for i in range(20)]})
    asked = content_of(dict.fromkeys(cells, "quasi"), 2, other="plain")
    with pytest.warns(UserWarning, match="columns: 1 that the policy does not name") as caught:
        shoal.publish(frame, asked)
    assert not any("Ann" in str(one.message) for one in caught)


def test_a_first_column_without_a_name_is_that_of_names_of_rows(tmp_path):
    """As R and pandas write them; commas behind all names are columns without a value."""
    path = tmp_path / "t.csv"
    path.write_text(",town,sex,,\n" + "".join(f"{i},A,{'MF'[i % 2]},,\n" for i in range(20)))
    source = files.read(str(path))
    assert source.frame.columns == ["column_1", "town", "sex", "column_4", "column_5"]
    content = yaml.safe_load(propose(source.frame, 2))["attributes"]
    assert [one["role"] for one in content.values()] == [
        "identifier", "quasi", "quasi", "drop", "drop",
    ]  # fmt: skip
    path.write_text("id,,sex\n1,A,F\n")
    with pytest.raises(shoal.InputError, match="column 2 has no name"):
        files.read(str(path))


@pytest.mark.parametrize(
    ("education", "promise", "method"),
    [
        ({"order": "frequency"}, None, "rounded-partition"),
        (
            {"hierarchy": {"tree": {"*": {"low": ["none"], "high": ["master", "doctor"]}}}},
            None,
            "lattice-peeling",
        ),
        ({}, None, "rounded-partition"),
        ({}, {"model": "t-closeness", "attributes": "pay", "t": 0.5}, "tcloseness"),
    ],
)
def test_a_policy_without_a_method_gets_the_one_that_loses_least_on_such_a_table(
    education, promise, method
):
    frame = pl.DataFrame(
        {
            "age": list(range(30, 42)),
            "education": ["none", "master", "doctor"] * 4,
            "pay": list(range(12)),
        }
    )
    content = content_of(
        {
            "age": {"role": "quasi", "type": "number"},
            "education": {"role": "quasi", **education},
            "pay": {"role": "sensitive", "type": "number"},
        },
        3,
        *([promise] if promise else []),
    )
    assert shoal.publish(frame, content).certificate["method"]["name"] == method
    named = content | {"method": {"name": "mondrian"}}
    assert shoal.publish(frame, named).certificate["method"]["name"] == "mondrian"


def test_a_k_in_quotes_is_that_number():
    frame = pl.DataFrame({"age": [20, 21, 30, 31]})
    release = shoal.publish(frame, content_of({"age": {"role": "quasi", "type": "number"}}, "2"))
    assert release.certificate["promises"][0]["asked"] == 2


def test_numbers_that_no_distance_can_be_told_of_are_refused(recwarn):
    policy = content_of({"age": {"role": "quasi", "type": "number"}}, 2)
    with pytest.raises(
        shoal.InputError, match="attribute 'age': 2 records with numbers beyond 1e\\+100"
    ):
        shoal.publish(pl.DataFrame({"age": ["-1.7e308", "1.7e308", "3", "4"]}), policy)
    assert shoal.publish(
        pl.DataFrame({"age": ["-1e100", "1e100", "3", "4"]}), policy
    ).certificate.holds
    assert [one for one in recwarn.list if one.category is not ReleaseWarning] == []
    wide = {"age": {"role": "quasi", "domain": [-1.7e308, 1.7e308]}}
    with pytest.raises(shoal.InputError, match="domain must lie within"):
        Policy.from_dict(policy | {"attributes": wide})


SERVING = {
    "stream": ("fads", "castle"),
    "republish": ("crp", "m-invariance"),
    "publish": ("mdav", None),
}


def test_doctor_checks_a_policy_whose_records_leave_as_the_method_that_its_ledger_takes(workplace):
    columns = {"who": "subject", "what": "operation", "zip": {"hierarchy": {"prefix": 5}}}
    columns["zip"]["role"] = "quasi"
    columns |= {"ill": "sensitive", "ward": "plain"}
    found = [finding.message for finding in shoal.check(content_of(columns, 2))]
    assert len(found) == 2
    assert "'zip': its hierarchy is made from the data" in found[0]
    assert "a plain column would show which rows are invented" in found[1]


@pytest.mark.parametrize("method", [name for names in SERVING.values() for name in names])
def test_doctor_checks_a_policy_for_the_verb_of_its_method(tmp_path, shoal, method):
    tree = {"tree": {"any": ["f", "m"]}}
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    sex = {"role": "quasi", "hierarchy": tree}
    policy = content_of({"who": "subject", "age": age, "sex": sex, "ill": "sensitive"}, 2)
    if method is not None:
        policy["method"] = {"name": method}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    frame = pl.DataFrame(
        {"who": list("abcd"), "age": [20, 21, 30, 31], "sex": list("fmfm"), "ill": list("xyxy")}
    )
    frame.write_csv(tmp_path / "d.csv")
    found = shoal("policy", "check", str(tmp_path / "p.yaml"), str(tmp_path / "d.csv"))
    assert (found.status, found.err.splitlines()[-1]) == (
        0,
        "the policy is sound and fits the data",
    )
    policy["method"] = {"name": method or "mdav", "delta_": 1}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    found = shoal("policy", "check", str(tmp_path / "p.yaml"), str(tmp_path / "d.csv"))
    assert found.status == 2
    assert "unknown parameter 'delta_'" in found.err


def test_doctor_names_what_a_stream_can_not_promise(tmp_path, shoal):
    attributes = {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "ill": {"role": "sensitive"},
    }
    promises = [
        {"model": "k-anonymity", "k": 2},
        {"model": "beta-likeness", "attributes": ["ill"], "beta": 9},
    ]
    policy = {
        "version": 1,
        "attributes": attributes,
        "promises": promises,
        "method": {"name": "fads"},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    pl.DataFrame({"age": [20, 21, 30, 31], "ill": list("xyxy")}).write_csv(tmp_path / "d.csv")
    found = shoal("policy", "check", str(tmp_path / "p.yaml"), str(tmp_path / "d.csv"))
    assert found.status == 2
    assert "promise 'beta-likeness': compares every class with the whole table" in found.err


def test_without_a_method_equal_records_are_peeled_and_different_ones_cut():
    """Half of 40 records distinct is many; from k = 25 on, or with more than k, 28 of 40 is too."""

    def chosen(distinct, k, *promises):
        numbers = [i % distinct for i in range(40)]
        frame = pl.DataFrame({"age": numbers, "ill": ["flu", "hiv"] * 20})
        policy = content_of(
            {"age": {"role": "quasi", "type": "number"}, "ill": "sensitive"}, k, *promises
        )
        return shoal.publish(frame, policy).certificate["method"]["name"]

    diverse = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"}
    assert [chosen(19, 2), chosen(20, 2)] == ["lattice-peeling", "rounded-partition"]
    assert [chosen(27, 2), chosen(28, 2)] == ["rounded-partition", "rounded-partition"]
    assert [chosen(27, 25), chosen(29, 25)] == ["lattice-peeling", "rounded-partition"]
    assert [chosen(27, 2, diverse), chosen(29, 2, diverse)] == [
        "lattice-peeling",
        "rounded-partition",
    ]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_distinct_records_are_counted_right(rows):
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    policy = content_of({name: {"role": "quasi", "type": "number"} for name in "abc"}, 2)
    bound, _ = bind(Table(frame.cast(pl.String)), Policy.from_dict(policy))
    assert bound.encoded.distinct_share == len(set(rows)) / len(rows)


def test_check_lists_what_every_stage_finds_at_once(workplace, shoal):
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    attributes = policy["attributes"]
    attributes["aeg"] = attributes.pop("age")
    attributes["sex"]["rol"] = "quasi"
    policy["promises"].append({"model": "l-diversity", "attribute": "diseas", "l": 3})
    policy["metod"] = {"name": "mondrian"}
    Path("bad.yaml").write_text(yaml.safe_dump(policy))
    lines = shoal("policy", "check", "bad.yaml", "patients.csv").err.splitlines()
    for part in (
        "attributes.sex.rol: is not a known key; did you mean 'role'?",
        "metod: is not a known key; did you mean 'method'?",
        "attribute 'diseas' is not in the policy; did you mean 'disease'?",
        "column 'age': in the data, not in the policy",
        "did you mean 'age' for 'aeg'?",
    ):
        assert sum(part in line for line in lines) == 1, part
    assert len(lines) == 5


def test_check_looks_past_a_faulty_attribute(workplace, shoal):
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    policy["attributes"]["age"]["domain"] = [40, 60]
    policy["attributes"]["charge"] = {"role": "quasi", "hierarchy": {"dates": ["day", "month"]}}
    policy["promises"] = [{"model": "k-anonymity", "k": 1000}]
    policy["method"] = {"name": "mondrain"}
    Path("bad.yaml").write_text(yaml.safe_dump(policy))
    lines = shoal("policy", "check", "bad.yaml", "patients.csv").err.splitlines()
    for part in (
        "did you mean 'mondrian'?",
        "attribute 'charge': ",
        "attribute 'age': ",
        "k = 1000 asked",
    ):
        assert sum(part in line for line in lines) == 1, part
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"role": "sensitve"}, "or 'household'; did you mean 'sensitive'?"),
        ({"role": "quasi", "type": "numbr"}, "did you mean 'number'?"),
    ],
)
def test_a_misspelt_word_gets_the_nearest_as_a_hint(change, hint):
    content = content_of({"age": "quasi", "ill": change}, 2)
    with pytest.raises(InputError) as refused:
        Policy.from_dict(content)
    assert hint in str(refused.value)


def test_a_refused_policy_is_never_left_with_less_than_its_names():
    content = {
        "attributes": {"age": {"role": "quasi", "domain": "wide"}, "ill": {}, "sex": 3},
        "promises": [],
        "read": {"decimal": ";"},
    }
    model, is_whole = sound_part(content)
    assert model is not None
    assert not is_whole
    assert list(model.attributes) == ["age", "ill", "sex"]
    assert sound_part({"attributes": 3}) == (None, False)


def test_messages_stay_on_one_line_whatever_a_name_holds():
    said = InputError.from_findings(["a\nb", "a\nb", "c\x1b[31m"])
    assert said.args == ("a\\nb",)
    assert said.findings == ("c\\x1b[31m",)


def test_publishing_sensitive_values_under_k_alone_is_remarked(workplace, shoal):
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    policy["promises"] = [{"model": "k-anonymity", "k": 5}]
    Path("alone.yaml").write_text(yaml.safe_dump(policy))
    command = ("publish", "patients.csv", "-o", "o.csv", "-q", "-p")
    assert "no promise covers 'disease'" in shoal(*command, "alone.yaml").err
    assert "no promise covers 'disease'" not in shoal(*command, "policy.yaml").err


@pytest.mark.parametrize("said", [{"attributes": {"name": {"role": "plain"}}}, {"other": "plain"}])
def test_publishing_a_column_named_as_a_name_is_remarked(said):
    quasi = {"age": {"role": "quasi", "type": "number"}}
    asked = content_of(quasi | said.get("attributes", {}), 2)
    policy = Policy.from_dict(asked | ({"other": "plain"} if "other" in said else {}))
    people = pl.DataFrame({"age": range(30), "name": [f"N{i % 12}" for i in range(30)]})
    (finding,) = of_cells(Table(people), policy)
    assert (finding.code, finding.column, finding.severity) == (
        "plain-names-people",
        "name",
        "grave",
    )
    assert of_cells(Table(people.select("age")), policy) == []


def test_check_and_publish_remark_a_name_that_is_kept(workplace, shoal):
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    policy["attributes"]["name"] = {"role": "plain"}
    Path("kept.yaml").write_text(yaml.safe_dump(policy))
    for command in (
        ("policy", "check", "kept.yaml", "patients.csv"),
        ("publish", "patients.csv", "-o", "o.csv", "-q", "-p", "kept.yaml"),
    ):
        assert "'name' is not protected: it is published as it is" in shoal(*command).err


def test_a_text_that_is_no_policy_is_said_to_be_none():
    with pytest.raises(InputError, match=r"^policy: must be a mapping of keys to values$"):
        Policy.from_dict("policy.yaml")


@pytest.mark.parametrize("attributes", [True, [[]], {"age": 1}, 3])
def test_attributes_of_a_promise_that_are_no_list_of_names_are_a_finding(attributes):
    promise = {"model": "k-anonymity", "k": 2, "attributes": attributes}
    content = {"version": 1, "attributes": {"age": {"role": "quasi"}}, "promises": [promise]}
    with pytest.raises(shoal.InputError, match="'attributes' must be a list"):
        Policy.from_dict(content)


@pytest.mark.parametrize("begins", ["0b", "0x", "", "0o", "1.", "-", "x", "1:"])
@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_a_number_or_word_too_long_to_be_parsed_is_refused_unread(tmp_path, begins, suffix):
    path = tmp_path / f"policy{suffix}"
    path.write_text(f"version: {begins}{'1' * 1_000_001}\n")
    with pytest.raises(shoal.InputError, match="a number or word has more than 1,000,000 signs"):
        shoal.Policy.load(path)


def test_long_lists_without_blanks_are_no_long_words():
    text = "a: [" + ",".join(f"v{number}" for number in range(40_000)) + "]"
    assert len(yaml.load(text, Loader=SafeLoader)["a"]) == 40_000


ROLES = {"age": {"role": "quasi"}, "id": {"role": "subject"}}


def calls(content):
    """How many functions are called until a policy is found unsound, or sound."""
    profile = cProfile.Profile()
    with contextlib.suppress(shoal.InputError):
        profile.runcall(shoal.Policy.from_dict, content)
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize(
    "of_many",
    [
        lambda names: dict.fromkeys(names, 0),
        lambda names: {"attributes": {name: {"role": "unknown"} for name in names}},
        lambda names: {"tables": {name: {"parent": {"people": "id"}} for name in names}},
        lambda names: {
            "tables": {
                name: {"key": "a", "parent": {above: "a"}}
                for name, above in zip(names, [*names[1:], names[0]], strict=True)
            }
        },
        lambda names: {
            "attributes": ROLES | {name: {"role": "quasi"} for name in names},
            "promises": [{"model": "l-diversity", "attribute": f"{n} x", "l": 2} for n in names],
        },
    ],
    ids=["unknown keys", "unknown roles", "tables", "tables in a ring", "promises"],
)
def test_twice_as_many_keys_are_twice_the_work(of_many):
    base = content_of(ROLES)
    few, many = ([f"k{n}" for n in range(count)] for count in (1_500, 3_000))
    calls(base)  # what is imported once
    assert calls(base | of_many(many)) < 2.5 * calls(base | of_many(few))
