"""Policies: read, proposed, checked, described."""

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
from shoal.policy import loading, problem
from shoal.policy.binding.table import bound_table
from shoal.policy.plug_ins import COMPARATORS
from shoal.policy.policy import Policy

NUMBER = {"role": "quasi", "type": "number"}
AGE = NUMBER | {"domain": [0, 100]}


def published(frame, attributes, k=2, *promises, **more):
    return shoal.publish(pl.DataFrame(frame), content_of(attributes, k, *promises, **more))


def proposed(frame, k=2) -> dict:
    """The proposed attributes."""
    return yaml.safe_load(propose(Table(pl.DataFrame(frame)), k))["attributes"]


@pytest.fixture
def check(workplace, shoal):
    """`policy check` of the sample after a change of its policy."""

    def checked(change, *more):
        content = yaml.safe_load(PATIENTS)
        change(content)
        Path("changed.yaml").write_text(yaml.safe_dump(content))
        return shoal("policy", "check", "changed.yaml", "patients.csv", *more)

    return checked


def test_a_sample_gets_a_proposal_that_checks_and_publishes_once_its_question_is_answered():
    frame = shoal.sample("patients", n=200, seed=3)
    content = yaml.safe_load(shoal.propose(frame, k=5))
    roles = {name: attribute["role"] for name, attribute in content["attributes"].items()}
    asked = {"name": "identifier", "patient": "subject", "age": "quasi", "disease": "sensitive"}
    assert asked.items() <= roles.items()
    (open_question,) = shoal.check(Policy.from_dict(content), frame)
    assert "'charge': has an open question" in open_question.message
    with pytest.raises(InputError, match="'charge': has an open question"):
        shoal.publish(frame, content)
    for attribute in content["attributes"].values():
        attribute.pop("ask", None)
    policy = Policy.from_dict(content)
    assert (policy.required_k, shoal.check(policy, frame)) == (5, [])
    assert shoal.check(policy, frame.drop("age"))
    assert shoal.publish(frame, policy).certificate.holds
    assert {"tcloseness", "rounded-partition"} <= {method["name"] for method in shoal.methods()}


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


BROKEN = {
    "list": ("p.yaml", "a: [1", r"line 1|the file can't"),
    "object": ("p.json", "{", r"line 1|the file can't"),
    "no name": ("p.toml", "=", r"line 1|the file can't"),
    "number": ("p.yaml", "version: 1\nk: 0x" + "f" * 4_000, "fix the syntax"),
    "depth": ("p.yaml", "version: 1\nx: " + "[" * 150 + "]" * 150, "fix the syntax"),
    "key": ("p.toml", "a" + ".a" * 50_000 + " = 1", "more than 100 parts"),
}


@pytest.mark.parametrize(("name", "text", "said"), BROKEN.values(), ids=BROKEN)
def test_syntax_that_is_broken_or_beyond_reason_is_one_clear_line(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        Policy.load(tmp_path / name)


def test_the_printed_schema_accepts_the_samples_policy_and_refuses_nonsense(shoal):
    schema = json.loads(shoal("policy", "check", "--schema").out)
    assert schema["title"] == "Shoal policy"
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    good = yaml.safe_load(PATIENTS)
    assert validator.is_valid(good)
    for wrong in (
        {"promises": [{"model": "k-anonymity", "k": 1}]},
        {"method": {"name": "rounded-partition", "cut": "crooked"}},
        {"colour": "red"},
    ):
        assert not validator.is_valid(good | wrong)


def test_order_by_frequency_puts_the_most_frequent_first():
    frame = {"town": ["b"] * 5 + ["a"] * 3 + ["c"] * 3}
    release = published(frame, {"town": {"role": "quasi", "order": "frequency"}}, 11)
    assert set(release.data["town"]) == {"[b, c]"}


def test_keyed_pseudonyms_link_the_records_of_one_column_under_one_secret(monkeypatch):
    keyed = {"role": "identifier", "pseudonym": "keyed"}
    frame = {"name": ["ann", "bob", "ann"], "room": ["ann"] * 3, "age": ["1", "2", "3"]}

    def shown(secret):
        monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", secret)
        attributes = {"name": keyed, "room": keyed, "age": NUMBER}
        return published(frame, attributes, 3, render={"order": "input"}).data

    for none in ("", " " * 20, f"{' ' * 20}short"):
        with pytest.raises(InputError, match="SHOAL_PSEUDONYM_KEY"):
            shown(none)
    first = shown("a secret of the owner")
    assert first["name"][0] == first["name"][2] != first["name"][1]
    assert first["room"].n_unique() == 1
    assert first["room"][0] != first["name"][0]
    assert not first["name"].equals(shown("another secret altogether")["name"])


def test_the_secret_of_pseudonyms_is_asked_for_before_a_table_is_read(folder, monkeypatch, shoal):
    monkeypatch.delenv("SHOAL_PSEUDONYM_KEY", raising=False)
    keyed = {"role": "identifier", "pseudonym": "keyed"}
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"name": keyed, "town": "quasi"}, 2)))
    checked = shoal("policy", "check", "p.yaml", status=0)
    assert "identifier 'name': publish needs a secret in SHOAL_PSEUDONYM_KEY" in checked.err
    refused = shoal(*"publish absent.csv -p p.yaml -o out.csv".split(), status=2)
    assert "identifier 'name': a keyed pseudonym needs a secret" in refused.err


def test_check_lists_everything_and_shows_values_only_when_asked(check):
    Path("sex.csv").write_text("male;*\n")
    Path("ward.csv").write_text("north;*\n")

    def misfit(content):
        content["attributes"]["sex"]["hierarchy"] = "sex.csv"
        content["attributes"]["ward"] = {"role": "quasi", "hierarchy": "ward.csv"}
        content["attributes"]["education"]["order"][-1] = "phd"

    hidden, shown = check(misfit), check(misfit, "--show-values")
    assert hidden.status == shown.status == 2
    for column, value in (("sex", "female"), ("ward", "south"), ("education", "doctorate")):
        assert f"'{column}'" in hidden.err
        assert value not in hidden.err + hidden.out
        assert value in shown.out
    Path("sex.csv").write_text("male;a;*\nmale;b;*\n")
    faulty = check(misfit)
    assert "'sex'" in faulty.err
    assert "male" not in faulty.err + faulty.out


def test_methods_are_listed_with_promises_and_comparators_when_all_are_asked_for(shoal):
    (text, listed), (every_text, every) = (
        (shoal("methods", *more).out, json.loads(shoal("methods", *more, "--json").out))
        for more in ((), ("--all",))
    )
    names, all_names = ({method["name"] for method in one["methods"]} for one in (listed, every))
    assert names >= {"rounded-partition", "mondrian", "lattice-peeling", "fads", "crp"}
    assert all(name in text for name in names)
    models = {promise["model"] for promise in listed["promises"]}
    assert models >= {"k-anonymity", "l-diversity", "t-closeness"}
    assert all_names - names == {*COMPARATORS}
    assert "datafly  (publish)" in every_text


def test_samples_are_the_same_for_the_same_seed_and_unknown_ones_lead_to_the_known(tmp_path, shoal):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        shoal("sample", "patients", "-n", "50", "--seed", seed, "-o", tmp_path / f"{name}.csv")
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c
    assert "patients" in shoal("sample", "nonesuch", "-o", tmp_path / "x.csv", status=2).err


def test_a_check_marks_what_publish_calls_grave_and_counts_it_last(folder, shoal):
    emails = [f"p{number}@mail.example" for number in range(40)]
    pl.DataFrame({"age": range(20, 60), "email": emails}).write_csv("d.csv")
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"age": age, "email": "plain"}, 2)))
    said = shoal("policy", "check", "p.yaml", "d.csv").err.splitlines()
    assert said[0].startswith("shoal: grave: 'email' is not protected")
    assert said[-1] == "the policy is valid and fits the data; 1 grave finding"


def test_bare_command_shows_help_and_nothing_else(shoal):
    result = shoal()
    assert "Usage" in result.out + result.err
    assert "shoal: ;" not in result.err


def test_names_that_are_numbers_are_said_and_not_refused():
    """Three of five names may be years; they may be the first record as well."""
    frame = {"pupil": [f"S{i}" for i in range(60)], "school": ["A", "B"] * 30}
    frame |= {str(year): ["1", "2", "3"] * 20 for year in (2019, 2020, 2021)}
    text = propose(pl.DataFrame(frame), 2)
    assert text.count("its name looks like a value") == 3
    assert yaml.safe_load(text)["attributes"]["2019"]["role"] == "quasi"
    asked = {"school": "quasi", "pupil": "identifier"}
    with pytest.warns(UserWarning, match="columns: 3 that the policy does not name") as caught:
        published(frame, asked, other="plain")
    assert not any("2019" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="columns: ")
        published(frame, asked, other="drop")


def test_a_first_record_is_said_and_not_shown_where_the_policy_names_most_of_its_cells():
    cells = {"39": ["39", "50"] * 10, "m": ["m", "f"] * 10, "1945-08-17": ["1961-01-05"] * 20}
    frame = {**cells, "Ann Kay": [f"Ann {i}" for i in range(20)]}
    with pytest.warns(UserWarning, match="columns: 1 that the policy does not name") as caught:
        published(frame, dict.fromkeys(cells, "quasi"), other="plain")
    assert not any("Ann" in str(one.message) for one in caught)


def test_a_first_column_without_a_name_is_that_of_names_of_rows(tmp_path):
    """As R and pandas write them; commas behind all names are columns without a value."""
    path = tmp_path / "t.csv"
    path.write_text(",town,sex,,\n" + "".join(f"{i},A,{'MF'[i % 2]},,\n" for i in range(20)))
    found = proposed(files.read(str(path)).frame)
    assert list(found) == ["column_1", "town", "sex", "column_4", "column_5"]
    roles = [one["role"] for one in found.values()]
    assert roles == ["identifier", "quasi", "quasi", "drop", "drop"]


TREE = {"tree": {"*": {"low": ["none"], "high": ["master", "doctor"]}}}
CLOSE = {"model": "t-closeness", "attributes": "pay", "t": 0.5}


@pytest.mark.parametrize(
    ("education", "promises", "method"),
    [
        ({"order": "frequency"}, [], "rounded-partition"),
        ({"hierarchy": TREE}, [], "lattice-peeling"),
        ({}, [], "rounded-partition"),
        ({}, [CLOSE], "tcloseness"),
    ],
)
def test_a_policy_without_a_method_gets_the_one_that_loses_least_on_such_a_table(
    education, promises, method
):
    frame = {"age": range(30, 42), "education": ["none", "master", "doctor"] * 4, "pay": range(12)}
    pay = {"role": "sensitive", "type": "number"}
    attributes = {"age": NUMBER, "education": {"role": "quasi", **education}, "pay": pay}
    for more, name in (({}, method), ({"method": {"name": "mondrian"}}, "mondrian")):
        release = published(frame, attributes, 3, *promises, **more)
        assert release.certificate["method"]["name"] == name


ZIP = {"role": "quasi", "hierarchy": {"prefix": 5}}


@pytest.mark.parametrize(
    ("zips", "settings", "name"),
    [
        ("quasi", {"refine": "none"}, "rounded-partition"),
        (ZIP, {"refine": "none"}, "lattice-peeling"),
        (ZIP, {"cut": "paper"}, "rounded-partition"),  # the other default has no cut
        ("quasi", {"refine": "thorough", "steps": 2}, "lattice-peeling"),
    ],
)
def test_a_setting_changes_no_default_that_takes_it_too_and_no_method_that_is_named(
    zips, settings, name
):
    people = pl.DataFrame({"zip": [f"{n:05}" for n in range(10000, 10060)], "age": range(60)})
    policy = Policy.from_dict(content_of({"zip": zips, "age": NUMBER}, 3, seed=1))
    policy = policy.with_method(None, settings)
    method = shoal.publish(people, policy.with_k(4)).certificate["method"]
    assert method["name"] == name
    assert {key: method["parameters"][key] for key in settings} == settings
    named = shoal.publish(people, policy.with_method("mdav")).certificate["method"]
    assert named["name"] == "mdav"


def test_a_k_in_quotes_is_that_number():
    release = published({"age": [20, 21, 30, 31]}, {"age": NUMBER}, "2")
    assert release.certificate["promises"][0]["asked"] == 2


def test_numbers_that_no_distance_can_be_told_of_are_refused(recwarn):
    with pytest.raises(InputError, match="attribute 'age': 2 records with numbers beyond 1e\\+100"):
        published({"age": ["-1.7e308", "1.7e308", "3", "4"]}, {"age": NUMBER})
    assert published({"age": ["-1e100", "1e100", "3", "4"]}, {"age": NUMBER}).certificate.holds
    assert [one for one in recwarn.list if one.category is not ReleaseWarning] == []


def test_a_policy_whose_records_leave_is_checked_as_the_method_that_its_ledger_takes():
    columns = {"who": "subject", "what": "operation", "ill": "sensitive", "ward": "plain"}
    columns["zip"] = {"role": "quasi", "hierarchy": {"prefix": 5}}
    first, second = (finding.message for finding in shoal.check(content_of(columns, 2)))
    assert "'zip': its hierarchy is made from the data" in first
    assert "a plain column would show which rows are invented" in second


ROWS = {"who": list("abcd"), "age": [20, 21, 30, 31], "sex": list("fmfm"), "ill": list("xyxy")}


@pytest.mark.parametrize("method", ["fads", "castle", "crp", "m-invariance", "mdav", None])
def test_a_policy_is_checked_for_the_verb_of_its_method(method):
    sex = {"role": "quasi", "hierarchy": {"tree": {"any": ["f", "m"]}}}
    content = content_of({"who": "subject", "age": AGE, "sex": sex, "ill": "sensitive"}, 2)
    content |= {"method": {"name": method}} if method else {}
    assert shoal.check(content, pl.DataFrame(ROWS)) == []
    content["method"] = {"name": method or "mdav", "delta_": 1}
    (found,) = shoal.check(content, pl.DataFrame(ROWS))
    assert "unknown parameter 'delta_'" in found.message


def test_check_names_what_a_stream_can_not_promise():
    like = {"model": "beta-likeness", "attributes": ["ill"], "beta": 9}
    content = content_of({"age": AGE, "ill": "sensitive"}, 2, like, method={"name": "fads"})
    (found,) = shoal.check(content, pl.DataFrame(ROWS).select("age", "ill"))
    assert "promise 'beta-likeness': compares every class with the whole table" in found.message


def test_without_a_method_equal_records_are_peeled_and_different_ones_cut(monkeypatch):
    """Half of 40 records distinct is many; from k = 25 on, or with more than k, 28 of 40 is too.
    Of many records, 18 in 40 is.
    """

    def chosen(distinct, k, *promises):
        frame = {"age": [i % distinct for i in range(40)], "ill": ["flu", "hiv"] * 20}
        release = published(frame, {"age": NUMBER, "ill": "sensitive"}, k, *promises)
        return release.certificate["method"]["name"]

    diverse = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"}
    for few, many, more in ((19, 20, [2]), (27, 29, [25]), (27, 29, [2, diverse])):
        assert chosen(few, *more) == "lattice-peeling"
        assert chosen(many, *more) == "rounded-partition"
    assert chosen(27, 2) == chosen(28, 2) == "rounded-partition"
    monkeypatch.setattr(problem, "MANY_RECORDS", 39)
    assert [chosen(17, 2), chosen(18, 2)] == ["lattice-peeling", "rounded-partition"]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_distinct_records_are_counted_right(rows):
    frame = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    policy = content_of(dict.fromkeys("abc", NUMBER), 2)
    bound = bound_table(Table(frame.cast(pl.String)), Policy.from_dict(policy))
    assert bound.encoded.distinct_share == len(set(rows)) / len(rows)


def misspelt(content):
    content["attributes"]["aeg"] = content["attributes"].pop("age")
    content["attributes"]["sex"]["rol"] = "quasi"
    content["promises"].append({"model": "l-diversity", "attribute": "diseas", "l": 3})
    content["metod"] = {"name": "mondrian"}


def faulty(content):
    content["attributes"]["age"]["domain"] = [40, 60]
    content["attributes"]["charge"] = {"role": "quasi", "hierarchy": {"dates": ["day", "month"]}}
    content["promises"] = [{"model": "k-anonymity", "k": 1000}]
    content["method"] = {"name": "mondrain"}


SPELLED = [
    "attributes.sex.rol: is not a known key; did you mean 'role'?",
    "metod: is not a known key; did you mean 'method'?",
    "attribute 'diseas' is not in the policy; did you mean 'disease'?",
    "column 'age': in the data, not in the policy",
    "did you mean 'age' for 'aeg'?",
]
FAULTS = ["did you mean 'mondrian'?", "attribute 'charge': ", "attribute 'age': ", "k = 1000 asked"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (misspelt, SPELLED),
        (faulty, FAULTS),
        (lambda content: content["promises"][-1].update(l=30), ["l = 30"]),
    ],
    ids=["names", "behind a faulty attribute", "a promise that can't hold"],
)
def test_check_lists_what_every_stage_finds_at_once(check, change, parts):
    found = check(change)
    lines = found.err.splitlines()
    assert (found.status, len(lines)) == (2, len(parts))
    assert [sum(part in line for line in lines) for part in parts] == [1] * len(parts)


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


def test_check_and_publish_remark_a_name_that_is_kept_and_sensitive_values_under_k_alone(
    check, shoal
):
    def kept(content):
        content["attributes"]["name"] = {"role": "plain"}
        content["promises"] = [{"model": "k-anonymity", "k": 5}]

    name = "'name' is not protected: it is published as it is"
    assert name in check(kept).err
    command = ("publish", "patients.csv", "-o", "o.csv", "-q", "-p")
    said = shoal(*command, "changed.yaml").err
    assert name in said
    assert "no promise covers 'disease'" in said
    assert "no promise covers 'disease'" not in shoal(*command, "policy.yaml").err


@pytest.mark.parametrize(("more", "other"), [({"name": "plain"}, None), ({}, "plain")])
def test_publishing_a_column_named_as_a_name_is_remarked(more, other):
    policy = Policy.from_dict(content_of({"age": NUMBER, **more}, 2, other=other))
    people = pl.DataFrame({"age": range(30), "name": [f"N{i % 12}" for i in range(30)]})
    (finding,) = of_cells(Table(people), policy)
    found = (finding.code, finding.column, finding.severity)
    assert found == ("plain-names-people", "name", "grave")
    assert of_cells(Table(people.select("age")), policy) == []


def test_a_text_that_is_no_policy_is_said_to_be_none():
    with pytest.raises(InputError, match=r"^policy: must be a mapping of keys to values$"):
        Policy.from_dict("policy.yaml")


@pytest.mark.parametrize("attributes", [True, [[]], {"age": 1}, 3])
def test_attributes_of_a_promise_that_are_no_list_of_names_are_a_finding(attributes):
    promise = {"model": "k-anonymity", "k": 2, "attributes": attributes}
    with pytest.raises(InputError, match="'attributes' must be a list"):
        Policy.from_dict(content_of({"age": "quasi"}) | {"promises": [promise]})


@pytest.mark.parametrize("begins", ["0b", "0x", "", "0o", "1.", "-", "x", "1:"])
@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_a_number_or_word_too_long_to_be_parsed_is_refused_unread(
    tmp_path, monkeypatch, begins, suffix
):
    monkeypatch.setattr(loading, "LONGEST", 1000)
    path = tmp_path / f"policy{suffix}"
    path.write_text(f"version: {begins}{'1' * 1001}\n")
    with pytest.raises(InputError, match="a number or word has more than 1,000 signs"):
        Policy.load(path)
    entries = ",".join(f"v{number}" for number in range(1000))
    path.write_text(f"a: [{entries}]")
    assert len(loading.read_mapping(path)["a"]) == 1000  # a list without blanks is no long word


def calls(content):
    """How many functions are called until a policy is found unsound, or sound."""
    profile = cProfile.Profile()
    with contextlib.suppress(InputError):
        profile.runcall(Policy.from_dict, content)
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
            "attributes": {name: {"role": "quasi"} for name in ("age", *names)},
            "promises": [{"model": "l-diversity", "attribute": f"{n} x", "l": 2} for n in names],
        },
    ],
    ids=["unknown keys", "unknown roles", "tables", "tables in a ring", "promises"],
)
def test_twice_as_many_keys_are_twice_the_work(of_many):
    base = content_of({"age": "quasi", "id": "subject"})
    few, many = ([f"k{n}" for n in range(count)] for count in (1_500, 3_000))
    calls(base)  # what is imported once
    assert calls(base | of_many(many)) < 2.5 * calls(base | of_many(few))


@pytest.mark.parametrize("attributes", [False, True])
def test_a_policy_makes_no_more_promises_than_can_be_judged(attributes):
    one = {"model": "l-diversity", "l": 2}
    many = [{**one, "attributes": ["ill"] * 5_001}] if attributes else [one] * 5_001
    with pytest.raises(InputError, match="promises: are 5001, 5000 at most"):
        Policy.from_dict(content_of({"ill": "sensitive"}, promises=many))
